/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* embedding: the check of tokens from the data (op_tokens.c). */
#ifndef CDDP_OP_OP_TOKENS_H
#define CDDP_OP_OP_TOKENS_H

#include "op/op.h"

/* Check that each of the [tokens], which an embedding with [config] would read,
 * is a row of it. ERR_DATA names the first token that is not, with its sample
 * and position. */
err_code_t op_check_tokens(const op_config_t *config, const int32_t *tokens,
                           err_t *err);

#endif
