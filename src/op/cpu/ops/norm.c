/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * layernorm, rmsnorm, groupnorm and instancenorm on plain tensors (ref/norm.c
 * has the formulas). Each row is processed by one thread, and stays in its
 * cache between the passes over the row. The workspace stores mean and
 * 1/deviation of each row.
 */
#include "op/cpu/ops/norm.h"

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "simd/team.h"

/* Minimum elements per thread. */
#define CPU_NORM_GRAIN 8192

typedef struct cpu_norm {
    cpu_combine_t combine;
    size_t parts_at; /* offset of parts or sums in scratch */
} cpu_norm_t;

/* ---- calls --------------------------------------------------------------- */

/* Number of parts of CPU_NORM_ROWS rows, if one pass computes all gradients.
 * 0: there is no such pass, or fewer parts than threads. Then the gradients of
 * the parameters have a loop of their own. */
static int64_t norm_parts(const op_t *op)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    const int64_t parts = (rows.rows + CPU_NORM_ROWS - 1) / CPU_NORM_ROWS;
    const bool can = op->config.training && op->config.need_dx &&
                     op->config.norm.affine && rows.space == 1 &&
                     rows.groups == 1;

    return can && parts >= op->config.threads ? parts : 0;
}

/* Number of doubles in which cpu_norm_body_backward stores sums. */
static int64_t norm_sums_count(const op_t *op)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    const bool can = op->config.training && op->config.need_dx &&
                     op->config.norm.affine && rows.space > 1;

    return can ? 2 * rows.rows * (rows.length / rows.space) : 0;
}

static err_code_t cpu_norm_open(op_t *op, err_t *err)
{
    const op_rows_t rows = op_norm_rows(&op->config);
    err_code_t rc;
    cpu_norm_t *norm;

    if (op->config.training)
        op->workspace_bytes = 2 * (size_t)rows.rows * sizeof(float);
    rc = cpu_combine_open_in(op, sizeof *norm, true, err);
    if (rc != ERR_OK)
        return rc;
    norm = op->state;
    op->adds_dx = rows.space == 1 && op->config.norm.affine &&
                  norm->combine.grad[0].direct;
    norm->parts_at = mem_round(op->scratch_bytes);
    op->scratch_bytes =
        norm->parts_at +
        2 * (size_t)(norm_parts(op) * rows.length) * sizeof(float) +
        (size_t)norm_sums_count(op) * sizeof(double);
    return ERR_OK;
}

static cpu_norm_work_t norm_work(const op_t *op, const op_args_t *args)
{
    cpu_norm_work_t work = {
        .rows = op_norm_rows(&op->config),
        .centred = op->config.kind != OP_RMSNORM,
        .epsilon = (float)op->config.epsilon,
        .gamma = args->params[0],
        .beta = args->params[1],
        .kept = op->config.training ? args->workspace : NULL,
    };

    work.step = work.rows.space == 1 && work.gamma != NULL;
    work.segment = work.gamma == NULL || work.step == 1 ? work.rows.length
                                                        : work.rows.space;
    return work;
}

static int64_t norm_grain(int64_t elems)
{
    return elems >= CPU_NORM_GRAIN ? 1 : CPU_NORM_GRAIN / elems;
}

static err_code_t cpu_norm_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_norm_work_t work = norm_work(op, args);
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.y = args->y;
    work.bf16 = op_stored_bf16(&op->out);
    simd_team_run(op->config.threads, work.rows.rows,
                  norm_grain(work.rows.length), cpu_norm_body_forward, &work);
    return ERR_OK;
}

/* Compute dx and the gradients of the parameters in two loops. */
static void norm_run_apart(const op_t *op, cpu_norm_work_t *work)
{
    const op_rows_t *rows = &work->rows;
    const int64_t params = rows->groups * (rows->length / rows->space);

    if (op->config.need_dx)
        simd_team_run(op->config.threads, rows->rows, norm_grain(rows->length),
                      cpu_norm_body_backward, work);
    if (op->config.norm.affine)
        simd_team_run(op->config.threads, params,
                      norm_grain(op_desc_elems(&op->config.in) / params),
                      cpu_norm_body_params, work);
}

static err_code_t cpu_norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_norm_t *norm = op->state;
    cpu_norm_work_t work = norm_work(op, args);
    const int64_t parts = norm_parts(op);
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x[0];
    work.dy = args->dy;
    work.dgamma = args->dparams[0];
    work.dbeta = args->dparams[1];
    work.adds = args->add_dx;
    work.dx = cpu_combine_place(op, args, 0);
    if (norm_sums_count(op) > 0)
        work.sums = (double *)((char *)args->scratch + norm->parts_at);
    if (parts > 0) {
        work.parts = (float *)((char *)args->scratch + norm->parts_at);
        simd_team_run(op->config.threads, parts,
                      1 + CPU_NORM_GRAIN / (CPU_NORM_ROWS * work.rows.length),
                      cpu_norm_body_all, &work);
        cpu_norm_add_parts(&work, parts);
    } else {
        norm_run_apart(op, &work);
    }
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_norm_kernel = {
    .open = cpu_norm_open,
    .close = cpu_combine_close,
    .forward = cpu_norm_forward,
    .backward = cpu_norm_backward,
};
