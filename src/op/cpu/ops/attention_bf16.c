/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention with products in bfloat16: q, k, v, dy, p and ds are rounded where
 * they are factors. Sums, softmax and its gradient are float32. As in float32,
 * blocks of queries are combined with blocks of keys, but backward stores
 * scores as [keys, queries], too. So every factor has one of the forms of
 * gemm_bf16.h. Blocks of tokens are converted to these forms once, and blocks
 * of scores without a transposition. y and dq are summed as [features,
 * queries].
 */
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "op/cpu/ops/attention.h"
#include "op/cpu/vector/gemm_bf16.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

#define BLOCK CPU_ATTENTION_BLOCK
#define BLOCKS 4 /* of keys or queries, whose scores are stored at a time */
_Static_assert(CPU_BF16_BLOCK == CPU_ATTENTION_BLOCK, "a block has four forms");

/* The buffers of one thread. Each buffer stores its blocks of tokens one after
 * the other. */
typedef struct bf16_memory {
    int64_t width;               /* D, padded */
    cpu_bf16_t *k_rows, *v_rows; /* [S, width] */
    cpu_bf16_t *columns; /* forward: transposed v; backward: transposed k */
    cpu_bf16_t *q_transposed, *q_packed, *dy_transposed,
        *dy_packed;    /* [T, width] */
    cpu_bf16_t *block; /* temporary: a block between two conversions */
    float *dk, *dv;    /* [S, width] */
    float *sums; /* transposed y of a block, or dq: [width, BLOCK] per block */
    float *rows; /* a block of [sums], transposed to [BLOCK, width] */
    float *top, *inverse, *delta; /* of the queries of one head, [T] */
    const float *valid;           /* mask of a sample; NULL: no mask */
    char *from; /* start of the memory; NULL: only measure its size */
    size_t size;
} bf16_memory_t;

static void *memory_take(bf16_memory_t *memory, int64_t elements, size_t size)
{
    const size_t at = memory->size;

    memory->size += mem_round((size_t)elements * size);
    return memory->from == NULL ? NULL : memory->from + at;
}

static bf16_memory_t memory_make(const op_attention_t *a, bool training,
                                 char *from)
{
    bf16_memory_t memory = {.width = cpu_gemm_bf16_pad(a->D), .from = from};
    const int64_t block = BLOCK * memory.width,
                  tokens = cpu_gemm_bf16_pad(a->T);
    const int64_t keys = cpu_gemm_bf16_pad(a->S) * memory.width;
    const int64_t queries = training ? tokens * memory.width : block;

    memory.k_rows = memory_take(&memory, keys, sizeof(cpu_bf16_t));
    memory.columns = memory_take(&memory, keys, sizeof(cpu_bf16_t));
    memory.q_transposed = memory_take(&memory, queries, sizeof(cpu_bf16_t));
    memory.block = memory_take(&memory, block, sizeof(cpu_bf16_t));
    memory.sums = memory_take(&memory, queries, sizeof(float));
    memory.rows = memory_take(&memory, block, sizeof(float));
    if (!training)
        return memory;
    memory.v_rows = memory_take(&memory, keys, sizeof(cpu_bf16_t));
    memory.q_packed = memory_take(&memory, queries, sizeof(cpu_bf16_t));
    memory.dy_transposed = memory_take(&memory, queries, sizeof(cpu_bf16_t));
    memory.dy_packed = memory_take(&memory, queries, sizeof(cpu_bf16_t));
    memory.dk = memory_take(&memory, keys, sizeof(float));
    memory.dv = memory_take(&memory, keys, sizeof(float));
    memory.top = memory_take(&memory, tokens, sizeof(float));
    memory.inverse = memory_take(&memory, tokens, sizeof(float));
    memory.delta = memory_take(&memory, tokens, sizeof(float));
    return memory;
}

size_t cpu_attention_bf16_bytes(const op_attention_t *a, bool training)
{
    return memory_make(a, training, NULL).size;
}

static bf16_memory_t memory_of_thread(const cpu_attention_work_t *work,
                                      bool backward)
{
    char *from = work->memory + (size_t)simd_team_number() * work->memory_bytes;

    /* With NULL, memory_make would only measure the size. */
    check(from != NULL, "a thread has no memory");
    check(memory_make(&work->a, backward, NULL).size <= work->memory_bytes,
          "a thread has %zu bytes only", work->memory_bytes);
    return memory_make(&work->a, backward, from);
}

