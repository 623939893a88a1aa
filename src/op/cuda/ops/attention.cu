/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention, without its matrix of scores in memory (Dao et al.,
 * FlashAttention, 2022). A block of threads has R queries of a head, or R keys,
 * and reads the keys, or the queries, in tiles of R. Forward keeps, for each
 * query, level = max + log(sum of exponentials), from which backward computes
 * p = exp(s - level) again. With delta = sum_d dy y, backward has two passes:
 *   over queries: ds = p (dy v' - delta) / sqrt(D),  dq = ds k
 *   over keys:    dk = ds' q,  dv = p' dy, summed over the heads of a group
 * With rounded factors, p of y is not rounded, as y takes part in delta: dp -
 * delta must cancel where a p is 1.
 * Each sum is done by one thread in a fixed order. A query without valid keys
 * has level = infinity, so its p are 0.
 *
 * In bfloat16 cuDNN computes attention instead, where it has plans
 * (attention_bf16.c).
 *
 * R shrinks with D, so that tiles [R, D] fit in 48 KiB of shared memory and
 * their sums in 16 registers of a thread.
 */
#include "op/cuda/attention.h"
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/reduce.cuh"
#include "op/cuda/device/round.cuh"

#define THREADS 128
#define TILE 2048 /* maximum of R * D */

namespace
{

enum { Q, K, V };

struct heads {
    op_attention_t a;
    const float *in[3]; /* q, k, v from their base on */
    float *gradient[3];
    const float *mask; /* [N,S], or [N] if lengths; NULL: none */
    bool lengths, causal;
    op_type_t type; /* of factors */
    float scale;
    float *y, *level; /* level [N,H,T]; NULL: not kept */
    const float *dy;
    float *delta; /* [N,H,T] */
};

/* Work of a thread on a tile: of the sums [R, D], rows 4 ty to 4 ty + 3 and
 * columns tx, tx + TX, tx + 2 TX and tx + 3 TX; of scores [R, R], the same rows
 * and columns tx + c TX. */
template <int R> struct tile {
    static constexpr int TX = TILE / 4 / R;
    static constexpr int COLUMNS = R > TX ? R / TX : 1;
};

/* Distance of rows of tiles in shared memory: odd, so that the threads of a
 * warp read from different banks. */
__host__ __device__ inline int row_of(int64_t D)
{
    return (int)(D | 1);
}

/* A block's part of the work. */
struct part {
    int64_t n, head, first; /* sample, head, first query or key */
};

template <int R>
__device__ __forceinline__ part part_of(int64_t tokens, int64_t heads)
{
    /* The product of these and the samples is the size of the grid. */
    const unsigned tiles = (unsigned)((tokens + R - 1) / R);
    const unsigned row = blockIdx.x / tiles, H = (unsigned)heads;

    return {row / H, row % H, (int64_t)(blockIdx.x % tiles) * R};
}

/* Address of token [t] of head [h] in q, k or v. */
__device__ __forceinline__ int64_t at(const heads &s, int which, int64_t n,
                                      int64_t t, int64_t h)
{
    return (n * (which == Q ? s.a.T : s.a.S) + t) * s.a.stride[which] +
           h * s.a.D;
}

/* Load R tokens of q, k or v. Those behind the last are 0. */
template <int R>
__device__ __forceinline__ void load(const heads &s, int which, int64_t n,
                                     int64_t t, int64_t h, float *to)
{
    const int D = (int)s.a.D, row = row_of(D);
    const int64_t left = (which == Q ? s.a.T : s.a.S) - t;

    for (int i = threadIdx.x; i < R * D; i += THREADS) {
        const int r = i / D, d = i % D;

        to[r * row + d] =
            r < left ? round_factor(s.type,
                                    s.in[which][at(s, which, n, t + r, h) + d])
                     : 0.0f;
    }
}

/* The same of dy. */
template <int R>
__device__ __forceinline__ void load_dy(const heads &s, int64_t n, int64_t t,
                                        int64_t h, float *to)
{
    const int D = (int)s.a.D, row = row_of(D);

    for (int i = threadIdx.x; i < R * D; i += THREADS) {
        const int r = i / D, d = i % D;
        const int64_t from = ((n * s.a.T + t + r) * s.a.H + h) * D + d;

        to[r * row + d] =
            t + r < s.a.T ? round_factor(s.type, s.dy[from]) : 0.0f;
    }
}

/* Does query [i] read key [j]? */
__device__ __forceinline__ bool reads(const heads &s, int64_t n, int64_t i,
                                      int64_t j)
{
    if (i >= s.a.T || j >= s.a.S || (s.causal && j > i))
        return false;
    if (s.mask == nullptr)
        return true;
    return s.lengths ? (float)j < s.mask[n] : s.mask[n * s.a.S + j] != 0.0f;
}

/* Products of the thread's rows of [a] with its rows (columns of the scores)
 * of [b]. */
template <int R>
__device__ __forceinline__ void multiply(const float *a, const float *b, int D,
                                         float (&out)[4][tile<R>::COLUMNS])
{
    const int row = row_of(D);
    const int tx = threadIdx.x % tile<R>::TX, ty = threadIdx.x / tile<R>::TX;

    for (int r = 0; r < 4; r++)
        for (int c = 0; c < tile<R>::COLUMNS; c++)
            out[r][c] = 0;
    if (tx >= R)
        return;
    for (int d = 0; d < D; d++) {
        float right[tile<R>::COLUMNS];

        for (int c = 0; c < tile<R>::COLUMNS; c++)
            right[c] = b[(tx + c * tile<R>::TX) * row + d];
        for (int r = 0; r < 4; r++) {
            const float left = a[(4 * ty + r) * row + d];

            for (int c = 0; c < tile<R>::COLUMNS; c++)
                out[r][c] += left * right[c];
        }
    }
}

/* sums += m b, or m' b if TRANSPOSED, for [m] of [R, R]. */
template <int R, bool TRANSPOSED>
__device__ __forceinline__ void add_product(const float *m, const float *b,
                                            int D, float (&sums)[4][4])
{
    const int row = row_of(D);
    const int tx = threadIdx.x % tile<R>::TX, ty = threadIdx.x / tile<R>::TX;

    for (int j = 0; j < R; j++) {
        float right[4];

        for (int c = 0; c < 4; c++) {
            const int d = tx + c * tile<R>::TX;

            right[c] = d < D ? b[j * row + d] : 0.0f;
        }
        for (int r = 0; r < 4; r++) {
            const int i = 4 * ty + r;
            const float left =
                TRANSPOSED ? m[j * (R + 1) + i] : m[i * (R + 1) + j];

            for (int c = 0; c < 4; c++)
                sums[r][c] += left * right[c];
        }
    }
}

/* Write the sums, times [factor], to gradient [which] of tokens from [t] on. */
template <int R>
__device__ __forceinline__ void store(const heads &s, int which, const part &p,
                                      const float (&sums)[4][4])
{
    const int tx = threadIdx.x % tile<R>::TX, ty = threadIdx.x / tile<R>::TX;

    if (s.gradient[which] == nullptr)
        return;
    for (int r = 0; r < 4; r++) {
        const int64_t t = p.first + 4 * ty + r;

        if (t >= (which == Q ? s.a.T : s.a.S))
            continue;
        for (int c = 0; c < 4; c++) {
            const int d = tx + c * tile<R>::TX;

            if (d < s.a.D)
                s.gradient[which][at(s, which, p.n, t, p.head) + d] =
                    sums[r][c];
        }
    }
}

/* ---- forward ------------------------------------------------------------- */

/* Softmax of the rows of a block so far. */
template <int R> struct progress {
    float top[R], sum[R], factor[R]; /* factor: of the sums before */
};

/* Turn scores into exp(score - top); a warp has every fourth row, a lane a
 * column. */
template <int R>
__device__ __forceinline__ void soften(float *scores, progress<R> *so_far)
{
    const int lane = threadIdx.x % 32;

    for (int r = threadIdx.x / 32; r < R; r += THREADS / 32) {
        const float score = lane < R ? scores[r * (R + 1) + lane] : -INFINITY;
        const float before = so_far->top[r];
        const float top = larger(before, warp_max(score));
        const float base = top == -INFINITY ? 0.0f : top;
        const float e = expf(score - base);
        const float sum = warp_sum(e);

        if (lane < R)
            scores[r * (R + 1) + lane] = e;
        __syncwarp();
        if (lane == 0) {
            const float factor = expf(before - base);

            so_far->factor[r] = factor;
            so_far->sum[r] = so_far->sum[r] * factor + sum;
            so_far->top[r] = top;
        }
    }
}

template <int R>
__device__ __forceinline__ void score(const heads &s, const part &p,
                                      int64_t key, const float *q,
                                      const float *k, float *scores)
{
    const int tx = threadIdx.x % tile<R>::TX, ty = threadIdx.x / tile<R>::TX;
    float out[4][tile<R>::COLUMNS];

    multiply<R>(q, k, (int)s.a.D, out);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < tile<R>::COLUMNS; c++) {
            const int i = 4 * ty + r, j = tx + c * tile<R>::TX;

            if (j < R)
                scores[i * (R + 1) + j] = reads(s, p.n, p.first + i, key + j)
                                              ? out[r][c] * s.scale
                                              : -INFINITY;
        }
}

template <int R>
__device__ __forceinline__ void finish(const heads &s, const part &p,
                                       const progress<R> &so_far,
                                       const float (&sums)[4][4])
{
    const int tx = threadIdx.x % tile<R>::TX, ty = threadIdx.x / tile<R>::TX;

    for (int r = 0; r < 4; r++) {
        const int i = 4 * ty + r;
        const int64_t t = p.first + i;
        const float sum = so_far.sum[i];

        if (t >= s.a.T)
            continue;
        for (int c = 0; c < 4; c++) {
            const int d = tx + c * tile<R>::TX;

            if (d < s.a.D)
                s.y[((p.n * s.a.T + t) * s.a.H + p.head) * s.a.D + d] =
                    sum == 0.0f ? 0.0f : sums[r][c] / sum;
        }
        if (tx == 0 && s.level != nullptr)
            s.level[(p.n * s.a.H + p.head) * s.a.T + t] =
                sum == 0.0f ? INFINITY : so_far.top[i] + logf(sum);
    }
}

template <int R>
__global__ void __launch_bounds__(THREADS, 4) attention_forward(heads s)
{
    __shared__ progress<R> so_far;
    DYNAMIC_SHARED(float, q);
    const int D = (int)s.a.D, ty = threadIdx.x / tile<R>::TX;
    float *kv = q + R * row_of(D), *scores = kv + R * row_of(D);
    const part p = part_of<R>(s.a.T, s.a.H);
    const int64_t g = p.head / (s.a.H / s.a.G);
    const int64_t end = s.causal && p.first + R < s.a.S ? p.first + R : s.a.S;
    float sums[4][4] = {};

    load<R>(s, Q, p.n, p.first, p.head, q);
    if (threadIdx.x < R) {
        so_far.top[threadIdx.x] = -INFINITY;
        so_far.sum[threadIdx.x] = 0;
    }
    for (int64_t key = 0; key < end; key += R) {
        load<R>(s, K, p.n, key, g, kv);
        __syncthreads();
        score<R>(s, p, key, q, kv, scores);
        __syncthreads();
        load<R>(s, V, p.n, key, g, kv);
        soften<R>(scores, &so_far);
        __syncthreads();
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 4; c++)
                sums[r][c] *= so_far.factor[4 * ty + r];
        add_product<R, false>(scores, kv, D, sums);
        __syncthreads();
    }
    finish<R>(s, p, so_far, sums);
}

