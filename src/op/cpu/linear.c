/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear: three products of plain matrices, turned as they are stored, so that
 * nothing is reordered:
 *   y [N,O] = x [N,F] w' + b,   dx [N,F] = dy w,   dw [O,F] = dy' x
 * and db, the column sums of dy. oneDNN's inner product would do the same, but
 * it is up to three times slower on plain w, and allocates in each call.
 */
#include "op/cpu/linear.h"

#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

/* Columns that are worth a thread. */
#define CPU_BIAS_GRAIN 64

typedef struct cpu_linear {
    cpu_room_t room;
    cpu_plain_t plain;
    cpu_prim_t forward, data, weights;
} cpu_linear_t;

static err_code_t cpu_linear_open_backward(op_t *op, const cpu_matmul_spec_t *y,
                                           err_t *err)
{
    cpu_linear_t *linear = op->state;
    int64_t N = y->M, O = y->N, F = y->K;
    cpu_matmul_spec_t dw = {.M = O, .N = F, .K = N, .a_turned = true};
    cpu_matmul_spec_t dx = {.M = N, .N = F, .K = O};
    err_code_t code =
        cpu_prim_matmul(&linear->weights, &linear->room.engine, &dw, err);

    if (code == ERR_OK && op->config.need_dx)
        code = cpu_prim_matmul(&linear->data, &linear->room.engine, &dx, err);
    return code;
}

cpu_matmul_spec_t cpu_linear_product(const op_config_t *config)
{
    return (cpu_matmul_spec_t){.M = op_linear_rows(config),
                               .N = config->out,
                               .K = op_linear_features(config),
                               .b_turned = true,
                               .bias = config->bias};
}

static err_code_t cpu_linear_open(op_t *op, err_t *err)
{
    cpu_matmul_spec_t y = cpu_linear_product(&op->config);
    cpu_linear_t *linear;
    err_code_t code;

    if (op->config.bf16) {
        op->kernel = &cpu_linear_bf16_kernel;
        return op->kernel->open(op, err);
    }
    code = mem_alloc(sizeof *linear, "a linear op", &op->state, err);
    if (code != ERR_OK)
        return code;
    linear = op->state;
    code = cpu_engine_open(&linear->room.engine, err);
    if (code == ERR_OK)
        code = cpu_plain_open(&linear->plain, &linear->room, op, err);
    if (code == ERR_OK)
        code = cpu_prim_matmul(&linear->forward, &linear->room.engine, &y, err);
    if (code == ERR_OK && op->config.training)
        code = cpu_linear_open_backward(op, &y, err);
    if (code == ERR_OK)
        cpu_room_finish(&linear->room, op);
    return code;
}

static void cpu_linear_close(op_t *op)
{
    cpu_linear_t *linear = op->state;

    if (linear == NULL)
        return;
    cpu_prim_close(&linear->forward);
    cpu_prim_close(&linear->data);
    cpu_prim_close(&linear->weights);
    cpu_plain_close(&linear->plain);
    cpu_engine_close(&linear->room.engine);
    mem_free(linear);
}

static err_code_t cpu_linear_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_linear_t *linear = op->state;
    const void *x;
    err_code_t code =
        cpu_port_read(&linear->plain.x, &linear->room, args, args->x, &x, err);

    if (code != ERR_OK)
        return code;
    cpu_prim_bind(&linear->forward, DNNL_ARG_SRC, x);
    cpu_prim_bind(&linear->forward, DNNL_ARG_WEIGHTS, args->params[0]);
    cpu_prim_bind(&linear->forward, DNNL_ARG_BIAS, args->params[1]);
    cpu_prim_bind(&linear->forward, DNNL_ARG_DST, args->y);
    return cpu_room_run(&linear->room, &linear->forward, args, err);
}

typedef struct cpu_bias_work {
    const float *dy;
    float *db;
    uint16_t *narrow; /* dy rounded, or NULL */
    int64_t N, O;
} cpu_bias_work_t;

/* to += from */
CPU_CLONES
static void cpu_bias_row(float *restrict to, const float *restrict from,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* db[o] = sum_n dy[n,o] for a range of columns, row after row, each of which is
 * rounded while it is in the cache. */
static void cpu_bias_body(void *context, int64_t first, int64_t last)
{
    const cpu_bias_work_t *work = context;
    const int64_t count = last - first;

    memset(work->db + first, 0, (size_t)count * sizeof(float));
    for (int64_t n = 0; n < work->N; n++) {
        const int64_t at = n * work->O + first;

        cpu_bias_row(work->db + first, work->dy + at, count);
        if (work->narrow != NULL)
            half_round_bf16(work->narrow + at, work->dy + at, (size_t)count);
    }
}

void cpu_linear_bias(const op_t *op, const op_args_t *args, uint16_t *narrow)
{
    cpu_bias_work_t work = {.dy = args->dy,
                            .db = args->dparams[1],
                            .narrow = narrow,
                            .N = op_linear_rows(&op->config),
                            .O = op->config.out};

    cpu_team_run(op->config.threads, work.O, CPU_BIAS_GRAIN, cpu_bias_body,
                 &work);
}

static err_code_t cpu_linear_run_weights(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    cpu_linear_t *linear = op->state;
    const void *x;
    err_code_t code =
        cpu_port_read(&linear->plain.x, &linear->room, args, args->x, &x, err);

    if (code != ERR_OK)
        return code;
    if (op->config.bias)
        cpu_linear_bias(op, args, NULL);
    cpu_prim_bind(&linear->weights, DNNL_ARG_SRC, args->dy);
    cpu_prim_bind(&linear->weights, DNNL_ARG_WEIGHTS, x);
    cpu_prim_bind(&linear->weights, DNNL_ARG_DST, args->dparams[0]);
    return cpu_room_run(&linear->room, &linear->weights, args, err);
}

static err_code_t cpu_linear_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_linear_t *linear = op->state;
    err_code_t code = cpu_linear_run_weights(op, args, err);

    if (code != ERR_OK || !op->config.need_dx)
        return code;
    cpu_prim_bind(&linear->data, DNNL_ARG_SRC, args->dy);
    cpu_prim_bind(&linear->data, DNNL_ARG_WEIGHTS, args->params[0]);
    cpu_prim_bind(&linear->data, DNNL_ARG_DST,
                  cpu_port_place(&linear->plain.dx, args, args->dx));
    code = cpu_room_run(&linear->room, &linear->data, args, err);
    if (code == ERR_OK)
        code = cpu_port_flush(&linear->plain.dx, &linear->room, args, args->dx,
                              err);
    return code;
}

const op_kernel_t cpu_linear_kernel = {
    .open = cpu_linear_open,
    .close = cpu_linear_close,
    .forward = cpu_linear_forward,
    .backward = cpu_linear_backward,
};