/* Compute the scores [keys, queries] of a block of keys and a block of
 * queries. */
static void bf16_products(const cpu_attention_work_t *work, int64_t width,
                          const cpu_bf16_t *rows, const cpu_bf16_t *transposed,
                          float *to)
{
    const cpu_gemm_bf16_t product = {.tiles = work->tiles,
                                     .fresh = true,
                                     .M = BLOCK,
                                     .N = BLOCK,
                                     .K = width,
                                     .a = rows,
                                     .b = transposed,
                                     .a_row = width,
                                     .a_next = CPU_BF16_BLOCK,
                                     .b_row = BLOCK,
                                     .c_row = BLOCK,
                                     .c = to};

    cpu_gemm_bf16_add(&product);
}

/* C [M,N] += A B, summed over the tokens of K / BLOCK blocks. For each block, A
 * is [M, BLOCK], and B is [BLOCK, N], packed. Sets the distances in [product].
 */
static void bf16_sum(const cpu_attention_work_t *work, cpu_gemm_bf16_t product)
{
    product.tiles = work->tiles;
    product.a_row = BLOCK;
    product.a_next = product.M * BLOCK;
    product.b_row = product.c_row = product.N;
    cpu_gemm_bf16_add(&product);
}

static int64_t bf16_blocks(int64_t tokens)
{
    const int64_t blocks = (tokens + BLOCK - 1) / BLOCK;

    return blocks < BLOCKS ? blocks : BLOCKS;
}

/* ---- forward ------------------------------------------------------------- */

/* Convert the keys and values of key head [g]. */
static void bf16_pack_forward(const cpu_attention_work_t *work,
                              bf16_memory_t *memory, int64_t n, int64_t g)
{
    const op_attention_t *a = &work->a;

    memory->valid = cpu_attention_mask(work, n, 0);
    for (int64_t k0 = 0; k0 < a->S; k0 += BLOCK) {
        cpu_gemm_bf16_rows(cpu_attention_rows(work, CPU_K, n, k0, g), a->D,
                           memory->k_rows + k0 * memory->width);
        cpu_gemm_bf16_pack(cpu_attention_rows(work, CPU_V, n, k0, g), a->D,
                           memory->block);
        cpu_gemm_bf16_transpose(memory->block, BLOCK / 2, memory->width,
                                memory->columns + k0 * memory->width);
    }
}

SIMD_CLONES
static void bf16_rescale(float *sums, int64_t width, const float *factor)
{
    for (int64_t d = 0; d < width; d++)
        for (int i = 0; i < BLOCK; i++)
            sums[d * BLOCK + i] *= factor[i];
}

/* A block of queries from [i0] on, which read the keys before [last], and their
 * running softmax. */
typedef struct bf16_queries {
    int64_t i0, last;
    cpu_attention_columns_t softmax;
} bf16_queries_t;

/* Process the keys from [k0] on, at most BLOCKS blocks of them, for the
 * queries. */
static void bf16_forward_keys(const cpu_attention_work_t *work,
                              bf16_memory_t *memory, bf16_queries_t *queries,
                              int64_t k0)
{
    const int64_t last = queries->last;
    const int64_t blocks = bf16_blocks(last - k0), width = memory->width;
    const int64_t keys =
        last - k0 < blocks * BLOCK ? last - k0 : blocks * BLOCK;
    cpu_bf16_t p[BLOCKS * BLOCK * BLOCK];
    float s[BLOCKS * BLOCK][BLOCK];

    for (int64_t k = 0; k < keys; k += BLOCK)
        bf16_products(work, width, memory->k_rows + (k0 + k) * width,
                      memory->q_transposed, s[k]);
    queries->softmax.valid = memory->valid == NULL ? NULL : memory->valid + k0;
    cpu_attention_softmax(s, keys, work->causal ? queries->i0 - k0 + 1 : keys,
                          work->scale, &queries->softmax);
    for (int64_t k = 0; k < keys; k += BLOCK)
        cpu_gemm_bf16_pack(
            (cpu_rows_t){s[k], BLOCK, cpu_attention_count(k, keys)}, BLOCK,
            p + k * BLOCK);
    if (k0 > 0)
        bf16_rescale(memory->sums, width, queries->softmax.factor);
    bf16_sum(work, (cpu_gemm_bf16_t){.M = width,
                                     .N = BLOCK,
                                     .K = blocks * BLOCK,
                                     .a = memory->columns + k0 * width,
                                     .b = p,
                                     .c = memory->sums});
}

