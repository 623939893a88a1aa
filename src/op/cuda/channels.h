/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The backend's own layout, in which ops hand over tensors [N, C, space] that
 * are stored as bfloat16: channels last, [N, space, pitch], where pitch is C
 * rounded up to a multiple of 8, as tensor cores want it. The channels from C
 * on are 0, and whoever writes such a tensor writes these zeros. And the passes
 * that copy between this layout and plain tensors. All run on args->stream;
 * [op] names them in messages.
 */
#ifndef CDDP_OP_CUDA_CHANNELS_H
#define CDDP_OP_CUDA_CHANNELS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "op/op.h"

static inline int64_t cuda_channels_pitch(int64_t C)
{
    return (C + 7) / 8 * 8;
}

/* Give [desc], which is plain and has 3 to 5 dimensions, this layout. */
void cuda_channels_set(op_desc_t *desc);

/* Stored elements of a tensor, with those that pad its channels. */
static inline int64_t cuda_channels_elems(const op_desc_t *desc)
{
    return (int64_t)op_desc_stored_elems(desc);
}

typedef struct cuda_channels {
    int64_t N, C, space;
} cuda_channels_t;

cuda_channels_t cuda_channels_of(const op_desc_t *desc);

/* A copy into the layout. The target has [rows] >= N samples; those from N on
 * are 0. [pitch] need not be that of a tensor: weights have others. */
typedef struct cuda_to_last {
    cuda_channels_t shape;
    int64_t rows, pitch;
    const float *from; /* [N, C, space] */
    void *to;          /* bfloat16 [rows, space, pitch] */
} cuda_to_last_t;

err_code_t cuda_channels_to_last(const op_t *op, const op_args_t *args,
                                 const cuda_to_last_t *copy, err_t *err);

typedef struct cuda_from_last {
    cuda_channels_t shape;
    int64_t pitch;
    const void *from;  /* bfloat16 [N, space, pitch] */
    void *to;          /* [N, C, space] */
    bool bf16;         /* [to] is bfloat16; otherwise float32 */
    bool add;          /* to [to], if it is float32 */
    const float *bias; /* [C], added to each channel; NULL: none */
} cuda_from_last_t;

err_code_t cuda_channels_from_last(const op_t *op, const op_args_t *args,
                                   const cuda_from_last_t *copy, err_t *err);

/* The same for whole tensors: from [x], which [desc] describes and which has
 * the layout, to the plain float32 tensor [to]; and back to [y], which [desc]
 * describes. */
err_code_t cuda_channels_load(const op_t *op, const op_args_t *args,
                              const op_desc_t *desc, const void *x, void *to,
                              err_t *err);
err_code_t cuda_channels_store(const op_t *op, const op_args_t *args,
                               const op_desc_t *desc, const void *from, void *y,
                               err_t *err);

/* Add bias[c] to each element of channel c of [y], in the layout. */
err_code_t cuda_channels_bias(const op_t *op, const op_args_t *args,
                              const cuda_channels_t *shape, void *y,
                              const float *bias, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
