/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The kernels of op_lowrank (ops/lowrank.cu). Each function only enqueues. */
#ifndef CDDP_OP_CUDA_LOWRANK_H
#define CDDP_OP_CUDA_LOWRANK_H

#include "op/cuda/cuda.h"
#include "op/op_lowrank.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The matrices that a kernel works on. */
typedef struct cuda_lowrank_call {
    const op_lowrank_matrix_t *table; /* [count], memory of the device */
    int count, rank;
    int64_t rows; /* largest number of rows of a matrix */
    bool draw;    /* replace all of Q by random numbers */
    uint64_t step;
} cuda_lowrank_call_t;

/* M += residual */
err_code_t cuda_lowrank_add(const cuda_lowrank_call_t *call,
                            dev_stream_t *stream, err_t *err);
/* Make Q orthonormal, with random vectors instead of dependent ones. */
err_code_t cuda_lowrank_q(const cuda_lowrank_call_t *call, dev_stream_t *stream,
                          err_t *err);
/* Make P orthonormal. */
err_code_t cuda_lowrank_p(const cuda_lowrank_call_t *call, dev_stream_t *stream,
                          err_t *err);
/* residual = M - P Q^T */
err_code_t cuda_lowrank_rest(const cuda_lowrank_call_t *call,
                             dev_stream_t *stream, err_t *err);
/* M = P Q^T */
err_code_t cuda_lowrank_expand(const cuda_lowrank_call_t *call,
                               dev_stream_t *stream, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
