/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * matmul of plain inputs, always in float32, even where linear layers round to
 * bfloat16. Products are computed in tiles (gemm_small.h). An item of the
 * parallel loop is ROWS rows of one product of the batch. A second factor
 * whose rows are not contiguous is transposed into scratch first. Each element
 * is summed over k in order, so that no bit depends on the number of threads.
 */
#include <string.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/vector/gemm_small.h"
#include "op/op_spread.h"
#include "simd/team.h"

/* ROWS: rows of an item. TILE: rows and columns of the part of the second
 * factor that stays in the cache. */
#define ROWS 64
#define TILE 256
#define GRAIN (1 << 16) /* minimum multiplications per thread */

/* Element [i,j] of a factor is at i * row + j * column. */
typedef struct matmul_factor {
    const float *data;
    int64_t row, column;
} matmul_factor_t;

/* C [M,N] = X [M,K] Y [K,N] for each of [batch] pairs. */
typedef struct matmul_product {
    int64_t batch, M, N, K;
    matmul_factor_t x, y;
    float *c;
} matmul_product_t;

typedef struct cpu_matmul {
    cpu_combine_t combine;
    size_t turned; /* offset of the transposed factor in scratch */
} cpu_matmul_t;

static err_code_t cpu_matmul_open(op_t *op, err_t *err)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    const int64_t a = m.M * m.K, b = m.K * m.N, y = m.M * m.N;
    const int64_t most = a > b ? (a > y ? a : y) : (b > y ? b : y);
    cpu_matmul_t *matmul;
    err_code_t rc = cpu_combine_open_in(op, sizeof *matmul, true, err);

    if (rc != ERR_OK)
        return rc;
    matmul = op->state;
    matmul->turned = mem_round(op->scratch_bytes);
    op->scratch_bytes =
        matmul->turned + (size_t)(m.batch * most) * sizeof(float);
    return ERR_OK;
}

/* ---- products ------------------------------------------------------------ */

typedef struct matmul_turn {
    int64_t rows, columns; /* of the result */
    const float *from;     /* [columns, rows] */
    float *to;
} matmul_turn_t;

/* Rows [first, last) of the results of all pairs. */
static void turn_body(void *context, int64_t first, int64_t last)
{
    const matmul_turn_t *turn = context;

    for (int64_t at = first; at < last; at++) {
        const int64_t n = at / turn->rows, i = at % turn->rows;
        const float *from = turn->from + n * turn->rows * turn->columns + i;
        float *to = turn->to + at * turn->columns;

        for (int64_t j = 0; j < turn->columns; j++)
            to[j] = from[j * turn->rows];
    }
}

static void product_body(void *context, int64_t first, int64_t last)
{
    const matmul_product_t *p = context;
    const int64_t pieces = (p->M + ROWS - 1) / ROWS;

    for (int64_t at = first; at < last; at++) {
        const int64_t n = at / pieces, i = at % pieces * ROWS;
        const int64_t rows = p->M - i < ROWS ? p->M - i : ROWS;
        const float *x = p->x.data + n * p->M * p->K + i * p->x.row;
        const float *y = p->y.data + n * p->K * p->N;
        float *c = p->c + (n * p->M + i) * p->N;

        memset(c, 0, (size_t)(rows * p->N) * sizeof *c);
        for (int64_t j = 0; j < p->N; j += TILE)
            for (int64_t k = 0; k < p->K; k += TILE) {
                const cpu_matrix_t part = {x + k * p->x.column, p->x.row,
                                           p->x.column};

                cpu_gemm_small_add(rows, p->N - j < TILE ? p->N - j : TILE,
                                   p->K - k < TILE ? p->K - k : TILE, part,
                                   y + k * p->N + j, p->N, c + j, p->N);
            }
    }
}