/* ---- backward ------------------------------------------------------------ */

/* delta of each query: a warp has one. dy is rounded as in dy v', from which
 * delta is subtracted, so that the same errors cancel. */
__global__ void __launch_bounds__(THREADS) attention_delta(heads s)
{
    const int64_t step = (int64_t)gridDim.x * (THREADS / 32);

    for (int64_t i = (int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
         i < s.a.N * s.a.T * s.a.H; i += step) {
        const int64_t h = i % s.a.H, t = i / s.a.H % s.a.T,
                      n = i / s.a.H / s.a.T;
        float sum = 0;

        for (int64_t d = threadIdx.x % 32; d < s.a.D; d += 32)
            sum +=
                round_factor(s.type, s.dy[i * s.a.D + d]) * s.y[i * s.a.D + d];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            s.delta[(n * s.a.H + h) * s.a.T + t] = sum;
    }
}

/* The tiles of a block in backward. */
struct tiles {
    float *q, *dy, *k, *v, *p, *ds;
};

template <int R>
__device__ __forceinline__ tiles tiles_at(float *memory, int64_t D)
{
    const int size = R * row_of(D);
    float *p = memory + 4 * size;

    return {memory, memory + size,  memory + 2 * size, memory + 3 * size,
            p,      p + R * (R + 1)};
}

/* Compute p (if PS) and ds of queries from [query] on and keys from [key] on.
 */
template <int R, bool PS>
__device__ __forceinline__ void slope(const heads &s, int64_t n, int64_t h,
                                      int64_t query, int64_t key,
                                      const tiles &t)
{
    const int tx = threadIdx.x % tile<R>::TX, ty = threadIdx.x / tile<R>::TX;
    float score[4][tile<R>::COLUMNS], dp[4][tile<R>::COLUMNS];

    multiply<R>(t.q, t.k, (int)s.a.D, score);
    multiply<R>(t.dy, t.v, (int)s.a.D, dp);
    /* As a loop it would keep the products in memory. */
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int i = 4 * ty + r;
        const int64_t at = (n * s.a.H + h) * s.a.T + query + i;
        const bool inside = query + i < s.a.T;
        const float level = inside ? s.level[at] : INFINITY;
        const float delta = inside ? s.delta[at] : 0.0f;

        for (int c = 0; c < tile<R>::COLUMNS; c++) {
            const int j = tx + c * tile<R>::TX;
            const float p = reads(s, n, query + i, key + j)
                                ? expf(score[r][c] * s.scale - level)
                                : 0.0f;

            if (j >= R)
                continue;
            if (PS)
                t.p[i * (R + 1) + j] = round_factor(s.type, p);
            t.ds[i * (R + 1) + j] =
                round_factor(s.type, p * (dp[r][c] - delta) * s.scale);
        }
    }
}

