/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* mul: y = x * other[0] * ..., element by element. The gradient of an input is
 * dy times all other inputs. */
#include "op/op_desc.h"
#include "op/ref/ref.h"

/* Input [k] of the op; 0 is x. */
static const void *ref_mul_input(const op_args_t *args, int k)
{
    return k == 0 ? args->x : args->other[k - 1];
}

static err_code_t ref_mul_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        double product = ref_get(type, args->x, i);

        for (int k = 0; k < op->config.others; k++)
            product *= ref_get(type, args->other[k], i);
        ref_put(type, args->y, i, product);
    }
    return ERR_OK;
}

static void ref_mul_gradient(op_t *op, const op_args_t *args, int input,
                             void *to)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    for (int64_t i = 0; i < count && to != NULL; i++) {
        double product = ref_get(type, args->dy, i);

        for (int k = 0; k <= op->config.others; k++)
            if (k != input)
                product *= ref_get(type, ref_mul_input(args, k), i);
        ref_put(type, to, i, product);
    }
}

static err_code_t ref_mul_backward(op_t *op, const op_args_t *args, err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_mul_gradient(op, args, 0, args->dx);
    for (int k = 0; k < op->config.others; k++)
        ref_mul_gradient(op, args, k + 1, args->dother[k]);
    return ERR_OK;
}

const op_kernel_t ref_mul_kernel = {
    .forward = ref_mul_forward,
    .backward = ref_mul_backward,
};
