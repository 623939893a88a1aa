/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * op_lowrank: cublasLt computes the products with M, with two plans for each
 * matrix. Kernels (ops/lowrank.cu) compute the rest. The vectors are the rows
 * of P and Q here, so the products are P [rank, rows] = Q M^T and Q [rank,
 * columns] = P M.
 */
#include "op/cuda/lowrank.h"

#include "base/mem.h"
#include "op/cuda/blas.h"

typedef struct cuda_lowrank {
    op_lowrank_t base;
    dev_device_t *dev;
    int count, rank;
    bool warm, feedback;                   /* [feedback]: there are residuals */
    op_lowrank_matrix_t *matrices, *table; /* on the host; on [dev] */
    cuda_product_t **right, **left;        /* [count]: of P; of Q */
    void *scratch;                         /* of all products, in turn */
} cuda_lowrank_t;

/* ---- opening ------------------------------------------------------------- */

static bool aligned(const void *address)
{
    return (uintptr_t)address % 16 == 0;
}

static err_code_t products_open(cuda_lowrank_t *lowrank, int i, size_t *room,
                                err_t *err)
{
    const op_lowrank_matrix_t *matrix = &lowrank->matrices[i];
    const bool unaligned =
        !aligned(matrix->m) || !aligned(matrix->p) || !aligned(matrix->q);
    const cuda_product_spec_t right = {.what = "powersgd, P",
                                       .M = lowrank->rank,
                                       .N = matrix->rows,
                                       .K = matrix->columns,
                                       .b_transposed = true,
                                       .compute_type = OP_FLOAT32,
                                       .unaligned = unaligned};
    const cuda_product_spec_t left = {.what = "powersgd, Q",
                                      .M = lowrank->rank,
                                      .N = matrix->columns,
                                      .K = matrix->rows,
                                      .compute_type = OP_FLOAT32,
                                      .unaligned = unaligned};
    err_code_t rc =
        cuda_product_open(lowrank->dev, &right, &lowrank->right[i], err);

    if (rc == ERR_OK)
        rc = cuda_product_open(lowrank->dev, &left, &lowrank->left[i], err);
    if (*room < cuda_product_scratch(lowrank->right[i]))
        *room = cuda_product_scratch(lowrank->right[i]);
    if (*room < cuda_product_scratch(lowrank->left[i]))
        *room = cuda_product_scratch(lowrank->left[i]);
    return rc;
}

static void lowrank_close(op_lowrank_t *base)
{
    cuda_lowrank_t *lowrank = (cuda_lowrank_t *)base;

    for (int i = 0; i < lowrank->count; i++) {
        if (lowrank->right != NULL)
            cuda_product_close(lowrank->right[i]);
        if (lowrank->left != NULL)
            cuda_product_close(lowrank->left[i]);
    }
    dev_free(lowrank->dev, lowrank->scratch);
    dev_free(lowrank->dev, lowrank->table);
    mem_free(lowrank->left);
    mem_free(lowrank->right);
    mem_free(lowrank->matrices);
    mem_free(lowrank);
}

static err_code_t tables_open(cuda_lowrank_t *lowrank,
                              const op_lowrank_config_t *config, err_t *err)
{
    const size_t count = (size_t)config->count;
    const size_t bytes = count * sizeof *lowrank->matrices;
    void *table = NULL;
    err_code_t rc = mem_new(op_lowrank_matrix_t, count, "PowerSGD",
                            &lowrank->matrices, err);

    if (rc == ERR_OK)
        rc = mem_new(cuda_product_t *, count, "PowerSGD", &lowrank->right, err);
    if (rc == ERR_OK)
        rc = mem_new(cuda_product_t *, count, "PowerSGD", &lowrank->left, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < config->count; i++)
        lowrank->matrices[i] = config->matrices[i];
    rc = cuda_table(lowrank->dev, lowrank->matrices, bytes, "PowerSGD", &table,
                    err);
    lowrank->table = table;
    return rc;
}

