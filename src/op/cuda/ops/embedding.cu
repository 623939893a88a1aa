/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * embedding: y[i,f] = w[x[i],f]. Backward sums dy over the positions of each
 * token, in rising order, without atomics: positions are sorted by token
 * (stably, device/sort.cuh). A block then adds a piece of the sorted list: the
 * sums of tokens whose positions are all in the piece are final; what a token
 * has in several pieces is added in the order of the pieces.
 */
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"
#include "op/cuda/device/sort.cuh"

/* Positions of a piece. */
#define PIECE 32

namespace
{

struct embedding_work {
    int64_t count, rows, features;
    index_divisor_t packs; /* of a row; forward */
    const int32_t *x;
    const float *w, *dy;
    float *y, *dw;
    bool add; /* to dw */
    sort_list sorted;
    /* [pieces,features]: sums of the token that began in an earlier piece, and
     * of the one that goes on in the next piece */
    float *heads, *tails;
};

/* Where the scratch of backward has what. */
struct embedding_scratch {
    int64_t pieces;
    size_t heads, tails, bytes; /* the sort's scratch is first */
};

} // namespace

/* The token of position [i]. Wrong ones were refused on the host. */
static __device__ __forceinline__ int64_t token_at(const embedding_work &work,
                                                   int64_t i)
{
    return sort_clamp(work.x[i], work.rows);
}

template <int N>
static __global__ void __launch_bounds__(EACH_THREADS)
    embedding_value(embedding_work work)
{
    for (int64_t i = each_first(); i < work.count * work.packs.by;
         i += each_step()) {
        int64_t at = i;
        const int64_t f = index_split(&at, work.packs) * N;
        float v[N];

        pack_load(work.w + token_at(work, at) * work.features + f, v);
        pack_store(work.y + at * work.features + f, v);
    }
}

static __device__ __forceinline__ void
embedding_add(const embedding_work &work, int64_t row, int64_t f, float sum)
{
    float *to = work.dw + row * work.features + f;

    *to = work.add ? *to + sum : sum;
}

/* Does the token of position [i] of the sorted list also have position i - 1?
 */
static __device__ __forceinline__ bool goes_on(const embedding_work &work,
                                               int64_t i)
{
    return i > 0 && i < work.count &&
           work.sorted.keys[i] == work.sorted.keys[i - 1];
}

static __global__ void __launch_bounds__(EACH_THREADS)
    embedding_pieces(embedding_work work)
{
    const int64_t first = (int64_t)blockIdx.x * PIECE;
    const int64_t end = first + PIECE < work.count ? first + PIECE : work.count;

    for (int64_t f = threadIdx.x; f < work.features; f += EACH_THREADS) {
        bool begins = !goes_on(work, first); /* the token, in this piece */
        float sum = 0;

        for (int64_t i = first; i < end; i++) {
            const int64_t from = work.sorted.places[i];

            sum += work.dy[from * work.features + f];
            if (i + 1 < end && goes_on(work, i + 1))
                continue;
            if (!begins)
                work.heads[blockIdx.x * work.features + f] = sum;
            else if (goes_on(work, i + 1))
                work.tails[blockIdx.x * work.features + f] = sum;
            else
                embedding_add(work, work.sorted.keys[i], f, sum);
            begins = true;
            sum = 0;
        }
    }
}

/* The token that begins in this block's piece and goes on in the next ones. */
static __global__ void __launch_bounds__(EACH_THREADS)
    embedding_join(embedding_work work)
{
    const int64_t end = ((int64_t)blockIdx.x + 1) * PIECE;
    const int64_t row = end < work.count ? work.sorted.keys[end] : -1;

    if (!goes_on(work, end) ||
        (work.sorted.keys[end - PIECE] == row && goes_on(work, end - PIECE)))
        return;
    for (int64_t f = threadIdx.x; f < work.features; f += EACH_THREADS) {
        float sum = work.tails[blockIdx.x * work.features + f];

        for (int64_t i = end; i < work.count && work.sorted.keys[i] == row;
             i += PIECE)
            sum += work.heads[i / PIECE * work.features + f];
        embedding_add(work, row, f, sum);
    }
}

/* ---- the op -------------------------------------------------------------- */

static embedding_scratch scratch_of(const op_t *op)
{
    const int64_t count = op_desc_elems(&op->config.in);
    const int64_t pieces = (count + PIECE - 1) / PIECE;
    const size_t each =
        mem_round((size_t)(pieces * op->config.out) * sizeof(float));
    const size_t heads = sort_bytes(count);

    return embedding_scratch{pieces, heads, heads + each, heads + 2 * each};
}

static err_code_t embedding_open(op_t *op, err_t *err)
{
    (void)err;
    op->adds = true;
    if (op->config.training)
        op->scratch_bytes = scratch_of(op).bytes;
    return ERR_OK;
}

static embedding_work work_of(const op_t *op, const op_args_t *args)
{
    embedding_work work = {};

    work.count = op_desc_elems(&op->config.in);
    work.rows = op->config.embedding.rows;
    work.features = op->config.out;
    work.x = (const int32_t *)args->x;
    work.w = (const float *)args->params[0];
    work.dy = (const float *)args->dy;
    work.y = (float *)args->y;
    work.dw = (float *)args->dparams[0];
    work.add = args->add;
    return work;
}

static err_code_t embedding_forward(op_t *op, const op_args_t *args, err_t *err)
{
    embedding_work work = work_of(op, args);
    const bool wide = work.features % 4 == 0 && pack_aligned(work.w, work.y);
    unsigned blocks;

    work.packs = index_divisor_of(work.features / (wide ? 4 : 1));
    blocks = each_blocks(work.count * work.packs.by, EACH_THREADS);
    if (wide)
        LAUNCH((embedding_value<4>), blocks, EACH_THREADS, 0, cuda_stream(args),
               work);
    else
        LAUNCH((embedding_value<1>), blocks, EACH_THREADS, 0, cuda_stream(args),
               work);
    return cuda_started(op, err);
}

static err_code_t embedding_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const embedding_scratch scratch = scratch_of(op);
    const cudaStream_t stream = cuda_stream(args);
    embedding_work work = work_of(op, args);
    const size_t bytes = (size_t)(work.rows * work.features) * sizeof(float);

    work.heads = (float *)((char *)args->scratch + scratch.heads);
    work.tails = (float *)((char *)args->scratch + scratch.tails);
    if (!work.add)
        CUDA_CHECK(cudaMemsetAsync(work.dw, 0, bytes, stream), "embedding",
                   err);
    work.sorted =
        sort_start(work.x, work.count, work.rows, args->scratch, stream);
    LAUNCH(embedding_pieces, (unsigned)scratch.pieces, EACH_THREADS, 0, stream,
           work);
    LAUNCH(embedding_join, (unsigned)scratch.pieces, EACH_THREADS, 0, stream,
           work);
    return cuda_started(op, err);
}

extern "C" const op_kernel_t cuda_embedding_kernel = {
    embedding_open, NULL, embedding_forward, embedding_backward};