template <int R>
__global__ void __launch_bounds__(THREADS, 4) attention_queries(heads s)
{
    DYNAMIC_SHARED(float, memory);
    const tiles t = tiles_at<R>(memory, s.a.D);
    const part p = part_of<R>(s.a.T, s.a.H);
    const int64_t g = p.head / (s.a.H / s.a.G);
    const int64_t end = s.causal && p.first + R < s.a.S ? p.first + R : s.a.S;
    float sums[4][4] = {};

    load<R>(s, Q, p.n, p.first, p.head, t.q);
    load_dy<R>(s, p.n, p.first, p.head, t.dy);
    for (int64_t key = 0; key < end; key += R) {
        load<R>(s, K, p.n, key, g, t.k);
        load<R>(s, V, p.n, key, g, t.v);
        __syncthreads();
        slope<R, false>(s, p.n, p.head, p.first, key, t);
        __syncthreads();
        add_product<R, false>(t.ds, t.k, (int)s.a.D, sums);
        __syncthreads();
    }
    store<R>(s, Q, p, sums);
}

template <int R>
__global__ void __launch_bounds__(THREADS, 4) attention_keys(heads s)
{
    DYNAMIC_SHARED(float, memory);
    const tiles t = tiles_at<R>(memory, s.a.D);
    const part p = part_of<R>(s.a.S, s.a.G);
    const int64_t each = s.a.H / s.a.G;
    float dk[4][4] = {}, dv[4][4] = {};

    load<R>(s, K, p.n, p.first, p.head, t.k);
    load<R>(s, V, p.n, p.first, p.head, t.v);
    for (int64_t h = p.head * each; h < (p.head + 1) * each; h++)
        for (int64_t query = s.causal ? p.first : 0; query < s.a.T;
             query += R) {
            load<R>(s, Q, p.n, query, h, t.q);
            load_dy<R>(s, p.n, query, h, t.dy);
            __syncthreads();
            slope<R, true>(s, p.n, h, query, p.first, t);
            __syncthreads();
            add_product<R, true>(t.ds, t.q, (int)s.a.D, dk);
            add_product<R, true>(t.p, t.dy, (int)s.a.D, dv);
            __syncthreads();
        }
    store<R>(s, K, p, dk);
    store<R>(s, V, p, dv);
}

} // namespace

