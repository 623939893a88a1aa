/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The update of all tiles of a part in one launch, with clipping and the moving
 * average: one pass over the memory. A tile has one set of options, so all
 * threads of a block compute the same kind of update.
 */
#include "optim/cuda/tile.cuh"

/* Small blocks, so that the registers of a multiprocessor are used up. */
#define TILE_THREADS 128
#define TILE_BLOCKS 65536 /* at most; the rest of the work is a loop */
#define PACK 4            /* elements that a thread treats at a time */

/* ---- kinds of updates ---------------------------------------------------- */

/* Bit k: slot k is read, or written. */
template <unsigned READS, unsigned WRITES = READS> struct slots {
    static constexpr unsigned reads = READS, writes = WRITES;
};

/* The new parameter of one element, whose state is at [s]; [rate] is that of
 * the tensor. */
#define NEXT(type)                                           \
    typedef type scalars;                                    \
    static __device__ __forceinline__ float next(            \
        float p, float g, float *const(&s)[OPTIM_SLOTS_MAX], \
        [[maybe_unused]] float rate, const type &c)

template <optim_loop_t LOOP> struct kind;

template <> struct kind<OPTIM_SGD_PLAIN> : slots<0> {
    NEXT(optim_sgd_t)
    {
        (void)s;
        return optim_sgd(p, g, NULL, &c);
    }
};

template <> struct kind<OPTIM_SGD_MOMENTUM> : slots<1> {
    NEXT(optim_sgd_t)
    {
        return optim_sgd(p, g, s[0], &c);
    }
};

template <> struct kind<OPTIM_ADAM> : slots<3> {
    NEXT(optim_adam_t)
    {
        return optim_adam(p, g, s[0], s[1], NULL, &c);
    }
};

template <> struct kind<OPTIM_ADAM_MOST> : slots<7> {
    NEXT(optim_adam_t)
    {
        return optim_adam(p, g, s[0], s[1], s[2], &c);
    }
};

template <> struct kind<OPTIM_RMSPROP_PLAIN> : slots<1> {
    NEXT(optim_rmsprop_t)
    {
        return optim_rmsprop(p, g, s[0], NULL, NULL, &c);
    }
};

template <> struct kind<OPTIM_RMSPROP_CENTERED> : slots<3> {
    NEXT(optim_rmsprop_t)
    {
        return optim_rmsprop(p, g, s[0], s[1], NULL, &c);
    }
};

template <> struct kind<OPTIM_RMSPROP_MOMENTUM> : slots<5> {
    NEXT(optim_rmsprop_t)
    {
        return optim_rmsprop(p, g, s[0], NULL, s[2], &c);
    }
};

template <> struct kind<OPTIM_RMSPROP_BOTH> : slots<7> {
    NEXT(optim_rmsprop_t)
    {
        return optim_rmsprop(p, g, s[0], s[1], s[2], &c);
    }
};

/* Measure.cu has added the gradient to the averages already. */
template <> struct kind<OPTIM_LAMB> : slots<3, 0> {
    NEXT(optim_lamb_t)
    {
        (void)g;
        return p - rate * optim_lamb_direction(p, *s[0], *s[1], &c);
    }
};

template <> struct kind<OPTIM_LARS> : slots<1> {
    NEXT(optim_lars_t)
    {
        return optim_lars(p, g, s[0], rate, &c);
    }
};

/* ---- a tile -------------------------------------------------------------- */

