/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The bias of a convolution, and its gradient, for tensors [N, C, space] of
 * float32. Both run on args->stream; [op] names them in messages. */
#ifndef CDDP_OP_CUDA_PLANES_H
#define CDDP_OP_CUDA_PLANES_H

#ifdef __cplusplus
extern "C" {
#endif

#include "op/op.h"

typedef struct cuda_planes {
    int64_t N, C, space;
} cuda_planes_t;

/* y[n,c,s] += b[c] */
err_code_t cuda_planes_bias(const op_t *op, const op_args_t *args,
                            const cuda_planes_t *planes, float *y,
                            const float *b, err_t *err);

/* db[c] = sum over n and s of dy[n,c,s], rounded to the compute_type; if
 * args->add, the sum is added to db. [scratch] has cuda_planes_scratch bytes.
 */
size_t cuda_planes_scratch(const cuda_planes_t *planes);
err_code_t cuda_planes_sum(const op_t *op, const op_args_t *args,
                           const cuda_planes_t *planes, const float *dy,
                           float *db, void *scratch, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