/* Compute y of the queries from [i0] on. */
static void bf16_forward_block(const cpu_attention_work_t *work,
                               bf16_memory_t *memory, int64_t n, int64_t h,
                               int64_t i0)
{
    const op_attention_t *a = &work->a;
    const int64_t rows = cpu_attention_count(i0, a->T);
    bf16_queries_t queries;

    queries.i0 = i0;
    queries.last = work->causal ? i0 + rows : a->S;
    cpu_gemm_bf16_rows(cpu_attention_rows(work, CPU_Q, n, i0, h), a->D,
                       memory->block);
    cpu_gemm_bf16_transpose(memory->block, BLOCK, memory->width / 2,
                            memory->q_transposed);
    memset(memory->sums, 0, (size_t)(memory->width * BLOCK) * sizeof(float));
    cpu_attention_start(&queries.softmax);
    for (int64_t k0 = 0; k0 < queries.last; k0 += BLOCKS * BLOCK)
        bf16_forward_keys(work, memory, &queries, k0);
    cpu_gemm_bf16_transpose(memory->sums, memory->width, BLOCK, memory->rows);
    for (int64_t i = 0; i < rows; i++) {
        float *y = work->y + cpu_attention_y(work, n, i0 + i, h);
        float inverse = cpu_attention_keep(work, &queries.softmax,
                                           (n * a->H + h) * a->T + i0, i);

        for (int64_t d = 0; d < a->D; d++)
            y[d] = memory->rows[i * memory->width + d] * inverse;
    }
}

void cpu_attention_bf16_forward(void *context, int64_t first, int64_t last)
{
    const cpu_attention_work_t *work = context;
    const op_attention_t *a = &work->a;
    bf16_memory_t memory = memory_of_thread(work, false);

    cpu_gemm_bf16_begin(work->tiles);
    for (int64_t nh = first; nh < last; nh++) {
        int64_t n = nh / a->H, h = nh % a->H;

        bf16_pack_forward(work, &memory, n, h / (a->H / a->G));
        for (int64_t i0 = 0; i0 < a->T; i0 += BLOCK)
            bf16_forward_block(work, &memory, n, h, i0);
    }
    cpu_gemm_bf16_end(work->tiles);
}

/* ---- backward ------------------------------------------------------------ */

/* Convert the keys and values of key head [g], and set dk and dv to 0. */
static void bf16_pack_keys(const cpu_attention_work_t *work,
                           bf16_memory_t *memory, int64_t n, int64_t g)
{
    const op_attention_t *a = &work->a;
    const int64_t keys = cpu_gemm_bf16_pad(a->S) * memory->width;

    memory->valid = cpu_attention_mask(work, n, 0);
    for (int64_t k0 = 0; k0 < a->S; k0 += BLOCK) {
        const int64_t at = k0 * memory->width;
        const cpu_rows_t k = cpu_attention_rows(work, CPU_K, n, k0, g);

        cpu_gemm_bf16_rows(k, a->D, memory->k_rows + at);
        cpu_gemm_bf16_pack(k, a->D, memory->block);
        cpu_gemm_bf16_transpose(memory->block, BLOCK / 2, memory->width,
                                memory->columns + at);
        cpu_gemm_bf16_rows(cpu_attention_rows(work, CPU_V, n, k0, g), a->D,
                           memory->v_rows + at);
    }
    memset(memory->dk, 0, (size_t)keys * sizeof(float));
    memset(memory->dv, 0, (size_t)keys * sizeof(float));
}

/* Dot product of a row of y and of dy. dy is rounded as in the products, so
 * that the two terms of ds cancel where one key has all the weight. */
