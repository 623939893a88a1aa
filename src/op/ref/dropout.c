/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dropout: y = x / (1 - rate) for elements that are kept (op_mask.h), otherwise
 * 0. Backward computes the mask again: dx = dy / (1 - rate), or 0. Evaluation:
 * y = x.
 */
#include "op/op_desc.h"
#include "op/op_mask.h"
#include "op/ref/ref.h"

static err_code_t ref_dropout_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    return ERR_OK;
}

/* to = from, masked and scaled. */
static void ref_dropout_apply(op_t *op, const op_args_t *args, const void *from,
                              void *to)
{
    op_type_t type = op->config.in.type;
    int64_t N = op->config.in.dims[0], F = op_desc_sample(&op->config.in);
    op_mask_t mask = op_mask_make(&op->config, args);

    for (int64_t n = 0; n < N; n++)
        for (int64_t f = 0; f < F; f++) {
            uint32_t random[4];
            double kept;

            op_mask_block(&mask, args->sample_ids[n], (uint32_t)(f / 4),
                          random);
            kept = random[f % 4] >= mask.threshold ? (double)mask.factor : 0;
            ref_put(type, to, n * F + f, kept * ref_get(type, from, n * F + f));
        }
}

static err_code_t ref_dropout_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    if (op->config.training)
        ref_dropout_apply(op, args, args->x, args->y);
    for (int64_t i = 0; !op->config.training && i < count; i++)
        ref_put(type, args->y, i, ref_get(type, args->x, i));
    return ERR_OK;
}

static err_code_t ref_dropout_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_dropout_apply(op, args, args->dy, args->dx);
    return ERR_OK;
}

const op_kernel_t ref_dropout_kernel = {
    .open = ref_dropout_open,
    .forward = ref_dropout_forward,
    .backward = ref_dropout_backward,
};
