/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The kernels of one step of lstm and gru (ops/recurrent.c). Matrices are
 * [N,T,G] or [N,T,H]; G is H times the number of gates. They run on
 * args->stream; [op] names them in messages.
 */
#ifndef CDDP_OP_CUDA_RECURRENT_H
#define CDDP_OP_CUDA_RECURRENT_H

#ifdef __cplusplus
extern "C" {
#endif

#include "op/op.h"

typedef struct cuda_step {
    bool lstm, bf16;
    int64_t N, T, H;
    int64_t token, next; /* of this step and of the next one; -1: none */
    /* y or dy of this step: row [n] begins at n * y_row; NULL: not in y. */
    float *y;
    const float *dy;
    int64_t y_row;
    float *gates;   /* [N,T,G]; forward: from the x part to the gates */
    const float *u; /* [N,G], forward: the h part */
    float *h;       /* [N,T,H], before each step */
    void *h_bf16;   /* forward: the same, rounded; NULL: none */
    float *kept;    /* [N,T,H]; lstm: c before each step; gru: u of gate n */
    /* backward */
    float *dh, *dc; /* [N,H], of the state after the step, then before it */
    void *da, *du;  /* [N,T,G]; lstm: du is da. bfloat16 if bf16 */
    float *da_sum, *du_sum; /* the same, not rounded, if bf16 */
} cuda_step_t;

/* h = 0 (and c = 0) before token [token]. */
err_code_t cuda_step_start(const op_t *op, const op_args_t *args,
                           const cuda_step_t *step, err_t *err);
/* Compute gates, kept, y, and h (and c) before the next step. */
err_code_t cuda_step_forward(const op_t *op, const op_args_t *args,
                             const cuda_step_t *step, err_t *err);
/* Compute da and du. Replace dh and dc by their direct contributions to the
 * step before, that is without those through w_hh. */
err_code_t cuda_step_backward(const op_t *op, const op_args_t *args,
                              const cuda_step_t *step, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