SIMD_CLONES
static float bf16_delta(const float *y, const cpu_bf16_t *dy, int64_t D)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;

    for (int64_t d = 0; d < D; d += SIMD_LANES)
        for (int64_t k = 0; k < SIMD_LANES && d + k < D; k++) {
            uint32_t bits = (uint32_t)dy[d + k] << 16;
            float value;

            memcpy(&value, &bits, sizeof value);
            lanes[k] += y[d + k] * value;
        }
    for (int k = 0; k < SIMD_LANES; k++)
        sum += lanes[k];
    return sum;
}

/* Convert the queries from [i0] on of head [h] and their dy, and load what
 * forward stored. Queries that only pad the block get weight 0. */
static void bf16_pack_queries(const cpu_attention_work_t *work,
                              bf16_memory_t *memory, int64_t n, int64_t h,
                              int64_t i0)
{
    const op_attention_t *a = &work->a;
    const int64_t rows = cpu_attention_count(i0, a->T);
    const int64_t at = i0 * memory->width;
    const int64_t kept = (n * a->H + h) * a->T + i0;
    const float *y = work->y + cpu_attention_y(work, n, i0, h);
    const cpu_rows_t q = cpu_attention_rows(work, CPU_Q, n, i0, h);
    const cpu_rows_t dy = cpu_attention_dy(work, n, i0, h);

    cpu_gemm_bf16_rows(q, a->D, memory->block);
    cpu_gemm_bf16_transpose(memory->block, BLOCK, memory->width / 2,
                            memory->q_transposed + at);
    cpu_gemm_bf16_pack(q, a->D, memory->q_packed + at);
    cpu_gemm_bf16_rows(dy, a->D, memory->block);
    cpu_gemm_bf16_transpose(memory->block, BLOCK, memory->width / 2,
                            memory->dy_transposed + at);
    cpu_gemm_bf16_pack(dy, a->D, memory->dy_packed + at);
    for (int64_t i = 0; i < BLOCK; i++) {
        const bool real = i < rows;

        memory->top[i0 + i] = real ? work->top[kept + i] : 0;
        memory->inverse[i0 + i] = real ? work->inverse[kept + i] : 0;
        memory->delta[i0 + i] =
            real ? bf16_delta(y + i * dy.row, memory->block + i * memory->width,
                              a->D)
                 : 0;
    }
}

/* Scores of a block of keys and a block of queries, [keys, queries]. */
typedef struct bf16_scores {
    cpu_square_t p;
    cpu_square_t ds; /* at first dp */
} bf16_scores_t;

/* Convert the products of q and k, and of dy and v, to p and ds. */
SIMD_CLONES
static void bf16_slope(const cpu_attention_work_t *work,
                       const bf16_memory_t *memory, int64_t i0, int64_t k0,
                       bf16_scores_t *scores)
{
    const float *top = memory->top + i0, *inverse = memory->inverse + i0;
    const float *delta = memory->delta + i0, scale = work->scale;
    const int32_t keys = (int32_t)cpu_attention_count(k0, work->a.S);
    const int32_t ahead = work->causal ? (int32_t)(i0 - k0) + 1 : keys;

    for (int32_t j = 0; j < keys; j++)
        for (int32_t i = 0; i < BLOCK; i++) {
            float e =
                simd_math_exp(scores->p[j][i] * scale - top[i]) * inverse[i];
            float slope = e * (scores->ds[j][i] - delta[i]) * scale;

            scores->p[j][i] = j < i + ahead ? e : 0;
            scores->ds[j][i] = j < i + ahead ? slope : 0;
        }
    for (int32_t j = 0; j < keys && memory->valid != NULL; j++)
        for (int32_t i = 0; i < BLOCK && memory->valid[k0 + j] == 0; i++)
            scores->p[j][i] = scores->ds[j][i] = 0;
}

/* Process at most BLOCKS blocks of queries, from [i0] on, with the keys from
 * [k0] on: adds to dq, dk and dv. */
