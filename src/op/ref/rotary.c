/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * rotary: in each of the first op_rotary_t.heads heads of token t, pair i of
 * features, (a, b), is rotated by the angle t * base^(-2i/D):
 *   (a, b) -> (a cos - b sin, a sin + b cos)
 * dx is dy rotated by the negative angles. The other heads are copied.
 */
#include <math.h>

#include "op/op_desc.h"
#include "op/ref/ref.h"

static err_code_t ref_rotary_open(op_t *op, err_t *err)
{
    (void)err;
    op->reads_x = false;
    return ERR_OK;
}

/* Write [from], rotated by [sign] times the angles, to [to]. */
static void ref_rotary_turn(const op_t *op, const void *from, double sign,
                            void *to)
{
    const op_type_t type = op->config.in.type;
    const op_rotary_t *rotary = &op->config.rotary;
    const int64_t tokens = op->config.in.dims[1];
    const int64_t features = op->config.in.dims[2];
    const int64_t D = features / rotary->parts;
    const int64_t count = op_desc_elems(&op->config.in);

    for (int64_t at = 0; at < count; at++) {
        int64_t token = at / features % tokens, head = at % features / D;
        int64_t d = at % D, step = rotary->halves ? D / 2 : 1;
        bool second = rotary->halves ? d >= step : d % 2 == 1;
        int64_t pair = rotary->halves ? d % step : d / 2;
        double angle = sign * (double)token *
                       pow(rotary->base, -2.0 * (double)pair / (double)D);
        double mine = ref_get(type, from, at);

        if (head < rotary->heads && second)
            mine =
                ref_get(type, from, at - step) * sin(angle) + mine * cos(angle);
        else if (head < rotary->heads)
            mine =
                mine * cos(angle) - ref_get(type, from, at + step) * sin(angle);
        ref_put(type, to, at, mine);
    }
}

static err_code_t ref_rotary_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    (void)err;
    ref_rotary_turn(op, args->x, 1, args->y);
    return ERR_OK;
}

static err_code_t ref_rotary_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_rotary_turn(op, args->dy, -1, args->dx);
    return ERR_OK;
}

const op_kernel_t ref_rotary_kernel = {
    .open = ref_rotary_open,
    .forward = ref_rotary_forward,
    .backward = ref_rotary_backward,
};