/* ---- op ------------------------------------------------------------------ */

static int64_t queries_of(const op_t *op)
{
    const op_attention_t a = op_attention_of(&op->config);

    return a.N * a.H * a.T;
}

static err_code_t attention_settle(op_t *op, err_t *err)
{
    bool taken = false;
    const err_code_t rc = cuda_attention_bf16_take(op, &taken, err);

    if (rc != ERR_OK || taken || !op->config.training)
        return rc;
    op->workspace_bytes = (size_t)queries_of(op) * sizeof(float);
    op->scratch_bytes = op->workspace_bytes;
    op->reads_y = true;
    return ERR_OK;
}

static err_code_t attention_open(op_t *op, err_t *err)
{
    op->settle = attention_settle;
    return cuda_attention_bf16_begin(op, err);
}

static heads heads_of(const op_t *op, const op_args_t *args)
{
    const op_heads_t *options = &op->config.heads;
    heads s = {};

    s.a = op_attention_of(&op->config);
    s.causal = options->causal;
    s.type = op->config.compute_type;
    s.scale = 1.0f / sqrtf((float)s.a.D);
    for (int i = 0; i < 3; i++) {
        const int from = s.a.input[i];
        const void *in = from == 0 ? args->x : args->other[from - 1];
        void *gradient = from == 0 ? args->dx : args->dother[from - 1];

        if (from == 0 && !op->config.need_dx)
            gradient = NULL;
        s.in[i] = (const float *)in + s.a.base[i];
        s.gradient[i] =
            gradient == NULL ? NULL : (float *)gradient + s.a.base[i];
    }
    if (options->masked) {
        s.mask = (const float *)args->other[op->config.others - 1];
        s.lengths = op->config.other[op->config.others - 1].dims[1] == 1;
    }
    s.y = (float *)args->y;
    s.level = op->config.training ? (float *)args->workspace : NULL;
    s.dy = (const float *)args->dy;
    s.delta = (float *)args->scratch;
    return s;
}

