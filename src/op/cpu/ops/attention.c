/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * attention in blocks of BLOCK queries x BLOCK keys, so that the T x S matrix
 * is never stored (ref/attention.c has the formulas). Forward keeps a running
 * maximum and sum for each query, and rescales its partial results when the
 * maximum grows. The workspace stores both, from which backward recomputes p,
 * and the dot product of y and dy of each query. Forward stores scores as
 * [keys, queries], so that vector instructions compute the softmax of several
 * queries at once. With a causal mask, blocks above the diagonal are skipped.
 *
 * One thread computes one head (forward), or all heads that share a key head
 * (backward), so that gradients are added in a fixed order. Forward transposes
 * each block of queries once, and backward each block of keys and values, so
 * that all products read consecutive elements.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/attention.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/vector/gemm_small.h"
#include "op/op_desc.h"
#include "simd/isa.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

#define BLOCK CPU_ATTENTION_BLOCK

typedef float columns_t[OP_HEAD_MAX][BLOCK]; /* [D, keys or queries] */
typedef float rows_t[BLOCK][OP_HEAD_MAX];    /* [tokens, D] */

/* ---- blocks -------------------------------------------------------------- */

/* Transpose rows of D elements. Columns of [to] from rows.count on are 0. */
static void attention_transpose(cpu_rows_t rows, int64_t D, columns_t to)
{
    for (int64_t d = 0; d < D; d++)
        for (int64_t j = 0; j < BLOCK; j++)
            to[d][j] = j < rows.count ? rows.data[j * rows.row + d] : 0;
}

/* to[i,j] = sum_d rows[i,d] columns[d,j] */
static void attention_scores(cpu_rows_t rows, columns_t columns, int64_t D,
                             cpu_square_t to)
{
    memset(to, 0, sizeof(cpu_square_t));
    cpu_gemm_small_add(&(cpu_gemm_small_t){.M = rows.count,
                                           .N = BLOCK,
                                           .K = D,
                                           .a = {rows.data, rows.row, 1},
                                           .b = columns[0],
                                           .b_row = BLOCK,
                                           .c = to[0],
                                           .c_row = BLOCK});
}

/* ---- forward ------------------------------------------------------------- */

/* A block of queries of head [h] of sample [n], from query [i0] on: the
 * queries, transposed, and their running softmax. */
typedef struct attention_queries {
    columns_t q;
    cpu_attention_columns_t softmax;
    int64_t n, h, i0, count;
} attention_queries_t;

SIMD_CLONES
static void attention_scale(float *y, int64_t D, float factor)
{
    for (int64_t d = 0; d < D; d++)
        y[d] *= factor;
}

/* Add to y of the queries what the keys from [k0] on contribute. */
static void attention_forward_keys(const cpu_attention_work_t *work,
                                   attention_queries_t *queries, int64_t k0)
{
    const op_attention_t *a = &work->a;
    const int64_t n = queries->n, h = queries->h, i0 = queries->i0;
    const int64_t g = h / (a->H / a->G);
    const int64_t keys = cpu_attention_count(k0, a->S), y_row = a->H * a->D;
    const cpu_rows_t k = cpu_attention_rows(work, CPU_K, n, k0, g);
    const cpu_rows_t v = cpu_attention_rows(work, CPU_V, n, k0, g);
    float *y = work->y + cpu_attention_y(work, n, i0, h);
    cpu_square_t s;

    attention_scores(k, queries->q, a->D, s);
    queries->softmax.valid = cpu_attention_mask(work, n, k0);
    cpu_attention_softmax(s, keys, work->causal ? i0 - k0 + 1 : keys,
                          work->scale, &queries->softmax);
    for (int64_t i = 0; i < queries->count && k0 > 0; i++)
        if (!(queries->softmax.factor[i] == 1.0f))
            attention_scale(y + i * y_row, a->D, queries->softmax.factor[i]);
    cpu_gemm_small_add(&(cpu_gemm_small_t){.M = queries->count,
                                           .N = a->D,
                                           .K = keys,
                                           .a = {s[0], 1, BLOCK},
                                           .b = v.data,
                                           .b_row = v.row,
                                           .c = y,
                                           .c_row = y_row});
}

