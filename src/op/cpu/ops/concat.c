/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * concat and slice on plain tensors. Relative to the axis, a tensor is [outer,
 * length * inner], and a part of it is a run of consecutive elements in each
 * row.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "simd/team.h"

/* Copies [run] elements of each row; rows begin [from_step] and [to_step]
 * elements apart. */
typedef struct cpu_runs {
    const float *from;
    float *to;
    size_t run, from_step, to_step;
} cpu_runs_t;

static err_code_t cpu_concat_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    return cpu_combine_open(op, true, err);
}

static void cpu_runs_body(void *context, int64_t first, int64_t last)
{
    const cpu_runs_t *runs = context;

    for (int64_t i = first; i < last; i++)
        memcpy(runs->to + (size_t)i * runs->to_step,
               runs->from + (size_t)i * runs->from_step,
               runs->run * sizeof(float));
}

static void cpu_runs_copy(const op_t *op, cpu_runs_t *runs, int64_t rows)
{
    int64_t grain = 1 + CPU_COMBINE_GRAIN / (int64_t)runs->run;

    simd_team_run(op->config.threads, rows, grain, cpu_runs_body, runs);
}

/* Elements of one row: the product of the dimensions from [axis] on. */
static size_t row_of(const op_desc_t *desc, int axis)
{
    size_t elems = 1;

    for (int i = axis; i < desc->ndim; i++)
        elems *= (size_t)desc->dims[i];
    return elems;
}

static int64_t rows_of(const op_desc_t *desc, int axis)
{
    int64_t rows = 1;

    for (int i = 0; i < axis; i++)
        rows *= desc->dims[i];
    return rows;
}

/* ---- concat -------------------------------------------------------------- */

/* Elements that input [k] contributes to a row of y. */
static size_t concat_run(const op_t *op, int k)
{
    const op_config_t *config = &op->config;

    return row_of(k == 0 ? &config->in : &config->other[k - 1],
                  config->view.axis);
}

static err_code_t cpu_concat_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const int axis = op->config.view.axis;
    const float *inputs[OP_INPUTS_MAX];
    float *y = args->y;
    err_code_t rc = cpu_combine_read(op, args, inputs, err);

    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++) {
        size_t run = concat_run(op, k);
        cpu_runs_t runs = {.from = inputs[k],
                           .to = y,
                           .run = run,
                           .from_step = run,
                           .to_step = row_of(&op->out, axis)};

        cpu_runs_copy(op, &runs, rows_of(&op->out, axis));
        y += run;
    }
    return rc;
}

static err_code_t cpu_concat_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    const int axis = op->config.view.axis;
    const float *dy = args->dy;
    err_code_t rc = ERR_OK;

    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++) {
        size_t run = concat_run(op, k);
        cpu_runs_t runs = {.from = dy,
                           .to = cpu_combine_place(op, args, k),
                           .run = run,
                           .from_step = row_of(&op->out, axis),
                           .to_step = run};

        dy += run;
        if (runs.to == NULL)
            continue;
        cpu_runs_copy(op, &runs, rows_of(&op->out, axis));
        rc = cpu_combine_flush(op, args, k, err);
    }
    return rc;
}

const op_kernel_t cpu_concat_kernel = {
    .open = cpu_concat_open,
    .close = cpu_combine_close,
    .forward = cpu_concat_forward,
    .backward = cpu_concat_backward,
};

/* ---- slice --------------------------------------------------------------- */

/* Offset of the slice in a row of x. */
static size_t slice_start(const op_t *op)
{
    const op_view_t *view = &op->config.view;

    return row_of(&op->config.in, view->axis + 1) * (size_t)view->start;
}

static err_code_t cpu_slice_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const int axis = op->config.view.axis;
    const float *x[OP_INPUTS_MAX];
    size_t run = row_of(&op->out, axis);
    err_code_t rc = cpu_combine_read(op, args, x, err);
    cpu_runs_t runs = {.to = args->y,
                       .run = run,
                       .from_step = row_of(&op->config.in, axis),
                       .to_step = run};

    if (rc != ERR_OK)
        return rc;
    runs.from = x[0] + slice_start(op);
    cpu_runs_copy(op, &runs, rows_of(&op->out, axis));
    return ERR_OK;
}

static err_code_t cpu_slice_backward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const int axis = op->config.view.axis;
    const size_t run = row_of(&op->out, axis);
    float *dx;

    if (!op->config.need_dx)
        return ERR_OK;
    dx = cpu_combine_place(op, args, 0);
    memset(dx, 0, (size_t)op_desc_elems(&op->config.in) * sizeof *dx);
    cpu_runs_copy(op,
                  &(cpu_runs_t){.from = args->dy,
                                .to = dx + slice_start(op),
                                .run = run,
                                .from_step = run,
                                .to_step = row_of(&op->config.in, axis)},
                  rows_of(&op->out, axis));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_slice_kernel = {
    .open = cpu_concat_open,
    .close = cpu_combine_close,
    .forward = cpu_slice_forward,
    .backward = cpu_slice_backward,
};
