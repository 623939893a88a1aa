/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Norms of arenas, the verdict on a step, and the scaling of an arena. */
#include "optim/cuda/squares.cuh"

#define SCALE_THREADS 256

/* ---- blocks of elements -------------------------------------------------- */

/* Write the sums of squares of all blocks of [grads] to [sums]. */
static __global__ void __launch_bounds__(SQUARES_THREADS)
    norm_blocks(const float *grads, int64_t elems, double *sums)
{
    const int64_t blocks = (elems + OPTIM_UNIT - 1) / OPTIM_UNIT;
    const int lane = (int)threadIdx.x % SQUARES_LANES;
    const int group = (int)threadIdx.x / SQUARES_LANES;

    /* The loop is the same for all threads, as all must reach the shuffles. */
    for (int64_t first = (int64_t)blockIdx.x * SQUARES_GROUPS; first < blocks;
         first += (int64_t)gridDim.x * SQUARES_GROUPS) {
        const int64_t block = first + group;
        const float *x = grads + block * OPTIM_UNIT + lane;
        const int64_t left = elems - block * OPTIM_UNIT;
        const int count = (int)(left < 0            ? 0
                                : left < OPTIM_UNIT ? left
                                                    : OPTIM_UNIT);
        const int whole = count / SQUARES_LANES * SQUARES_LANES;
        double sum = 0;

#pragma unroll 16
        for (int i = 0; i < whole; i += SQUARES_LANES)
            sum += square(x[i]);
        sum = squares_join(sum, whole + lane < count ? x[whole] : 0,
                           count - whole);
        if (lane == 0 && block < blocks)
            sums[block] = sum;
    }
}

/* Returns the number of blocks. */
static int64_t blocks_start(const float *grads, int64_t elems, double *sums,
                            cudaStream_t stream)
{
    const int64_t blocks = (elems + OPTIM_UNIT - 1) / OPTIM_UNIT;
    const int64_t grid = (blocks + SQUARES_GROUPS - 1) / SQUARES_GROUPS;

    if (blocks > 0)
        LAUNCH(norm_blocks, (unsigned)(grid < 65536 ? grid : 65536),
               SQUARES_THREADS, 0, stream, grads, elems, sums);
    return blocks;
}

/* ---- sums of blocks ------------------------------------------------------ */

/* Write the sum of each chunk of [sums] to [chunks]. */
static __global__ void __launch_bounds__(SQUARES_THREADS)
    norm_chunks(const double *sums, int64_t count, double *chunks)
{
    __shared__ double at[CUDA_CHUNK];
    const int64_t first = (int64_t)blockIdx.x * CUDA_CHUNK;
    const int64_t left = count - first;
    const int own = (int)(left < CUDA_CHUNK ? left : CUDA_CHUNK);

    for (int i = (int)threadIdx.x; i < own; i += (int)blockDim.x)
        at[i] = sums[first + i];
    chunk_add(at, own);
    if (threadIdx.x == 0)
        chunks[blockIdx.x] = at[0];
}

/* The root of the sum of [count] numbers, at most CUDA_CHUNK, by one block. */
static __global__ void __launch_bounds__(SQUARES_THREADS)
    norm_root(const double *sums, int64_t count, double *norm)
{
    __shared__ double at[CUDA_CHUNK];

    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        at[i] = sums[i];
    chunk_add(at, (int)count);
    if (threadIdx.x == 0)
        *norm = count > 0 ? sqrt(at[0]) : 0;
}

static void root_start(optim_place_t *place, const double *sums, int64_t count,
                       double *norm, cudaStream_t stream)
{
    double *out = ((optim_cuda_t *)place)->chunks;

    while (count > CUDA_CHUNK) {
        const int64_t chunks = (count + CUDA_CHUNK - 1) / CUDA_CHUNK;

        LAUNCH(norm_chunks, (unsigned)chunks, SQUARES_THREADS, 0, stream, sums,
               count, out);
        sums = out;
        count = chunks;
        out += chunks;
    }
    LAUNCH(norm_root, 1, SQUARES_THREADS, 0, stream, sums, count, norm);
}

extern "C" err_code_t optim_cuda_norm(optim_place_t *place, const float *grads,
                                      size_t elems, double *norm,
                                      dev_stream_t *stream, err_t *err)
{
    const cudaStream_t on = dev_cuda_stream(stream);
    double *sums = ((optim_cuda_t *)place)->sums;

    root_start(place, sums, blocks_start(grads, (int64_t)elems, sums, on), norm,
               on);
    return CUDA_CHECK_LAUNCH("the norm of gradients", err);
}

extern "C" err_code_t optim_cuda_norm_part(optim_place_t *place,
                                           const float *grads,
                                           view_range_t range, double *blocks,
                                           dev_stream_t *stream, err_t *err)
{
    (void)place;
    blocks_start(grads + range.first, (int64_t)range.count,
                 blocks + range.first / OPTIM_UNIT, dev_cuda_stream(stream));
    return CUDA_CHECK_LAUNCH("the norm of gradients", err);
}

extern "C" err_code_t optim_cuda_norm_whole(optim_place_t *place,
                                            const double *blocks, size_t count,
                                            double *norm, dev_stream_t *stream,
                                            err_t *err)
{
    root_start(place, blocks, (int64_t)count, norm, dev_cuda_stream(stream));
    return CUDA_CHECK_LAUNCH("the norm of gradients", err);
}

/* ---- single numbers, scaling --------------------------------------------- */

static __global__ void norm_flag(const double *norm, double *flag)
{
    if (!optim_finite(*norm))
        *flag = 1;
}

extern "C" err_code_t optim_cuda_norm_flag(optim_place_t *place,
                                           const double *norm, double *flag,
                                           dev_stream_t *stream, err_t *err)
{
    (void)place;
    LAUNCH(norm_flag, 1, 1, 0, dev_cuda_stream(stream), norm, flag);
    return CUDA_CHECK_LAUNCH("the check of a norm", err);
}

static __global__ void step_judge(optim_question_t question,
                                  optim_verdict_t *verdict)
{
    optim_verdict_fill(&question, verdict);
}

extern "C" err_code_t optim_cuda_judge(optim_place_t *place,
                                       const optim_question_t *question,
                                       optim_verdict_t *verdict,
                                       dev_stream_t *stream, err_t *err)
{
    (void)place;
    LAUNCH(step_judge, 1, 1, 0, dev_cuda_stream(stream), *question, verdict);
    return CUDA_CHECK_LAUNCH("the verdict on a step", err);
}

static __global__ void __launch_bounds__(SCALE_THREADS)
    arena_scale(float *data, int64_t elems, float factor)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;

    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elems;
         i += step)
        data[i] *= factor;
}

extern "C" err_code_t optim_cuda_scale(optim_place_t *place, float *data,
                                       size_t elems, float factor,
                                       dev_stream_t *stream, err_t *err)
{
    const size_t grid = (elems + SCALE_THREADS - 1) / SCALE_THREADS;

    (void)place;
    if (elems > 0)
        LAUNCH(arena_scale, (unsigned)(grid < 65536 ? grid : 65536),
               SCALE_THREADS, 0, dev_cuda_stream(stream), data, (int64_t)elems,
               factor);
    return CUDA_CHECK_LAUNCH("the scaling of an arena", err);
}