static unsigned blocks_of(const heads &s, int64_t tokens, int64_t heads, int R)
{
    return (unsigned)(s.a.N * heads * ((tokens + R - 1) / R));
}

/* Bytes of [count] tiles [R, D] and [squares] tiles [R, R]. */
static size_t shared_of(const heads &s, int R, int count, int squares)
{
    return (size_t)(count * R * row_of(s.a.D) + squares * R * (R + 1)) *
           sizeof(float);
}

template <int R> static void forward_start(const heads &s, cudaStream_t stream)
{
    LAUNCH(attention_forward<R>, blocks_of(s, s.a.T, s.a.H, R), THREADS,
           shared_of(s, R, 2, 1), stream, s);
}

template <int R> static void backward_start(const heads &s, cudaStream_t stream)
{
    if (s.gradient[Q] != NULL)
        LAUNCH(attention_queries<R>, blocks_of(s, s.a.T, s.a.H, R), THREADS,
               shared_of(s, R, 4, 2), stream, s);
    if (s.gradient[K] != NULL || s.gradient[V] != NULL)
        LAUNCH(attention_keys<R>, blocks_of(s, s.a.S, s.a.G, R), THREADS,
               shared_of(s, R, 4, 2), stream, s);
}

static err_code_t attention_run_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    const heads s = heads_of(op, args);
    const cudaStream_t stream = cuda_stream(args);

    if (s.a.D <= TILE / 32)
        forward_start<32>(s, stream);
    else if (s.a.D <= TILE / 16)
        forward_start<16>(s, stream);
    else
        forward_start<8>(s, stream);
    return cuda_started(op, err);
}

static err_code_t attention_run_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    const heads s = heads_of(op, args);
    const cudaStream_t stream = cuda_stream(args);
    const int last = op->config.others - 1;

    /* The gradient of the mask is 0. */
    if (op->config.heads.masked && args->dother[last] != NULL)
        CUDA_CHECK(cudaMemsetAsync(args->dother[last], 0,
                                   op->config.other[last].bytes, stream),
                   "attention", err);
    LAUNCH(attention_delta, each_blocks(queries_of(op), THREADS / 32), THREADS,
           0, stream, s);
    if (s.a.D <= TILE / 32)
        backward_start<32>(s, stream);
    else if (s.a.D <= TILE / 16)
        backward_start<16>(s, stream);
    else
        backward_start<8>(s, stream);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_attention_kernel = {
    attention_open, cuda_attention_bf16_close, attention_run_forward,
    attention_run_backward};
