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

#include "op/op.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int64_t cuda_channels_pitch(int64_t C)
{
    return (C + 7) / 8 * 8;
}

/* Give [desc], which is plain and has 3 to 5 dimensions, this layout. */
void cuda_channels_set(op_desc_t *desc);

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

/* For an input that has the layout: copy it to the plain float32 tensor [to],
 * or the plain gradient [from] to dx. */
err_code_t cuda_channels_load(const op_t *op, const op_args_t *args,
                              const void *x, void *to, err_t *err);
err_code_t cuda_channels_store(const op_t *op, const op_args_t *args,
                               const void *from, void *dx, err_t *err);

/* Add bias[c] to each element of channel c of [y], in the layout. */
err_code_t cuda_channels_bias(const op_t *op, const op_args_t *args,
                              const cuda_channels_t *shape, void *y,
                              const float *bias, err_t *err);

/*
 * For ops that compute on plain tensors: x and dx, if the input may have the
 * layout. Both are copied through float32 buffers in scratch; they are the
 * caller's own pointers if the input is plain.
 */
typedef struct cuda_plain {
    size_t x_at, dx_at; /* offsets in scratch */
} cuda_plain_t;

/* Take the buffers at *end of scratch (room.h). */
void cuda_plain_place(const op_t *op, cuda_plain_t *plain, size_t *end);
err_code_t cuda_plain_read(const op_t *op, const op_args_t *args,
                           const cuda_plain_t *plain, const void **x,
                           err_t *err);
/* Where to write dx; then cuda_plain_write stores it. */
void *cuda_plain_dx(const op_t *op, const op_args_t *args,
                    const cuda_plain_t *plain);
err_code_t cuda_plain_write(const op_t *op, const op_args_t *args,
                            const cuda_plain_t *plain, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
