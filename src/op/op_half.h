/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * half: rounding gradients to 16-bit floats in the memory of a device, for comm
 * hooks (ddp/half.c). The results have the bits of base/half.h, except for the
 * payloads of NaNs.
 */
#ifndef CDDP_OP_OP_HALF_H
#define CDDP_OP_OP_HALF_H

#include "op/op.h"

typedef struct op_half {
    bool bf16; /* the format; false: fp16 */
    size_t count;
    float *grads;    /* [count] */
    uint16_t *sent;  /* [count] */
    float *residual; /* [count]; NULL: none */
    float largest;   /* finite numbers are limited to this magnitude */
} op_half_t;

/* Can [backend] round on its device? */
bool op_half_offered(const op_backend_ops_t *backend);

/* op_half_round: round grads + residual to sent; residual becomes the rounding
 * error. op_half_widen: convert sent to grads. All arrays are memory of the
 * device of [stream]. Both only enqueue the operation. */
err_code_t op_half_round(const op_backend_ops_t *backend, const op_half_t *half,
                         dev_stream_t *stream, err_t *err);
err_code_t op_half_widen(const op_backend_ops_t *backend, const op_half_t *half,
                         dev_stream_t *stream, err_t *err);

#endif
