/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * mean and max over neighbouring dimensions: x is [outer, count, inner], y is
 * [outer, inner]. If inner is 1, a warp or a block treats an element of y;
 * otherwise a block treats 32 neighbouring ones, each by 8 threads. The first
 * of equal values is the maximum, and NaN comes before all numbers; the
 * workspace keeps its index (int32, below count).
 */
#include <limits.h>

#include "op/cuda/device/rows.cuh"

#define REDUCE_WIDE 32
#define REDUCE_DEEP (EACH_THREADS / REDUCE_WIDE)

namespace
{

struct reduce_work {
    op_reduce_t r;
    index_divisor_t by_count, by_inner;
    const float *x, *dy;
    float *y, *dx;
    int32_t *winners; /* NULL: not kept */
};

/* What is found of the elements of a row: their sum, or the maximum. */
struct reduce_sum {
    double sum;

    __device__ reduce_sum() : sum(0)
    {
    }

    __device__ void add(float value, int64_t k)
    {
        (void)k;
        sum += value;
    }

    __device__ void merge(const reduce_sum &from)
    {
        sum += from.sum;
    }

    __device__ reduce_sum other(int bit) const
    {
        reduce_sum from;

        from.sum = __shfl_xor_sync(0xffffffffu, sum, bit);
        return from;
    }

    __device__ void put(const reduce_work &work, int64_t at) const
    {
        work.y[at] = (float)(sum / (double)work.r.count);
    }
};

struct reduce_max {
    float best;
    int winner; /* INT_MAX: there was no element */

    __device__ reduce_max() : best(0), winner(INT_MAX)
    {
    }

    __device__ void add(float value, int64_t k)
    {
        reduce_max from;

        from.best = value;
        from.winner = (int)k;
        merge(from);
    }

    __device__ void merge(const reduce_max &from)
    {
        const bool mine = best != best, its = from.best != from.best;
        const bool equal = mine || its ? mine == its : from.best == best;
        const bool larger = its || (!mine && from.best > best);

        if (from.winner != INT_MAX &&
            (winner == INT_MAX || (equal && from.winner < winner) ||
             (!equal && larger)))
            *this = from;
    }

    __device__ reduce_max other(int bit) const
    {
        reduce_max from;

        from.best = __shfl_xor_sync(0xffffffffu, best, bit);
        from.winner = __shfl_xor_sync(0xffffffffu, winner, bit);
        return from;
    }

    __device__ void put(const reduce_work &work, int64_t at) const
    {
        work.y[at] = best;
        if (work.winners != NULL)
            work.winners[at] = winner;
    }
};

struct mean_gradient {
    reduce_work work;

    template <int N> __device__ void at(int64_t i) const
    {
        const float factor = 1 / (float)work.r.count;

        for (int k = 0; k < N; k++) {
            int64_t row = i + k;
            const int64_t inner = index_split(&row, work.by_inner);

            row = index_div(row, work.by_count);
            work.dx[i + k] = work.dy[row * work.r.inner + inner] * factor;
        }
    }
};

struct max_gradient {
    reduce_work work;

    template <int N> __device__ void at(int64_t i) const
    {
        for (int k = 0; k < N; k++) {
            int64_t row = i + k;
            const int64_t inner = index_split(&row, work.by_inner);
            const int64_t own = index_split(&row, work.by_count);
            const int64_t at = row * work.r.inner + inner;

            work.dx[i + k] = work.winners[at] == own ? work.dy[at] : 0;
        }
    }
};

} // namespace

/* inner is 1. */
template <rows_who_t who, typename Found>
static __device__ void reduce_rows(const reduce_work &work)
{
    __shared__ float2 space[ROWS_WARPS * sizeof(Found) / sizeof(float2)];
    Found *parts = reinterpret_cast<Found *>(space);
    const rows_place<who> place;

    for (int64_t row = place.row; row < work.r.outer; row += place.step) {
        const float *x = work.x + row * work.r.count;
        Found found;

        for (int64_t k = place.lane; k < work.r.count; k += place.lanes)
            found.add(x[k], k);
        for (int bit = 16; bit > 0 && who != ROWS_THREAD; bit >>= 1)
            found.merge(found.other(bit));
        if constexpr (who == ROWS_BLOCK) {
            if (threadIdx.x % 32 == 0)
                parts[threadIdx.x / 32] = found;
            __syncthreads();
            found = parts[0];
            for (int w = 1; w < ROWS_WARPS; w++)
                found.merge(parts[w]);
            __syncthreads();
        }
        if (place.lane == 0)
            found.put(work, row);
    }
}