static err_code_t lowrank_open(dev_device_t *dev,
                               const op_lowrank_config_t *config,
                               op_lowrank_t **out, err_t *err)
{
    cuda_lowrank_t *lowrank = NULL;
    size_t room = 0;
    err_code_t rc = mem_new(cuda_lowrank_t, 1, "PowerSGD", &lowrank, err);

    if (rc != ERR_OK)
        return rc;
    lowrank->dev = dev;
    lowrank->count = config->count;
    lowrank->rank = config->rank;
    lowrank->warm = config->warm;
    lowrank->feedback =
        config->count > 0 && config->matrices[0].residual != NULL;
    if (config->count > 0)
        rc = tables_open(lowrank, config, err);
    for (int i = 0; rc == ERR_OK && i < config->count; i++)
        rc = products_open(lowrank, i, &room, err);
    if (rc == ERR_OK && room > 0)
        rc = dev_alloc(dev, room, "products of PowerSGD", &lowrank->scratch,
                       err);
    if (rc == ERR_OK)
        *out = &lowrank->base;
    else
        lowrank_close(&lowrank->base);
    return rc;
}

/* ---- turns --------------------------------------------------------------- */

static cuda_lowrank_call_t call_of(const cuda_lowrank_t *lowrank,
                                   const op_lowrank_part_t *part)
{
    cuda_lowrank_call_t call = {.table = lowrank->table + part->first,
                                .count = part->count,
                                .rank = lowrank->rank,
                                .draw = !lowrank->warm,
                                .step = part->step};

    for (int i = part->first; i < part->first + part->count; i++)
        if (call.rows < lowrank->matrices[i].rows)
            call.rows = lowrank->matrices[i].rows;
    return call;
}

/* P = M Q, or Q = M^T P. */
static err_code_t products_run(cuda_lowrank_t *lowrank,
                               const op_lowrank_part_t *part,
                               dev_stream_t *stream, err_t *err)
{
    const bool right = part->turn == OP_LOWRANK_P;
    err_code_t rc = ERR_OK;

    for (int i = part->first; rc == ERR_OK && i < part->first + part->count;
         i++) {
        const op_lowrank_matrix_t *matrix = &lowrank->matrices[i];
        const cuda_factors_t factors = {.a = right ? matrix->q : matrix->p,
                                        .b = matrix->m,
                                        .c = right ? matrix->p : matrix->q,
                                        .scratch = lowrank->scratch};

        rc = cuda_product_run(right ? lowrank->right[i] : lowrank->left[i],
                              stream, &factors, err);
    }
    return rc;
}

static err_code_t lowrank_run(op_lowrank_t *base, const op_lowrank_part_t *part,
                              dev_stream_t *stream, err_t *err)
{
    cuda_lowrank_t *lowrank = (cuda_lowrank_t *)base;
    const cuda_lowrank_call_t call = call_of(lowrank, part);
    err_code_t rc = ERR_OK;

    if (part->turn == OP_LOWRANK_M)
        return cuda_lowrank_expand(&call, stream, err);
    if (part->turn == OP_LOWRANK_P && lowrank->feedback)
        rc = cuda_lowrank_add(&call, stream, err);
    if (rc == ERR_OK)
        rc = part->turn == OP_LOWRANK_P ? cuda_lowrank_q(&call, stream, err)
                                        : cuda_lowrank_p(&call, stream, err);
    if (rc == ERR_OK)
        rc = products_run(lowrank, part, stream, err);
    if (rc == ERR_OK && part->turn == OP_LOWRANK_Q && lowrank->feedback)
        rc = cuda_lowrank_rest(&call, stream, err);
    return rc;
}

const op_lowrank_ops_t cuda_lowrank_ops = {
    .open = lowrank_open, .close = lowrank_close, .run = lowrank_run};
