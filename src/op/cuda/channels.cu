/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A copy transposes tiles of 32 channels and 32 positions in shared memory. */
#include "op/cuda/channels.h"

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"

#define TILE 32
#define LANES 8 /* rows of a tile that a block moves at once */

/* The address of this constant is the layout of a tensor. */
static const char channels_last = 0;

extern "C" void cuda_channels_set(op_desc_t *desc)
{
    const int64_t pitch = cuda_channels_pitch(desc->dims[1]);

    desc->layout = &channels_last;
    desc->stored_as = OP_BFLOAT16;
    desc->bytes =
        (size_t)(desc->dims[0] * op_desc_space(desc) * pitch) * sizeof(bf16_t);
}

extern "C" cuda_channels_t cuda_channels_of(const op_desc_t *desc)
{
    return {desc->dims[0], desc->dims[1], op_desc_space(desc)};
}

/* ---- copies -------------------------------------------------------------- */

namespace
{

/* A block's tile: sample, first channel, first position. */
struct tile {
    int64_t n, c, s;
};

__device__ __forceinline__ tile tile_of(int64_t space)
{
    /* Not above the size of the grid. */
    const unsigned tiles = (unsigned)((space + TILE - 1) / TILE);

    return {blockIdx.x / tiles, (int64_t)blockIdx.y * TILE,
            (int64_t)(blockIdx.x % tiles) * TILE};
}

__global__ void __launch_bounds__(TILE *LANES) to_last(cuda_to_last_t copy)
{
    __shared__ float part[TILE][TILE + 1];
    const cuda_channels_t &shape = copy.shape;
    const tile t = tile_of(shape.space);
    bf16_t *to = static_cast<bf16_t *>(copy.to);

    for (int i = threadIdx.y; i < TILE; i += LANES) {
        const int64_t c = t.c + i, s = t.s + threadIdx.x;
        const bool inside = t.n < shape.N && c < shape.C && s < shape.space;

        part[i][threadIdx.x] =
            inside ? copy.from[(t.n * shape.C + c) * shape.space + s] : 0.0f;
    }
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += LANES) {
        const int64_t c = t.c + threadIdx.x, s = t.s + i;

        if (c < copy.pitch && s < shape.space)
            to[(t.n * shape.space + s) * copy.pitch + c] =
                __float2bfloat16_rn(part[threadIdx.x][i]);
    }
}

template <typename T>
__global__ void __launch_bounds__(TILE *LANES) from_last(cuda_from_last_t copy)
{
    __shared__ float part[TILE][TILE + 1];
    const cuda_channels_t &shape = copy.shape;
    const tile t = tile_of(shape.space);
    const bf16_t *from = static_cast<const bf16_t *>(copy.from);
    T *to = static_cast<T *>(copy.to);

    for (int i = threadIdx.y; i < TILE; i += LANES) {
        const int64_t c = t.c + threadIdx.x, s = t.s + i;
        float value = 0;

        if (c < shape.C && s < shape.space)
            value = __bfloat162float(
                from[(t.n * shape.space + s) * copy.pitch + c]);
        if (c < shape.C && copy.bias != nullptr)
            value += copy.bias[c];
        part[i][threadIdx.x] = value;
    }
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += LANES) {
        const int64_t c = t.c + i, s = t.s + threadIdx.x;
        const int64_t at = (t.n * shape.C + c) * shape.space + s;

        if (c < shape.C && s < shape.space)
            pack_put(to, at,
                     part[threadIdx.x][i] +
                         (copy.add ? pack_get(to, at) : 0.0f));
    }
}

struct bias_work {
    bf16_t *y;
    const float *bias;
    int64_t C;
    index_divisor_t pitch;

    template <int N> __device__ void at(int64_t i) const
    {
        float v[N];

        pack_load(y + i, v);
        for (int k = 0; k < N; k++) {
            int64_t at = i + k;
            const int64_t c = index_split(&at, pitch);

            v[k] += c < C ? bias[c] : 0.0f;
        }
        pack_store(y + i, v);
    }
};

} // namespace

static dim3 tiles_of(int64_t rows, int64_t channels, int64_t space)
{
    return dim3((unsigned)(rows * ((space + TILE - 1) / TILE)),
                (unsigned)((channels + TILE - 1) / TILE));
}

extern "C" err_code_t cuda_channels_to_last(const op_t *op,
                                            const op_args_t *args,
                                            const cuda_to_last_t *copy,
                                            err_t *err)
{
    LAUNCH(to_last, tiles_of(copy->rows, copy->pitch, copy->shape.space),
           dim3(TILE, LANES), 0, cuda_stream(args), *copy);
    return cuda_started(op, err);
}

extern "C" err_code_t cuda_channels_from_last(const op_t *op,
                                              const op_args_t *args,
                                              const cuda_from_last_t *copy,
                                              err_t *err)
{
    const dim3 tiles =
        tiles_of(copy->shape.N, copy->shape.C, copy->shape.space);

    if (copy->bf16)
        LAUNCH(from_last<bf16_t>, tiles, dim3(TILE, LANES), 0,
               cuda_stream(args), *copy);
    else
        LAUNCH(from_last<float>, tiles, dim3(TILE, LANES), 0, cuda_stream(args),
               *copy);
    return cuda_started(op, err);
}

extern "C" err_code_t cuda_channels_bias(const op_t *op, const op_args_t *args,
                                         const cuda_channels_t *shape, void *y,
                                         const float *bias, err_t *err)
{
    const int64_t pitch = cuda_channels_pitch(shape->C);
    const bias_work work = {(bf16_t *)y, bias, shape->C,
                            index_divisor_of(pitch)};

    each_start<8>(work, shape->N * shape->space * pitch, pack_aligned(y),
                  cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" err_code_t cuda_channels_load(const op_t *op, const op_args_t *args,
                                         const op_desc_t *desc, const void *x,
                                         void *to, err_t *err)
{
    cuda_from_last_t copy = {};

    copy.shape = cuda_channels_of(desc);
    copy.pitch = cuda_channels_pitch(copy.shape.C);
    copy.from = x;
    copy.to = to;
    return cuda_channels_from_last(op, args, &copy, err);
}

extern "C" err_code_t cuda_channels_store(const op_t *op, const op_args_t *args,
                                          const op_desc_t *desc,
                                          const void *from, void *y, err_t *err)
{
    cuda_to_last_t copy = {};

    copy.shape = cuda_channels_of(desc);
    copy.rows = copy.shape.N;
    copy.pitch = cuda_channels_pitch(copy.shape.C);
    copy.from = (const float *)from;
    copy.to = y;
    return cuda_channels_to_last(op, args, &copy, err);
}
