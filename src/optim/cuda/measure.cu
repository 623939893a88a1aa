/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * LAMB and LARS: the sums of squares of a tensor's tiles, and the factors of
 * tensors' rates that follow from them. LAMB adds the gradients to its moving
 * averages here, before it knows the direction whose norm it needs.
 */
#include "optim/cuda/squares.cuh"
#include "optim/cuda/tile.cuh"

/* The two numbers of an element that are squared. */
typedef struct pair {
    float weight, other;
} pair_t;

/* Of the parameter at [at] of the arena, and at [state] of the slots. */
static __device__ __forceinline__ pair_t
lamb_element(const optim_cuda_pass_t &pass, const optim_lamb_t &scalars,
             const clip_t &clip, int64_t at, int64_t state)
{
    const float p = pass.params[at];
    float mean = pass.slots[0][state], square = pass.slots[1][state];
    pair_t pair;

    optim_lamb_moments(clip_apply(clip, pass.grads[at]), &mean, &square,
                       &scalars);
    pass.slots[0][state] = mean;
    pass.slots[1][state] = square;
    pair.weight = p;
    pair.other = optim_lamb_direction(p, mean, square, &scalars);
    return pair;
}

static __device__ __forceinline__ pair_t
lars_element(const optim_cuda_pass_t &pass, const clip_t &clip, int64_t at)
{
    const pair_t pair = {pass.params[at], clip_apply(clip, pass.grads[at])};

    return pair;
}

/* This thread's share of a tile. */
typedef struct share {
    double sums[2]; /* partial sums of squares */
    pair_t left;    /* the element of those left over */
} share_t;

template <bool LAMB>
static __device__ __forceinline__ share_t
share_of(const optim_cuda_pass_t &pass, const tile_t &tile, int lane)
{
    const optim_cuda_run_t *run = &pass.runs[tile.run];
    const int64_t shift = run->state - run->offset;
    const clip_t clip = clip_of(pass);
    const int count = (int)(tile.to - tile.from);
    const int whole = count / SQUARES_LANES * SQUARES_LANES;
    share_t share = {{0, 0}, {0, 0}};
    optim_lamb_t scalars;

    if (LAMB)
        scalars = scalars_of<optim_lamb_t>(pass, run->set);
#pragma unroll 4
    for (int i = lane; i < count; i += SQUARES_LANES) {
        const int64_t at = tile.from + i;
        const pair_t pair =
            LAMB ? lamb_element(pass, scalars, clip, at, at + shift)
                 : lars_element(pass, clip, at);

        if (i < whole) {
            share.sums[0] += square(pair.weight);
            share.sums[1] += square(pair.other);
        } else {
            share.left = pair;
        }
    }
    return share;
}

static __global__ void __launch_bounds__(SQUARES_THREADS)
    tiles_measure(const optim_cuda_pass_t pass)
{
    const int lane = (int)threadIdx.x % SQUARES_LANES;
    const int group = (int)threadIdx.x / SQUARES_LANES;

    if (!pass_updates(pass))
        return;
    /* The loop is the same for all threads, as all must reach the shuffles. */
    for (int64_t first = (int64_t)blockIdx.x * SQUARES_GROUPS;
         first < pass.tiles; first += (int64_t)gridDim.x * SQUARES_GROUPS) {
        const bool any = first + group < pass.tiles;
        const int64_t number = pass.tile + (any ? first + group : first);
        const tile_t tile = tile_find(pass, number);
        const optim_cuda_run_t *run = &pass.runs[tile.run];
        const int lefts = (int)(tile.to - tile.from) % SQUARES_LANES;
        share_t share = {{0, 0}, {0, 0}};
        double sums[2];

        if (any && pass.rules[run->set].loop == OPTIM_LAMB)
            share = share_of<true>(pass, tile, lane);
        else if (any && run->adapts)
            share = share_of<false>(pass, tile, lane);
        sums[0] = squares_join(share.sums[0], share.left.weight, lefts);
        sums[1] = squares_join(share.sums[1], share.left.other, lefts);
        if (any && lane == 0 && run->adapts) {
            double *out =
                pass.sums + 2 * (run->tile_sum + (number - run->tile));

            out[0] = sums[0];
            out[1] = sums[1];
        }
    }
}

extern "C" err_code_t optim_cuda_sums(const optim_cuda_pass_t *pass,
                                      dev_stream_t *stream, err_t *err)
{
    const int64_t grid = (pass->tiles + SQUARES_GROUPS - 1) / SQUARES_GROUPS;

    LAUNCH(tiles_measure, (unsigned)(grid < 65536 ? grid : 65536),
           SQUARES_THREADS, 0, dev_cuda_stream(stream), *pass);
    return CUDA_CHECK_LAUNCH("the norms of tensors", err);
}

/* ---- factors of rates ---------------------------------------------------- */

/* The sum of every second number of [count] pairs, along the tree. [at] and
 * [top] are shared memory for CUDA_CHUNK numbers. */
static __device__ double pairs_add(const double *pairs, int64_t count,
                                   double *at, double *top)
{
    int chunks = 0;

    for (int64_t first = 0; first < count; first += CUDA_CHUNK) {
        const int64_t left = count - first;
        const int own = (int)(left < CUDA_CHUNK ? left : CUDA_CHUNK);

        for (int i = (int)threadIdx.x; i < own; i += (int)blockDim.x)
            at[i] = pairs[2 * (first + i)];
        chunk_add(at, own);
        if (threadIdx.x == 0)
            top[chunks] = at[0];
        chunks++;
        __syncthreads();
    }
    chunk_add(top, chunks);
    return top[0];
}

static __global__ void __launch_bounds__(SQUARES_THREADS)
    runs_ratio(const optim_cuda_pass_t pass, int first)
{
    __shared__ double at[CUDA_CHUNK], top[CUDA_CHUNK];
    const int index = first + (int)blockIdx.x;
    const optim_cuda_run_t *run = &pass.runs[index];
    double squares[2];

    if (!pass_updates(pass))
        return;
    if (!run->adapts) {
        if (threadIdx.x == 0)
            pass.ratios[index] = 1;
        return;
    }
    squares[0] = pairs_add(pass.sums + 2 * run->sums, run->sum_count, at, top);
    __syncthreads();
    squares[1] =
        pairs_add(pass.sums + 2 * run->sums + 1, run->sum_count, at, top);
    if (threadIdx.x == 0)
        pass.ratios[index] = optim_ratio(&pass.rules[run->set], squares);
}

extern "C" err_code_t optim_cuda_ratios(const optim_cuda_pass_t *pass, int run,
                                        int runs, dev_stream_t *stream,
                                        err_t *err)
{
    LAUNCH(runs_ratio, (unsigned)runs, SQUARES_THREADS, 0,
           dev_cuda_stream(stream), *pass, run);
    return CUDA_CHECK_LAUNCH("the rates of tensors", err);
}