static void bf16_backward_block(const cpu_attention_work_t *work,
                                bf16_memory_t *memory, int64_t i0, int64_t k0)
{
    const int64_t keys = cpu_attention_count(k0, work->a.S);
    const int64_t width = memory->width, k = k0 * width;
    const int64_t blocks = bf16_blocks(work->a.T - i0);
    cpu_bf16_t p_rows[BLOCKS * BLOCK * BLOCK], ds_rows[BLOCKS * BLOCK * BLOCK];
    cpu_bf16_t packed[BLOCK * BLOCK];
    bf16_scores_t scores;
    cpu_rows_t p, ds;

    for (int64_t b = 0; b < blocks; b++) {
        const int64_t q = (i0 + b * BLOCK) * width, at = b * BLOCK * BLOCK;

        bf16_products(work, width, memory->k_rows + k, memory->q_transposed + q,
                      scores.p[0]);
        bf16_products(work, width, memory->v_rows + k,
                      memory->dy_transposed + q, scores.ds[0]);
        bf16_slope(work, memory, i0 + b * BLOCK, k0, &scores);
        p = (cpu_rows_t){scores.p[0], BLOCK, keys};
        ds = (cpu_rows_t){scores.ds[0], BLOCK, keys};
        cpu_gemm_bf16_rows(p, BLOCK, p_rows + at);
        cpu_gemm_bf16_rows(ds, BLOCK, ds_rows + at);
        if (work->gradient[CPU_Q] == NULL)
            continue;
        cpu_gemm_bf16_pack(ds, BLOCK, packed);
        bf16_sum(work, (cpu_gemm_bf16_t){.M = width,
                                         .N = BLOCK,
                                         .K = BLOCK,
                                         .a = memory->columns + k,
                                         .b = packed,
                                         .c = memory->sums + q});
    }
    bf16_sum(work, (cpu_gemm_bf16_t){.M = BLOCK,
                                     .N = width,
                                     .K = blocks * BLOCK,
                                     .a = p_rows,
                                     .b = memory->dy_packed + i0 * width,
                                     .c = memory->dv + k});
    bf16_sum(work, (cpu_gemm_bf16_t){.M = BLOCK,
                                     .N = width,
                                     .K = blocks * BLOCK,
                                     .a = ds_rows,
                                     .b = memory->q_packed + i0 * width,
                                     .c = memory->dk + k});
}

/* Process head [h] with the keys of its key head. */
static void bf16_backward_head(const cpu_attention_work_t *work,
                               bf16_memory_t *memory, int64_t n, int64_t h)
{
    const op_attention_t *a = &work->a;
    const int64_t width = memory->width;

    memset(memory->sums, 0,
           (size_t)(cpu_gemm_bf16_pad(a->T) * width) * sizeof(float));
    for (int64_t i0 = 0; i0 < a->T; i0 += BLOCK)
        bf16_pack_queries(work, memory, n, h, i0);
    for (int64_t k0 = 0; k0 < a->S; k0 += BLOCK)
        for (int64_t i0 = work->causal ? k0 : 0; i0 < a->T;
             i0 += BLOCKS * BLOCK)
            bf16_backward_block(work, memory, i0, k0);
    for (int64_t i0 = 0; i0 < a->T; i0 += BLOCK) {
        cpu_gemm_bf16_transpose(memory->sums + i0 * width, width, BLOCK,
                                memory->rows);
        cpu_attention_store(
            work, CPU_Q,
            (cpu_rows_t){memory->rows, width, cpu_attention_count(i0, a->T)},
            cpu_attention_at(work, CPU_Q, n, i0, h));
    }
}

void cpu_attention_bf16_backward(void *context, int64_t first, int64_t last)
{
    const cpu_attention_work_t *work = context;
    const op_attention_t *a = &work->a;
    const int64_t heads = a->H / a->G;
    bf16_memory_t memory = memory_of_thread(work, true);

    cpu_gemm_bf16_begin(work->tiles);
    for (int64_t ng = first; ng < last; ng++) {
        int64_t n = ng / a->G, g = ng % a->G;

        bf16_pack_keys(work, &memory, n, g);
        for (int64_t h = g * heads; h < (g + 1) * heads; h++)
            bf16_backward_head(work, &memory, n, h);
        cpu_attention_store(work, CPU_K,
                            (cpu_rows_t){memory.dk, memory.width, a->S},
                            cpu_attention_at(work, CPU_K, n, 0, g));
        cpu_attention_store(work, CPU_V,
                            (cpu_rows_t){memory.dv, memory.width, a->S},
                            cpu_attention_at(work, CPU_V, n, 0, g));
    }
    cpu_gemm_bf16_end(work->tiles);
}
