/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * matmul: for each pair of matrices, where a' is a or a transposed, and b' is b
 * or b transposed,
 *   y[i,j] = sum_k a'[i,k] b'[k,j]
 *   da'[i,k] = sum_j dy[i,j] b'[k,j],  db'[k,j] = sum_i a'[i,k] dy[i,j]
 */
#include "op/op_broadcast.h"
#include "op/ref/ref.h"

/* Index of element [i,j] of a matrix [rows, columns]. [transposed]: the matrix
 * is stored as [columns, rows]. */
static int64_t ref_matmul_at(int64_t rows, int64_t columns, bool transposed,
                             int64_t i, int64_t j)
{
    return transposed ? j * rows + i : i * columns + j;
}

/* Index of element [i,k] of a' of pair [n]. */
static int64_t ref_matmul_a(const op_t *op, const op_matmul_t *m, int64_t n,
                            int64_t i, int64_t k)
{
    return n * m->M * m->K +
           ref_matmul_at(m->M, m->K, op->config.transpose.a, i, k);
}

/* Index of element [k,j] of b' of pair [n]. */
static int64_t ref_matmul_b(const op_t *op, const op_matmul_t *m, int64_t n,
                            int64_t k, int64_t j)
{
    return n * m->K * m->N +
           ref_matmul_at(m->K, m->N, op->config.transpose.b, k, j);
}

static err_code_t ref_matmul_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    op_type_t type = op->config.in.type;
    op_matmul_t m = op_matmul_of(&op->config);

    (void)err;
    for (int64_t at = 0; at < m.batch * m.M * m.N; at++) {
        int64_t n = at / (m.M * m.N), i = at / m.N % m.M, j = at % m.N;
        double y = 0;

        for (int64_t k = 0; k < m.K; k++)
            y += ref_get(type, args->x, ref_matmul_a(op, &m, n, i, k)) *
                 ref_get(type, args->other[0], ref_matmul_b(op, &m, n, k, j));
        ref_put(type, args->y, at, y);
    }
    return ERR_OK;
}

static void ref_matmul_gradient_a(const op_t *op, const op_args_t *args)
{
    op_type_t type = op->config.in.type;
    op_matmul_t m = op_matmul_of(&op->config);

    for (int64_t at = 0; at < m.batch * m.M * m.K; at++) {
        int64_t n = at / (m.M * m.K), i = at / m.K % m.M, k = at % m.K;
        double sum = 0;

        for (int64_t j = 0; j < m.N; j++)
            sum += ref_get(type, args->dy, (n * m.M + i) * m.N + j) *
                   ref_get(type, args->other[0], ref_matmul_b(op, &m, n, k, j));
        ref_put(type, args->dx, ref_matmul_a(op, &m, n, i, k), sum);
    }
}

static void ref_matmul_gradient_b(const op_t *op, const op_args_t *args)
{
    op_type_t type = op->config.in.type;
    op_matmul_t m = op_matmul_of(&op->config);

    for (int64_t at = 0; at < m.batch * m.K * m.N; at++) {
        int64_t n = at / (m.K * m.N), k = at / m.N % m.K, j = at % m.N;
        double sum = 0;

        for (int64_t i = 0; i < m.M; i++)
            sum += ref_get(type, args->x, ref_matmul_a(op, &m, n, i, k)) *
                   ref_get(type, args->dy, (n * m.M + i) * m.N + j);
        ref_put(type, args->dother[0], ref_matmul_b(op, &m, n, k, j), sum);
    }
}

static err_code_t ref_matmul_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        ref_matmul_gradient_a(op, args);
    if (args->dother[0] != NULL)
        ref_matmul_gradient_b(op, args);
    return ERR_OK;
}

const op_kernel_t ref_matmul_kernel = {
    .forward = ref_matmul_forward,
    .backward = ref_matmul_backward,
};