/* Compute y of the queries from [i0] on. */
static void attention_forward_block(const cpu_attention_work_t *work, int64_t n,
                                    int64_t h, int64_t i0)
{
    const op_attention_t *a = &work->a;
    const int64_t rows = cpu_attention_count(i0, a->T), y_row = a->H * a->D;
    const int64_t last = work->causal ? i0 + rows : a->S;
    float *y = work->y + cpu_attention_y(work, n, i0, h);
    attention_queries_t queries;

    queries.n = n;
    queries.h = h;
    queries.i0 = i0;
    queries.count = rows;
    attention_transpose(cpu_attention_rows(work, CPU_Q, n, i0, h), a->D,
                        queries.q);
    cpu_attention_start(&queries.softmax);
    for (int64_t i = 0; i < rows; i++)
        memset(y + i * y_row, 0, (size_t)a->D * sizeof *y);
    for (int64_t k0 = 0; k0 < last; k0 += BLOCK)
        attention_forward_keys(work, &queries, k0);
    for (int64_t i = 0; i < rows; i++)
        attention_scale(y + i * y_row, a->D,
                        cpu_attention_keep(work, &queries.softmax,
                                           (n * a->H + h) * a->T + i0, i));
}

static void attention_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_attention_work_t *work = context;
    const op_attention_t *a = &work->a;

    for (int64_t nh = first; nh < last; nh++)
        for (int64_t i0 = 0; i0 < a->T; i0 += BLOCK)
            attention_forward_block(work, nh / a->H, nh % a->H, i0);
}

/* ---- backward ------------------------------------------------------------ */

/* Number of keys that query [i] reads of the block that begins at [k0]. */
static int64_t attention_keys_read(const cpu_attention_work_t *work, int64_t i,
                                   int64_t k0)
{
    int64_t count = cpu_attention_count(k0, work->a.S);

    if (work->causal && i - k0 + 1 < count)
        count = i - k0 + 1;
    return count < 0 ? 0 : count;
}

/* A block of keys and values, transposed, and their gradients summed over all
 * queries. */
typedef struct attention_keys {
    int64_t n, g, k0, count;
    columns_t k, v;
    rows_t dk, dv;
} attention_keys_t;

/* Convert the scores [s] and [dp] of one query to p and ds. Elements from
 * [count] on become 0. */
SIMD_CLONES
static void attention_row_back(float *s, float *dp, int64_t count, float scale,
                               float top, float inverse, float delta)
{
    for (int64_t j = 0; j < count; j++) {
        s[j] = simd_math_exp(s[j] * scale - top) * inverse;
        dp[j] = s[j] * (dp[j] - delta) * scale;
    }
    for (int64_t j = count; j < BLOCK; j++)
        s[j] = dp[j] = 0;
}

/* Set p and ds to 0 for the keys that the mask hides. [valid] is the mask from
 * the first key of the block on. */
static void attention_hide(const float *valid, int64_t rows, int64_t keys,
                           cpu_square_t p, cpu_square_t ds)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t i = 0; i < rows && cpu_attention_hidden(valid, j); i++)
            p[i][j] = ds[i][j] = 0;
}

/* dq [rows,D] += ds [rows,keys] k */
static void attention_add_dq(const cpu_attention_work_t *work,
                             const attention_keys_t *keys, int64_t rows,
                             cpu_square_t ds, float *dq)
{
    const op_attention_t *a = &work->a;
    const cpu_rows_t k =
        cpu_attention_rows(work, CPU_K, keys->n, keys->k0, keys->g);

    cpu_gemm_small_add(&(cpu_gemm_small_t){.M = rows,
                                           .N = a->D,
                                           .K = k.count,
                                           .a = {ds[0], BLOCK, 1},
                                           .b = k.data,
                                           .b_row = k.row,
                                           .c = dq,
                                           .c_row = a->stride[CPU_Q]});
}

/* to [keys,D] += s' rows; s is [rows, keys]. */
static void attention_add_keys(attention_keys_t *keys, cpu_square_t s,
                               cpu_rows_t rows, int64_t D, rows_t to)
{
    cpu_gemm_small_add(&(cpu_gemm_small_t){.M = keys->count,
                                           .N = D,
                                           .K = rows.count,
                                           .a = {s[0], 1, BLOCK},
                                           .b = rows.data,
                                           .b_row = rows.row,
                                           .c = to[0],
                                           .c_row = OP_HEAD_MAX});
}

/* Process the queries from [i0] on of head [h] with a block of keys: adds to
 * dq, dk and dv. */
