/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * matmul: for each pair of matrices, where a' is a or a transposed, and b' is b
 * or b transposed,
 *   y [M,N] = a' b',  da' [M,K] = dy b'',  db' [K,N] = a'' dy
 * (two dashes: transposed once more). The gradient of a transposed matrix is
 * computed transposed: da = b' dy'', db = dy'' a'. Factors are never rounded.
 */
#include "op/cuda/blas.h"
#include "op/cuda/cuda.h"
#include "op/op_broadcast.h"

typedef struct cuda_matmul {
    cuda_product_t *forward, *da, *db;
} cuda_matmul_t;

static cuda_product_spec_t matmul_spec(const op_matmul_t *m, const char *what)
{
    return (cuda_product_spec_t){
        .what = what,
        .batch = m->batch,
        /* matrices of a batch follow each other without gaps */
        .unaligned =
            m->batch > 1 && (m->M * m->K % 4 != 0 || m->K * m->N % 4 != 0 ||
                             m->M * m->N % 4 != 0),
        .compute_type = OP_FLOAT32};
}

static err_code_t matmul_open_forward(op_t *op, const op_matmul_t *m,
                                      err_t *err)
{
    cuda_matmul_t *matmul = op->state;
    cuda_product_spec_t spec = matmul_spec(m, "matmul");

    spec.M = m->M;
    spec.N = m->N;
    spec.K = m->K;
    spec.a_transposed = op->config.transpose.a;
    spec.b_transposed = op->config.transpose.b;
    return cuda_product_open(op->dev, &spec, &matmul->forward, err);
}

static err_code_t matmul_open_da(op_t *op, const op_matmul_t *m, err_t *err)
{
    cuda_matmul_t *matmul = op->state;
    const op_transpose_t stored = op->config.transpose;
    cuda_product_spec_t spec =
        matmul_spec(m, "matmul, gradient of its first input");

    spec.M = stored.a ? m->K : m->M;
    spec.N = stored.a ? m->M : m->K;
    spec.K = m->N;
    spec.a_transposed = stored.a && stored.b;
    spec.b_transposed = stored.a || !stored.b;
    return cuda_product_open(op->dev, &spec, &matmul->da, err);
}

static err_code_t matmul_open_db(op_t *op, const op_matmul_t *m, err_t *err)
{
    cuda_matmul_t *matmul = op->state;
    const op_transpose_t stored = op->config.transpose;
    cuda_product_spec_t spec =
        matmul_spec(m, "matmul, gradient of its second input");

    spec.M = stored.b ? m->N : m->K;
    spec.N = stored.b ? m->K : m->N;
    spec.K = m->M;
    spec.a_transposed = stored.b || !stored.a;
    spec.b_transposed = stored.b && stored.a;
    return cuda_product_open(op->dev, &spec, &matmul->db, err);
}

static err_code_t matmul_open(op_t *op, err_t *err)
{
    const op_matmul_t m = op_matmul_of(&op->config);
    cuda_matmul_t *matmul;
    err_code_t rc = mem_new(cuda_matmul_t, 1, "a matmul", &matmul, err);

    if (rc != ERR_OK)
        return rc;
    op->state = matmul;
    rc = matmul_open_forward(op, &m, err);
    if (rc == ERR_OK && op->config.training)
        rc = matmul_open_da(op, &m, err);
    if (rc == ERR_OK && op->config.training)
        rc = matmul_open_db(op, &m, err);
    if (rc != ERR_OK)
        return rc;
    op->scratch_bytes = cuda_product_scratch(matmul->forward);
    if (op->scratch_bytes < cuda_product_scratch(matmul->da))
        op->scratch_bytes = cuda_product_scratch(matmul->da);
    if (op->scratch_bytes < cuda_product_scratch(matmul->db))
        op->scratch_bytes = cuda_product_scratch(matmul->db);
    return ERR_OK;
}

static void matmul_close(op_t *op)
{
    cuda_matmul_t *matmul = op->state;

    if (matmul == NULL)
        return;
    cuda_product_close(matmul->forward);
    cuda_product_close(matmul->da);
    cuda_product_close(matmul->db);
    mem_free(matmul);
}

static err_code_t matmul_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_matmul_t *matmul = op->state;
    const cuda_factors_t with = {.a = args->x,
                                 .b = args->other[0],
                                 .c = args->y,
                                 .scratch = args->scratch};

    return cuda_product_run(matmul->forward, args->stream, &with, err);
}

static err_code_t matmul_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const cuda_matmul_t *matmul = op->state;
    const op_transpose_t stored = op->config.transpose;
    const cuda_factors_t da = {.a = stored.a ? args->other[0] : args->dy,
                               .b = stored.a ? args->dy : args->other[0],
                               .c = args->dx,
                               .scratch = args->scratch};
    const cuda_factors_t db = {.a = stored.b ? args->dy : args->x,
                               .b = stored.b ? args->x : args->dy,
                               .c = args->dother[0],
                               .scratch = args->scratch};
    err_code_t rc = ERR_OK;

    if (op->config.need_dx)
        rc = cuda_product_run(matmul->da, args->stream, &da, err);
    if (rc == ERR_OK && args->dother[0] != NULL)
        rc = cuda_product_run(matmul->db, args->stream, &db, err);
    return rc;
}

const op_kernel_t cuda_matmul_kernel = {
    .open = matmul_open,
    .close = matmul_close,
    .forward = matmul_forward,
    .backward = matmul_backward,
};
