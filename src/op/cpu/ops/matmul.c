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
#include "op/op_broadcast.h"
#include "simd/team.h"

/* ROWS: rows of an item. TILE: rows and columns of the part of the second
 * factor that stays in the cache. */
#define ROWS 64
#define TILE 256
#define GRAIN (1 << 16) /* minimum multiplications per thread */

/* C [M,N] = X [M,K] Y [K,N] for each of [batch] pairs. */
typedef struct matmul_product {
    int64_t batch, M, N, K;
    cpu_matrix_t x, y;
    float *c;
} matmul_product_t;

typedef struct cpu_matmul {
    cpu_combine_t combine;
    size_t transposed; /* offset of the transposed factor in scratch */
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
    matmul->transposed = mem_round(op->scratch_bytes);
    op->scratch_bytes =
        matmul->transposed + (size_t)(m.batch * most) * sizeof(float);
    return ERR_OK;
}

/* ---- products ------------------------------------------------------------ */

typedef struct matmul_transpose {
    int64_t rows, columns; /* of the result */
    const float *from;     /* [columns, rows] */
    float *to;
} matmul_transpose_t;

/* Rows [first, last) of the results of all pairs. */
static void transpose_body(void *context, int64_t first, int64_t last)
{
    const matmul_transpose_t *work = context;

    for (int64_t at = first; at < last; at++) {
        const int64_t n = at / work->rows, i = at % work->rows;
        const float *from = work->from + n * work->rows * work->columns + i;
        float *to = work->to + at * work->columns;

        for (int64_t j = 0; j < work->columns; j++)
            to[j] = from[j * work->rows];
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
            for (int64_t k = 0; k < p->K; k += TILE)
                cpu_gemm_small_add(&(cpu_gemm_small_t){
                    .M = rows,
                    .N = p->N - j < TILE ? p->N - j : TILE,
                    .K = p->K - k < TILE ? p->K - k : TILE,
                    .a = {x + k * p->x.column, p->x.row, p->x.column},
                    .b = y + k * p->N + j,
                    .b_row = p->N,
                    .c = c + j,
                    .c_row = p->N});
    }
}

static void product_run(const op_t *op, const op_args_t *args,
                        matmul_product_t *p)
{
    const cpu_matmul_t *matmul = op->state;
    const int64_t pieces = p->batch * ((p->M + ROWS - 1) / ROWS);
    const int64_t each = (p->M < ROWS ? p->M : ROWS) * p->N * p->K;

    if (p->y.column != 1) {
        matmul_transpose_t work = {
            .rows = p->K,
            .columns = p->N,
            .from = p->y.data,
            .to = (float *)((char *)args->scratch + matmul->transposed)};

        simd_team_run(op->config.threads, p->batch * p->K,
                      1 + CPU_COMBINE_GRAIN / p->N, transpose_body, &work);
        p->y.data = work.to;
    }
    simd_team_run(op->config.threads, pieces, 1 + GRAIN / each, product_body,
                  p);
}

/* A factor of [rows, columns]; if [transposed], [data] stores its transpose. */
static cpu_matrix_t factor(const float *data, int64_t rows, int64_t columns,
                           bool transposed)
{
    return (cpu_matrix_t){data, transposed ? 1 : columns,
                          transposed ? rows : 1};
}

static cpu_matrix_t matrix_transpose(cpu_matrix_t m)
{
    return (cpu_matrix_t){m.data, m.column, m.row};
}

/* C' = Y' X' */
static matmul_product_t product_transpose(matmul_product_t p)
{
    return (matmul_product_t){p.batch,
                              p.N,
                              p.M,
                              p.K,
                              .x = matrix_transpose(p.y),
                              .y = matrix_transpose(p.x)};
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
    p.x = factor(in[0], m.M, m.K, op->config.transpose.a);
    p.y = factor(in[1], m.K, m.N, op->config.transpose.b);
    product_run(op, args, &p);
    return ERR_OK;
}

/* The gradient of a: dy b'^T, transposed if a is stored transposed. b' is b, or
 * its transpose if [transpose.b]. */
static matmul_product_t product_a(const op_t *op, const float *dy,
                                  const float *b)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    const cpu_matrix_t y = factor(b, m.K, m.N, op->config.transpose.b);
    const matmul_product_t p = {m.batch,
                                m.M,
                                m.K,
                                m.N,
                                .x = factor(dy, m.M, m.N, false),
                                .y = matrix_transpose(y)};

    return op->config.transpose.a ? product_transpose(p) : p;
}

/* The gradient of b: a'^T dy, transposed if b is stored transposed. a' is a, or
 * its transpose if [transpose.a]. */
static matmul_product_t product_b(const op_t *op, const float *dy,
                                  const float *a)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    const cpu_matrix_t x = factor(a, m.M, m.K, op->config.transpose.a);
    const matmul_product_t p = {m.batch,
                                m.K,
                                m.N,
                                m.M,
                                .x = matrix_transpose(x),
                                .y = factor(dy, m.M, m.N, false)};

    return op->config.transpose.b ? product_transpose(p) : p;
}

static err_code_t cpu_matmul_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    const float *in[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, in, err);

    for (int k = 0; k < 2 && rc == ERR_OK; k++) {
        float *to = cpu_combine_place(op, args, k);
        matmul_product_t p;

        if (to == NULL)
            continue;
        p = k == 0 ? product_a(op, args->dy, in[1])
                   : product_b(op, args->dy, in[0]);
        p.c = to;
        product_run(op, args, &p);
        rc = cpu_combine_flush(op, args, k, err);
    }
    return rc;
}

const op_kernel_t cpu_matmul_kernel = {
    .open = cpu_matmul_open,
    .close = cpu_combine_close,
    .forward = cpu_matmul_forward,
    .backward = cpu_matmul_backward,
};