static void product_run(const op_t *op, const op_args_t *args,
                        matmul_product_t *p)
{
    const cpu_matmul_t *matmul = op->state;
    const int64_t pieces = p->batch * ((p->M + ROWS - 1) / ROWS);
    const int64_t each = (p->M < ROWS ? p->M : ROWS) * p->N * p->K;

    if (p->y.column != 1) {
        matmul_turn_t turn = {
            .rows = p->K,
            .columns = p->N,
            .from = p->y.data,
            .to = (float *)((char *)args->scratch + matmul->turned)};

        simd_team_run(op->config.threads, p->batch * p->K,
                      1 + CPU_COMBINE_GRAIN / p->N, turn_body, &turn);
        p->y.data = turn.to;
    }
    simd_team_run(op->config.threads, pieces, 1 + GRAIN / each, product_body,
                  p);
}

/* A factor of [rows, columns]; if [turned], [data] stores its transpose. */
static matmul_factor_t factor(const float *data, int64_t rows, int64_t columns,
                              bool turned)
{
    return (matmul_factor_t){data, turned ? 1 : columns, turned ? rows : 1};
}

/* ---- calls --------------------------------------------------------------- */

static err_code_t cpu_matmul_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    const float *in[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, in, err);
    matmul_product_t p = {m.batch, m.M, m.N, m.K, .c = args->y};

    if (rc != ERR_OK)
        return rc;
    p.x = factor(in[0], m.M, m.K, op->config.turn.a);
    p.y = factor(in[1], m.K, m.N, op->config.turn.b);
    product_run(op, args, &p);
    return ERR_OK;
}

/* The gradient of a: dy b'^T or, if a is transposed, b' dy^T. b' is b, or its
 * transpose if [turn.b]. */
static matmul_product_t product_a(const op_t *op, const float *dy,
                                  const float *b)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    const bool turned = op->config.turn.b;

    if (op->config.turn.a)
        return (matmul_product_t){m.batch,
                                  m.K,
                                  m.M,
                                  m.N,
                                  .x = factor(b, m.K, m.N, turned),
                                  .y = factor(dy, m.N, m.M, true)};
    return (matmul_product_t){m.batch,
                              m.M,
                              m.K,
                              m.N,
                              .x = factor(dy, m.M, m.N, false),
                              .y = factor(b, m.N, m.K, !turned)};
}

/* The gradient of b: a'^T dy or, if b is transposed, dy^T a'. a' is a, or its
 * transpose if [turn.a]. */
static matmul_product_t product_b(const op_t *op, const float *dy,
                                  const float *a)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    const bool turned = op->config.turn.a;

    if (op->config.turn.b)
        return (matmul_product_t){m.batch,
                                  m.N,
                                  m.K,
                                  m.M,
                                  .x = factor(dy, m.N, m.M, true),
                                  .y = factor(a, m.M, m.K, turned)};
    return (matmul_product_t){m.batch,
                              m.K,
                              m.N,
                              m.M,
                              .x = factor(a, m.K, m.M, !turned),
                              .y = factor(dy, m.M, m.N, false)};
}

static err_code_t cpu_matmul_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_matmul_t *matmul = op->state;
    const float *in[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, in, err);

    for (int k = 0; k < 2 && rc == ERR_OK; k++) {
        void *to = cpu_combine_gradient(op, args, k);
        cpu_reorder_t *reorder = &matmul->combine.grad[k];
        matmul_product_t p;

        if (to == NULL)
            continue;
        p = k == 0 ? product_a(op, args->dy, in[1])
                   : product_b(op, args->dy, in[0]);
        p.c = cpu_reorder_place(reorder, args, to);
        product_run(op, args, &p);
        rc = cpu_reorder_flush(reorder, args, to, err);
    }
    return rc;
}

const op_kernel_t cpu_matmul_kernel = {
    .open = cpu_matmul_open,
    .close = cpu_combine_close,
    .forward = cpu_matmul_forward,
    .backward = cpu_matmul_backward,
};
