/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool in the layout of x, by loops of our own (tiles.h, windows.h): in
 * oneDNN's maxpool, any number wins over NaN. If the loops do not support the
 * layout of x, x is converted to plain first. The workspace stores which tap
 * of each window is the maximum.
 */
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"
#include "op/cpu/ops/tiles.h"
#include "op/op_geometry.h"

typedef struct cpu_maxpool {
    cpu_scratch_t scratch;
    cpu_plain_t plain; /* used if [converts] */
    bool converts;
    cpu_md_t y;
    cpu_windows_t windows;
} cpu_maxpool_t;

/* Can the loops read bfloat16 x? windows.h supports no plain bfloat16, and
 * winner.h stores the tap numbers of bfloat16 windows as int16_t. */
static bool reads_halves(const op_t *op, int lanes)
{
    return lanes != 1 && op_window_taps(&op->config) <= INT16_MAX;
}

static err_code_t cpu_maxpool_open(op_t *op, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    cpu_maxpool_t *pool;
    cpu_engine_t *engine;
    cpu_md_t x;
    int lanes = -1;
    err_code_t rc = mem_new(cpu_maxpool_t, 1, "a pool op", &pool, err);

    if (rc != ERR_OK)
        return rc;
    op->state = pool;
    engine = &pool->scratch.engine;
    op->reads_x = false;
    rc = cpu_engine_open(engine, err);
    if (rc == ERR_OK)
        rc = cpu_md_of(&x, engine, in, err);
    if (rc == ERR_OK)
        rc = cpu_md_lanes(&x, engine, in, &lanes, err);
    pool->converts =
        lanes < 0 || (op_stored_bf16(in) && !reads_halves(op, lanes));
    if (rc == ERR_OK && pool->converts) {
        lanes = 1;
        rc = cpu_plain_open(&pool->plain, &pool->scratch, op, err);
    }
    if (rc == ERR_OK)
        rc = cpu_md_in_lanes(
            &pool->y, engine,
            cpu_shape_of(&op->out, op_stored_bf16(in) && !pool->converts),
            lanes, err);
    if (rc == ERR_OK)
        rc = cpu_md_publish(&pool->y, engine, &op->out, err);
    if (rc != ERR_OK)
        return rc;
    cpu_windows_open(&pool->windows, op, lanes);
    if (op->config.training)
        op->workspace_bytes =
            cpu_windows_bytes(&pool->windows, op_desc_stored_elems(&op->out));
    cpu_scratch_finish(&pool->scratch, op);
    return ERR_OK;
}

static void cpu_maxpool_close(op_t *op)
{
    cpu_maxpool_t *pool = op->state;

    if (pool == NULL)
        return;
    cpu_plain_close(&pool->plain);
    cpu_engine_close(&pool->scratch.engine);
    mem_free(pool);
}

static err_code_t cpu_maxpool_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_maxpool_t *pool = op->state;
    op_args_t inside = *args;
    err_code_t rc = ERR_OK;

    if (pool->converts)
        rc = cpu_reorder_read(&pool->plain.x, args, args->x, &inside.x, err);
    if (rc != ERR_OK)
        return rc;
    if (pool->windows.tiled)
        cpu_tiles_forward(&pool->windows, op, &inside);
    else
        cpu_windows_forward(&pool->windows, op, &inside);
    return ERR_OK;
}

static err_code_t cpu_maxpool_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_maxpool_t *pool = op->state;
    op_args_t inside = *args;

    if (!op->config.need_dx)
        return ERR_OK;
    if (pool->converts)
        inside.dx = cpu_reorder_place(&pool->plain.dx, args, args->dx);
    if (pool->windows.tiled)
        cpu_tiles_backward(&pool->windows, op, &inside);
    else
        cpu_windows_backward(&pool->windows, op, &inside);
    return pool->converts
               ? cpu_reorder_flush(&pool->plain.dx, args, args->dx, err)
               : ERR_OK;
}

const op_kernel_t cpu_maxpool_kernel = {
    .open = cpu_maxpool_open,
    .close = cpu_maxpool_close,
    .forward = cpu_maxpool_forward,
    .backward = cpu_maxpool_backward,
};