template <int N>
static __device__ __forceinline__ void load(const float *from, float (&to)[N])
{
    if constexpr (N == 4) {
        const float4 four = *reinterpret_cast<const float4 *>(from);

        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else {
        to[0] = *from;
    }
}

template <int N>
static __device__ __forceinline__ void store(float *to, const float (&from)[N])
{
    if constexpr (N == 4)
        *reinterpret_cast<float4 *>(to) =
            make_float4(from[0], from[1], from[2], from[3]);
    else
        *to = from[0];
}

/* What is the same for all elements of a tile. */
template <typename S> struct tile_same {
    S scalars;
    clip_t clip;
    float rate;
    bool first;    /* the first update, with which the average begins */
    int64_t shift; /* from an element of the arena to that of a slot */
};

/* Add the parameters [p] to the moving average. */
template <int N, typename S>
static __device__ __forceinline__ void
average_update(const optim_cuda_pass_t &pass, const tile_same<S> &same,
               int64_t state, const float (&p)[N])
{
    float average[N];

    if (same.first) {
        store(pass.average + state, p);
        return;
    }
    load(pass.average + state, average);
#pragma unroll
    for (int i = 0; i < N; i++)
        average[i] = optim_average_next(average[i], p[i], pass.fresh);
    store(pass.average + state, average);
}

/* Update the elements [at, at + N) of the arena. */
template <optim_loop_t LOOP, int N>
static __device__ __forceinline__ void
pack_update(const optim_cuda_pass_t &pass,
            const tile_same<typename kind<LOOP>::scalars> &same, int64_t at)
{
    const int64_t state = at + same.shift;
    float p[N], g[N], s[OPTIM_SLOTS_MAX][N];

    load(pass.params + at, p);
    load(pass.grads + at, g);
#pragma unroll
    for (int k = 0; k < OPTIM_SLOTS_MAX; k++)
        if (kind<LOOP>::reads >> k & 1)
            load(pass.slots[k] + state, s[k]);
#pragma unroll
    for (int i = 0; i < N; i++) {
        float *const own[OPTIM_SLOTS_MAX] = {&s[0][i], &s[1][i], &s[2][i]};

        p[i] = kind<LOOP>::next(p[i], clip_apply(same.clip, g[i]), own,
                                same.rate, same.scalars);
    }
    store(pass.params + at, p);
#pragma unroll
    for (int k = 0; k < OPTIM_SLOTS_MAX; k++)
        if (kind<LOOP>::writes >> k & 1)
            store(pass.slots[k] + state, s[k]);
    if (pass.average != NULL)
        average_update(pass, same, state, p);
}

template <optim_loop_t LOOP>
static __device__ __forceinline__ void
tile_update(const optim_cuda_pass_t &pass, const tile_t &tile)
{
    typedef typename kind<LOOP>::scalars scalars_t;
    const optim_cuda_run_t *run = &pass.runs[tile.run];
    const double ratio = pass.ratios != NULL ? pass.ratios[tile.run] : 1;
    const tile_same<scalars_t> same = {
        scalars_of<scalars_t>(pass, run->set), clip_of(pass),
        (float)(optim_in_sets(pass.in)[run->set].rate * ratio),
        pass.in->number == 1, run->state - run->offset};
    const int64_t base = tile.from / PACK * PACK;

    for (int64_t at = base + (int64_t)threadIdx.x * PACK; at < tile.to;
         at += TILE_THREADS * PACK) {
        if (pass.wide && at >= tile.from && at + PACK <= tile.to)
            pack_update<LOOP, PACK>(pass, same, at);
        else
            for (int64_t i = at < tile.from ? tile.from : at;
                 i < at + PACK && i < tile.to; i++)
                pack_update<LOOP, 1>(pass, same, i);
    }
}

static __global__ void __launch_bounds__(TILE_THREADS)
    arena_update(const optim_cuda_pass_t pass)
{
    if (!pass_updates(pass))
        return;
    for (int64_t t = blockIdx.x; t < pass.tiles; t += gridDim.x) {
        const tile_t tile = tile_find(pass, pass.tile + t);

        switch (pass.rules[pass.runs[tile.run].set].loop) {
#define CASE(loop)                     \
    case loop:                         \
        tile_update<loop>(pass, tile); \
        break;
            CASE(OPTIM_SGD_PLAIN)
            CASE(OPTIM_SGD_MOMENTUM)
            CASE(OPTIM_ADAM)
            CASE(OPTIM_ADAM_MOST)
            CASE(OPTIM_RMSPROP_PLAIN)
            CASE(OPTIM_RMSPROP_CENTERED)
            CASE(OPTIM_RMSPROP_MOMENTUM)
            CASE(OPTIM_RMSPROP_BOTH)
            CASE(OPTIM_LAMB)
            CASE(OPTIM_LARS)
#undef CASE
        default:
            break;
        }
    }
}

extern "C" err_code_t optim_cuda_tiles(const optim_cuda_pass_t *pass,
                                       dev_stream_t *stream, err_t *err)
{
    const int64_t grid = pass->tiles < TILE_BLOCKS ? pass->tiles : TILE_BLOCKS;

    LAUNCH(arena_update, (unsigned)grid, TILE_THREADS, 0,
           dev_cuda_stream(stream), *pass);
    return CUDA_CHECK_LAUNCH("the optimizer's update", err);
}
