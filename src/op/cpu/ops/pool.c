/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* avgpool in the layout of x. oneDNN chooses the layout of y. */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"

typedef struct cpu_pool {
    cpu_scratch_t scratch;
    cpu_md_t x, y;
    cpu_prim_t forward, backward;
    cpu_reorder_t dy, dx;
} cpu_pool_t;

static err_code_t cpu_pool_open_backward(op_t *op, cpu_pool_t *pool, err_t *err)
{
    const cpu_pool_spec_t spec = {&op->config, pool->x, pool->y};
    cpu_scratch_t *scratch = &pool->scratch;
    cpu_md_t dy, dx;
    err_code_t rc;

    if (!op->config.need_dx)
        return ERR_OK;
    rc = cpu_prim_pool_backward(&pool->backward, &scratch->engine, &spec,
                                &pool->forward, err);
    if (rc != ERR_OK)
        return rc;
    dy = cpu_prim_md(&pool->backward, DNNL_ARG_DIFF_DST);
    dx = cpu_prim_md(&pool->backward, DNNL_ARG_DIFF_SRC);
    rc = cpu_reorder_open_in(&pool->dy, scratch, &pool->y, &dy, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_out(&pool->dx, scratch, &dx, &pool->x, err);
    return rc;
}

static err_code_t cpu_pool_open(op_t *op, err_t *err)
{
    cpu_pool_spec_t spec = {.config = &op->config};
    cpu_pool_t *pool;
    err_code_t rc = mem_new(cpu_pool_t, 1, "a pool op", &pool, err);

    if (rc != ERR_OK)
        return rc;
    op->state = pool;
    op->reads_x = false;
    rc = cpu_engine_open(&pool->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_md_of(&pool->x, &pool->scratch.engine, &op->config.in, err);
    if (rc == ERR_OK)
        rc = cpu_md_any(&spec.y, &pool->scratch.engine,
                        cpu_shape_of(&op->out, op_stored_bf16(&op->config.in)),
                        err);
    spec.x = pool->x;
    if (rc == ERR_OK)
        rc = cpu_prim_pool_forward(&pool->forward, &pool->scratch.engine, &spec,
                                   err);
    if (rc != ERR_OK)
        return rc;
    pool->y = cpu_prim_md(&pool->forward, DNNL_ARG_DST);
    rc = cpu_md_publish(&pool->y, &pool->scratch.engine, &op->out, err);
    if (rc == ERR_OK && op->config.training)
        rc = cpu_pool_open_backward(op, pool, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&pool->scratch, op);
    return rc;
}

static void cpu_pool_close(op_t *op)
{
    cpu_pool_t *pool = op->state;

    if (pool == NULL)
        return;
    cpu_reorder_close(&pool->dy);
    cpu_reorder_close(&pool->dx);
    cpu_prim_close(&pool->forward);
    cpu_prim_close(&pool->backward);
    cpu_engine_close(&pool->scratch.engine);
    mem_free(pool);
}

static err_code_t cpu_pool_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_pool_t *pool = op->state;

    cpu_prim_bind(&pool->forward, DNNL_ARG_SRC, args->x);
    cpu_prim_bind(&pool->forward, DNNL_ARG_DST, args->y);
    return cpu_scratch_run(&pool->scratch, &pool->forward, args, err);
}

static err_code_t cpu_pool_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_pool_t *pool = op->state;
    const void *dy;
    err_code_t rc;

    if (!op->config.need_dx)
        return ERR_OK;
    rc = cpu_reorder_read(&pool->dy, args, args->dy, &dy, err);
    if (rc != ERR_OK)
        return rc;
    cpu_prim_bind(&pool->backward, DNNL_ARG_DIFF_DST, dy);
    cpu_prim_bind(&pool->backward, DNNL_ARG_DIFF_SRC,
                  cpu_reorder_place(&pool->dx, args, args->dx));
    rc = cpu_scratch_run(&pool->scratch, &pool->backward, args, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_flush(&pool->dx, args, args->dx, err);
    return rc;
}

const op_kernel_t cpu_pool_kernel = {
    .open = cpu_pool_open,
    .close = cpu_pool_close,
    .forward = cpu_pool_forward,
    .backward = cpu_pool_backward,
};
