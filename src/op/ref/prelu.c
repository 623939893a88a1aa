/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * prelu: y = x > 0 ? x : a x, with one learnt slope a, or one slope for each
 * channel (op_config_t.channels). dx = x > 0 ? dy : a dy. da is the sum of x dy
 * over the elements where x is not above 0.
 */
#include "op/op_desc.h"
#include "op/ref/ref.h"

/* Index of the slope that element [i] uses. */
static int64_t ref_prelu_slope(const op_t *op, int64_t i)
{
    const op_desc_t *in = &op->config.in;

    return op->config.channels ? i / op_desc_space(in) % in->dims[1] : 0;
}

static err_code_t ref_prelu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        double x = ref_get(type, args->x, i);
        double a = ref_get(type, args->params[0], ref_prelu_slope(op, i));

        ref_put(type, args->y, i, x > 0 ? x : a * x);
    }
    return ERR_OK;
}

static err_code_t ref_prelu_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    op_type_t type = op->config.in.type;
    int64_t count = op_desc_elems(&op->config.in);
    int64_t slopes = op->config.channels ? op->config.in.dims[1] : 1;

    (void)err;
    for (int64_t s = 0; s < slopes; s++) {
        double a = ref_get(type, args->params[0], s), da = 0;

        for (int64_t i = 0; i < count; i++) {
            double x, dy;

            if (ref_prelu_slope(op, i) != s)
                continue;
            x = ref_get(type, args->x, i);
            dy = ref_get(type, args->dy, i);
            if (!(x > 0))
                da += x * dy;
            if (op->config.need_dx)
                ref_put(type, args->dx, i, x > 0 ? dy : a * dy);
        }
        ref_put(type, args->dparams[0], s, da);
    }
    return ERR_OK;
}

const op_kernel_t ref_prelu_kernel = {
    .forward = ref_prelu_forward,
    .backward = ref_prelu_backward,
};