static void attention_backward_block(const cpu_attention_work_t *work,
                                     attention_keys_t *keys, int64_t h,
                                     int64_t i0)
{
    const op_attention_t *a = &work->a;
    const int64_t n = keys->n, rows = cpu_attention_count(i0, a->T);
    const int64_t at = (n * a->H + h) * a->T + i0;
    const cpu_rows_t q = cpu_attention_rows(work, CPU_Q, n, i0, h);
    const cpu_rows_t dy = cpu_attention_dy(work, n, i0, h);
    cpu_square_t p, ds;

    attention_scores(q, keys->k, a->D, p);
    attention_scores(dy, keys->v, a->D, ds);
    for (int64_t i = 0; i < rows; i++)
        attention_row_back(p[i], ds[i],
                           attention_keys_read(work, i0 + i, keys->k0),
                           work->scale, work->top[at + i],
                           work->inverse[at + i], work->delta[at + i]);
    attention_hide(cpu_attention_mask(work, n, keys->k0), rows, keys->count, p,
                   ds);
    attention_add_keys(keys, p, dy, a->D, keys->dv);
    attention_add_keys(keys, ds, q, a->D, keys->dk);
    if (work->gradient[CPU_Q] != NULL)
        attention_add_dq(work, keys, rows, ds,
                         work->gradient[CPU_Q] +
                             cpu_attention_at(work, CPU_Q, n, i0, h));
}

/* Process the block of keys that begins at [k0] with all queries that read it.
 */
static void attention_backward_keys(const cpu_attention_work_t *work, int64_t n,
                                    int64_t g, int64_t k0)
{
    const op_attention_t *a = &work->a;
    const int64_t heads = a->H / a->G;
    attention_keys_t keys;

    keys.n = n;
    keys.g = g;
    keys.k0 = k0;
    keys.count = cpu_attention_count(k0, a->S);
    memset(keys.dk, 0, sizeof keys.dk);
    memset(keys.dv, 0, sizeof keys.dv);
    attention_transpose(cpu_attention_rows(work, CPU_K, n, k0, g), a->D,
                        keys.k);
    attention_transpose(cpu_attention_rows(work, CPU_V, n, k0, g), a->D,
                        keys.v);
    for (int64_t h = g * heads; h < (g + 1) * heads; h++)
        for (int64_t i0 = work->causal ? k0 : 0; i0 < a->T; i0 += BLOCK)
            attention_backward_block(work, &keys, h, i0);
    cpu_attention_store(work, CPU_K,
                        (cpu_rows_t){keys.dk[0], OP_HEAD_MAX, keys.count},
                        cpu_attention_at(work, CPU_K, n, k0, g));
    cpu_attention_store(work, CPU_V,
                        (cpu_rows_t){keys.dv[0], OP_HEAD_MAX, keys.count},
                        cpu_attention_at(work, CPU_V, n, k0, g));
}

SIMD_CLONES
static float attention_dot(const float *a, const float *b, int64_t count)
{
    float lanes[SIMD_LANES] = {0}, sum = 0;
    int64_t d = 0;

    for (; d + SIMD_LANES <= count; d += SIMD_LANES)
        for (int k = 0; k < SIMD_LANES; k++)
            lanes[k] += a[d + k] * b[d + k];
    for (; d < count; d++)
        sum += a[d] * b[d];
    for (int k = 0; k < SIMD_LANES; k++)
        sum += lanes[k];
    return sum;
}

/* Compute delta of head [h], and set dq to 0. */
static void attention_prepare(const cpu_attention_work_t *work, int64_t n,
                              int64_t h)
{
    const op_attention_t *a = &work->a;

    for (int64_t i = 0; i < a->T; i++) {
        const float *y = work->y + cpu_attention_y(work, n, i, h);

        work->delta[(n * a->H + h) * a->T + i] =
            attention_dot(y, work->dy + cpu_attention_y(work, n, i, h), a->D);
        if (work->gradient[CPU_Q] != NULL)
            memset(work->gradient[CPU_Q] +
                       cpu_attention_at(work, CPU_Q, n, i, h),
                   0, (size_t)a->D * sizeof *y);
    }
}

static void attention_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_attention_work_t *work = context;
    const op_attention_t *a = &work->a;
    const int64_t heads = a->H / a->G;

    for (int64_t ng = first; ng < last; ng++) {
        int64_t n = ng / a->G, g = ng % a->G;

        for (int64_t h = g * heads; h < (g + 1) * heads; h++)
            attention_prepare(work, n, h);
        for (int64_t k0 = 0; k0 < a->S; k0 += BLOCK)
            attention_backward_keys(work, n, g, k0);
    }
}

