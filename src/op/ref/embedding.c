/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * embedding: y[i,f] = w[x[i],f] for each token i of the batch;
 *   dw[r,f] = sum of dy[i,f] over the i with x[i] = r, in rising order of i.
 */
#include "op/op_desc.h"
#include "op/op_tokens.h"
#include "op/ref/ref.h"

static err_code_t ref_embedding_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    const op_type_t type = op->config.embedding.type;
    const int64_t features = op->config.out;
    const int64_t count = op_desc_elems(&op->config.in);
    const int32_t *x = args->x;
    err_code_t rc = op_check_tokens(&op->config, args->x, err);

    for (int64_t i = 0; i < count && rc == ERR_OK; i++)
        for (int64_t f = 0; f < features; f++)
            ref_put(type, args->y, i * features + f,
                    ref_get(type, args->params[0], x[i] * features + f));
    return rc;
}

static err_code_t ref_embedding_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    const op_type_t type = op->config.embedding.type;
    const int64_t features = op->config.out;
    const int64_t count = op_desc_elems(&op->config.in);
    const int32_t *x = args->x;
    void *dw = args->dparams[0];

    (void)err;
    for (int64_t i = 0; i < op->config.embedding.rows * features; i++)
        ref_put(type, dw, i, 0);
    for (int64_t i = 0; i < count; i++)
        for (int64_t f = 0; f < features; f++) {
            int64_t at = x[i] * features + f;

            ref_put(type, dw, at,
                    ref_get(type, dw, at) +
                        ref_get(type, args->dy, i * features + f));
        }
    return ERR_OK;
}

const op_kernel_t ref_embedding_kernel = {
    .forward = ref_embedding_forward,
    .backward = ref_embedding_backward,
};