template <rows_who_t who>
static __global__ void __launch_bounds__(EACH_THREADS)
    mean_rows(reduce_work work)
{
    reduce_rows<who, reduce_sum>(work);
}

template <rows_who_t who>
static __global__ void __launch_bounds__(EACH_THREADS)
    max_rows(reduce_work work)
{
    reduce_rows<who, reduce_max>(work);
}

/* A block is REDUCE_WIDE elements of y times REDUCE_DEEP parts of count. */
template <typename Found>
static __global__ void __launch_bounds__(EACH_THREADS)
    reduce_columns(reduce_work work)
{
    __shared__ float2 space[EACH_THREADS * sizeof(Found) / sizeof(float2)];
    Found *parts = reinterpret_cast<Found *>(space);
    const op_reduce_t &r = work.r;
    const int64_t count = r.outer * r.inner;
    const int64_t step = (int64_t)gridDim.x * REDUCE_WIDE;

    for (int64_t tile = (int64_t)blockIdx.x * REDUCE_WIDE; tile < count;
         tile += step) {
        const int64_t at = tile + threadIdx.x;
        int64_t outer = at;
        const int64_t inner = index_split(&outer, work.by_inner);
        const float *x = work.x + outer * r.count * r.inner + inner;
        Found found;

        for (int64_t k = threadIdx.y; k < r.count && at < count;
             k += REDUCE_DEEP)
            found.add(x[k * r.inner], k);
        parts[threadIdx.y * REDUCE_WIDE + threadIdx.x] = found;
        __syncthreads();
        for (int k = 1; k < REDUCE_DEEP && threadIdx.y == 0; k++)
            found.merge(parts[k * REDUCE_WIDE + threadIdx.x]);
        if (threadIdx.y == 0 && at < count)
            found.put(work, at);
        __syncthreads();
    }
}

/* ---- the op -------------------------------------------------------------- */

static err_code_t reduce_open(op_t *op, err_t *err)
{
    const int64_t count = op_reduce_of(&op->config).count;

    op->reads_x = false;
    if (op->config.kind != OP_MAX)
        return ERR_OK;
    if (count >= INT_MAX)
        return err_set(err, ERR_UNAVAILABLE,
                       "max: the op backend \"cuda\" takes up to 2^31 elements "
                       "at once, but here are %lld",
                       (long long)count);
    if (op->config.training)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int32_t);
    return ERR_OK;
}

static reduce_work work_of(const op_t *op, const op_args_t *args)
{
    const bool keeps = op->config.kind == OP_MAX && op->config.training;
    const op_reduce_t r = op_reduce_of(&op->config);

    return reduce_work{r,
                       index_divisor_of(r.count),
                       index_divisor_of(r.inner),
                       (const float *)args->x,
                       (const float *)args->dy,
                       (float *)args->y,
                       (float *)args->dx,
                       keeps ? (int32_t *)args->workspace : NULL};
}

static err_code_t reduce_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const reduce_work work = work_of(op, args);
    const cudaStream_t stream = cuda_stream(args);
    const rows_who_t who = rows_for(work.r.count, 1);
    const unsigned rows = rows_blocks(who, work.r.outer);
    const unsigned tiles =
        each_blocks(work.r.outer * work.r.inner, REDUCE_WIDE);
    const dim3 tile(REDUCE_WIDE, REDUCE_DEEP);

    if (op->config.kind == OP_MAX && work.r.inner == 1)
        ROWS_LAUNCH(who, max_rows, rows, stream, work);
    else if (op->config.kind == OP_MAX)
        LAUNCH((reduce_columns<reduce_max>), tiles, tile, 0, stream, work);
    else if (work.r.inner == 1)
        ROWS_LAUNCH(who, mean_rows, rows, stream, work);
    else
        LAUNCH((reduce_columns<reduce_sum>), tiles, tile, 0, stream, work);
    return cuda_started(op, err);
}

static err_code_t reduce_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const reduce_work work = work_of(op, args);
    const int64_t count = op_desc_elems(&op->config.in);

    if (!op->config.need_dx)
        return ERR_OK;
    if (op->config.kind == OP_MAX)
        each_start<1>(max_gradient{work}, count, false, cuda_stream(args));
    else
        each_start<1>(mean_gradient{work}, count, false, cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_reduce_kernel = {
    reduce_open, NULL, reduce_forward, reduce_backward};
