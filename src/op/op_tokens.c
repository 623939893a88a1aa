/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <inttypes.h>

#include "op/op_desc.h"
#include "op/op_tokens.h"

err_code_t op_check_tokens(const op_config_t *config, const int32_t *tokens,
                           err_t *err)
{
    const int64_t sample = op_desc_sample(&config->in);
    const int64_t count = op_desc_elems(&config->in);

    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= config->embedding.rows)
            return err_set(err, ERR_DATA,
                           "embedding: position %" PRId64 " of sample %" PRId64
                           " of the batch holds token %" PRId32
                           ", but the model has the tokens 0 to %" PRId64,
                           i % sample, i / sample, tokens[i],
                           config->embedding.rows - 1);
    return ERR_OK;
}