/* ---- calls --------------------------------------------------------------- */

typedef struct cpu_attention {
    cpu_combine_t combine;
    /* bf16: offset in scratch of the threads' buffers, bytes of one thread's
     * buffer */
    size_t memory, memory_bytes;
    size_t valid; /* heads.masked: offset of the mask in scratch */
} cpu_attention_t;

static err_code_t cpu_attention_open(op_t *op, err_t *err)
{
    op_attention_t a = op_attention_of(&op->config);
    cpu_attention_t *state;
    err_code_t rc;

    op->reads_y = true;
    if (op->config.training)
        op->workspace_bytes = 3 * (size_t)(a.N * a.H * a.T) * sizeof(float);
    rc = cpu_combine_open_in(op, sizeof(cpu_attention_t), true, err);
    if (rc != ERR_OK)
        return rc;
    state = op->state;
    if (op->config.heads.masked)
        state->valid = cpu_scratch_take(&state->combine.scratch,
                                        (size_t)(a.N * a.S) * sizeof(float));
    cpu_scratch_finish(&state->combine.scratch, op);
    if (!op_computes_bf16(&op->config))
        return ERR_OK;
    state->memory_bytes = cpu_attention_bf16_bytes(&a, op->config.training);
    state->memory =
        cpu_scratch_take(&state->combine.scratch,
                         state->memory_bytes * (size_t)op->config.threads);
    cpu_scratch_finish(&state->combine.scratch, op);
    return ERR_OK;
}

/* Fill [work] except y, dy and the gradients. */
static err_code_t attention_start(op_t *op, const op_args_t *args,
                                  cpu_attention_work_t *work, err_t *err)
{
    const cpu_attention_t *state = op->state;
    const float *inside[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, inside, err);

    *work = (cpu_attention_work_t){.a = op_attention_of(&op->config),
                                   .causal = op->config.heads.causal};
    work->scale = 1.0f / sqrtf((float)work->a.D);
    for (int i = 0; i < 3 && rc == ERR_OK; i++)
        work->in[i] = inside[work->a.input[i]];
    if (rc == ERR_OK && op->config.heads.masked) {
        work->valid = (float *)((char *)args->scratch + state->valid);
        rc = op_attention_valid_keys(&op->config, inside[op->config.others],
                                     work->valid, err);
    }
    if (op_computes_bf16(&op->config)) {
        work->memory = (char *)args->scratch + state->memory;
        work->memory_bytes = state->memory_bytes;
        work->tiles = simd_has_amx();
    }
    if (op->config.training) {
        const int64_t rows = work->a.N * work->a.H * work->a.T;

        work->top = args->workspace;
        work->inverse = work->top + rows;
        work->delta = work->inverse + rows;
    }
    return rc;
}

static err_code_t cpu_attention_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    cpu_attention_work_t work;
    err_code_t rc = attention_start(op, args, &work, err);

    if (rc != ERR_OK)
        return rc;
    work.y = args->y;
    simd_team_run(op->config.threads, work.a.N * work.a.H, 1,
                  op_computes_bf16(&op->config) ? cpu_attention_bf16_forward
                                                : attention_body_forward,
                  &work);
    return ERR_OK;
}

static err_code_t cpu_attention_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    cpu_attention_work_t work;
    err_code_t rc = attention_start(op, args, &work, err);

    work.y = args->y;
    work.dy = args->dy;
    for (int i = 0; i < 3 && rc == ERR_OK; i++)
        work.gradient[i] = cpu_combine_place(op, args, work.a.input[i]);
    if (rc == ERR_OK)
        simd_team_run(op->config.threads, work.a.N * work.a.G, 1,
                      op_computes_bf16(&op->config)
                          ? cpu_attention_bf16_backward
                          : attention_body_backward,
                      &work);
    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++) {
        void *to = cpu_combine_place(op, args, k);

        /* The mask input has no gradient. */
        if (to != NULL && k > 0 && k == op->config.others &&
            op->config.heads.masked)
            memset(to, 0,
                   (size_t)op_desc_elems(&op->config.other[k - 1]) *
                       sizeof(float));
        rc = cpu_combine_flush(op, args, k, err);
    }
    return rc;
}

const op_kernel_t cpu_attention_kernel = {
    .open = cpu_attention_open,
    .close = cpu_combine_close,
    .forward = cpu_attention_forward,
    .backward = cpu_attention_backward,
};
