/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * linear: three products of plain matrices, turned as they are stored, so that
 * nothing is reordered:
 *   y [N,O] = x [N,F] w' + b,   dx [N,F] = dy w,   dw [O,F] = dy' x
 * and db, the column sums of dy. With an activation, y is that of the product,
 * which is kept; its slope meets dy in the pass that sums db. oneDNN's inner
 * product would do the same, but it is up to three times slower on plain w, and
 * allocates in each call; large products are our own (product.h).
 */
#include "op/cpu/ops/linear.h"

#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/product.h"
#include "op/cpu/vector/activations.h"
#include "op/cpu/vector/chunk.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Columns that are worth a thread; and elements, of an activation. */
#define CPU_BIAS_GRAIN 64
#define CPU_BEND_GRAIN 4096
/* Elements of a row that are worked on while they are in the nearest cache. */
#define CPU_PIECE 2048

typedef struct cpu_linear {
    cpu_scratch_t room;
    cpu_plain_t plain;
    cpu_product_t forward, data, weights;
    size_t dh_at; /* in scratch: the gradient of what the activation is of */
} cpu_linear_t;

static err_code_t cpu_linear_open_products(op_t *op, err_t *err)
{
    cpu_linear_t *linear = op->state;
    cpu_scratch_t *room = &linear->room;
    const cpu_matmul_spec_t y = cpu_linear_product(&op->config);
    const int64_t N = y.M, O = y.N, F = y.K;
    const cpu_matmul_spec_t dw = {.M = O, .N = F, .K = N, .a_turned = true};
    const cpu_matmul_spec_t dx = {.M = N, .N = F, .K = O};
    err_code_t code;

    if (op->config.training && op->config.activation != OP_LINEAR) {
        op->workspace_bytes = (size_t)(N * O) * sizeof(float);
        linear->dh_at = cpu_scratch_take(room, op->workspace_bytes);
        cpu_scratch_keep(room);
    }
    code = cpu_product_open(&linear->forward, room, op, &y, err);
    cpu_scratch_restart(room);
    if (code == ERR_OK && op->config.training)
        code = cpu_product_open(&linear->weights, room, op, &dw, err);
    cpu_scratch_restart(room);
    if (code == ERR_OK && op->config.training && op->config.need_dx)
        code = cpu_product_open(&linear->data, room, op, &dx, err);
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
        code = cpu_linear_open_products(op, err);
    if (code == ERR_OK)
        cpu_scratch_finish(&linear->room, op);
    return code;
}

static void cpu_linear_close(op_t *op)
{
    cpu_linear_t *linear = op->state;

    if (linear == NULL)
        return;
    cpu_product_close(&linear->forward);
    cpu_product_close(&linear->data);
    cpu_product_close(&linear->weights);
    cpu_plain_close(&linear->plain);
    cpu_engine_close(&linear->room.engine);
    mem_free(linear);
}

static err_code_t cpu_linear_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    cpu_linear_t *linear = op->state;
    const bool bends = op->config.activation != OP_LINEAR;
    float *h = bends && op->config.training ? args->workspace : args->y;
    const void *x;
    err_code_t code = cpu_reorder_read(&linear->plain.x, &linear->room, args,
                                       args->x, &x, err);

    if (code != ERR_OK)
        return code;
    code = cpu_product_run(
        &linear->forward, &linear->room, op, args,
        (cpu_factors_t){x, args->params[0], args->params[1], h}, err);
    if (code == ERR_OK && bends)
        cpu_linear_bend(op, args, h);
    return code;
}

/* ---- passes over y and dy ------------------------------------------------ */

typedef struct cpu_bend_work {
    const cpu_activation_t *activation;
    float alpha;
    const float *h;
    void *y;
    bool narrow; /* y as bfloat16 */
} cpu_bend_work_t;

static void cpu_bend_body(void *context, int64_t first, int64_t last)
{
    const cpu_bend_work_t *work = context;
    float room[CPU_CHUNK];
    int64_t n;

    for (int64_t i = first; i < last; i += n) {
        n = cpu_chunk_count(i, last, work->narrow);
        cpu_activation_forward(work->activation, work->h + i, work->alpha,
                               cpu_chunk_place(work->y, i, work->narrow, room),
                               n);
        cpu_chunk_flush(work->y, i, n, work->narrow, room);
    }
}

void cpu_linear_bend(const op_t *op, const op_args_t *args, const float *h)
{
    cpu_bend_work_t work = {
        .activation = cpu_activation_of(op->config.activation),
        .alpha = (float)op->config.alpha,
        .h = h,
        .y = args->y,
        .narrow = op->config.narrow,
    };

    simd_team_run(op->config.threads,
                  op_linear_rows(&op->config) * op->config.out, CPU_BEND_GRAIN,
                  cpu_bend_body, &work);
}

typedef struct cpu_pull_work {
    const cpu_activation_t *activation; /* NULL: none */
    float alpha;
    const float *dy, *h;
    float *wide, *db;
    uint16_t *narrow;
    int64_t N, O;
} cpu_pull_work_t;

/* to += from */
SIMD_CLONES
static void cpu_bias_row(float *restrict to, const float *restrict from,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* The columns [first, first + count), row after row. */
static void cpu_pull_panel(const cpu_pull_work_t *work, int64_t first,
                           int64_t count)
{
    float piece[CPU_PIECE];

    if (work->db != NULL)
        memset(work->db + first, 0, (size_t)count * sizeof(float));
    for (int64_t n = 0; n < work->N; n++) {
        const int64_t at = n * work->O + first;
        const float *dy = work->dy + at;

        if (work->activation != NULL) {
            float *to = work->wide == NULL ? &piece[0] : work->wide + at;

            cpu_activation_backward(work->activation, work->h + at, dy,
                                    work->alpha, to, count);
            dy = to;
        }
        if (work->db != NULL)
            cpu_bias_row(work->db + first, dy, count);
        if (work->narrow != NULL)
            half_round_bf16(work->narrow + at, dy, (size_t)count);
    }
}

static void cpu_pull_body(void *context, int64_t first, int64_t last)
{
    for (int64_t o = first; o < last; o += CPU_PIECE)
        cpu_pull_panel(context, o, last - o < CPU_PIECE ? last - o : CPU_PIECE);
}

void cpu_linear_pull(const op_t *op, const op_args_t *args, const float *h,
                     float *wide, uint16_t *narrow)
{
    cpu_pull_work_t work = {.alpha = (float)op->config.alpha,
                            .dy = args->dy,
                            .h = h,
                            .wide = wide,
                            .narrow = narrow,
                            .N = op_linear_rows(&op->config),
                            .O = op->config.out};

    if (op->config.activation != OP_LINEAR)
        work.activation = cpu_activation_of(op->config.activation);
    if (op->config.bias)
        work.db = args->dparams[1];
    simd_team_run(op->config.threads, work.O, CPU_BIAS_GRAIN, cpu_pull_body,
                  &work);
}

/* ---- float32 ------------------------------------------------------------- */

static err_code_t cpu_linear_run_weights(op_t *op, const op_args_t *args,
                                         const void *dy, err_t *err)
{
    cpu_linear_t *linear = op->state;
    const void *x;
    err_code_t code = cpu_reorder_read(&linear->plain.x, &linear->room, args,
                                       args->x, &x, err);

    if (code != ERR_OK)
        return code;
    return cpu_product_run(&linear->weights, &linear->room, op, args,
                           (cpu_factors_t){dy, x, NULL, args->dparams[0]}, err);
}

static err_code_t cpu_linear_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_linear_t *linear = op->state;
    const bool bends = op->config.activation != OP_LINEAR;
    float *dh = bends ? (float *)((char *)args->scratch + linear->dh_at) : NULL;
    const void *dy = bends ? dh : args->dy;
    err_code_t code;

    if (bends || op->config.bias)
        cpu_linear_pull(op, args, args->workspace, dh, NULL);
    code = cpu_linear_run_weights(op, args, dy, err);
    if (code != ERR_OK || !op->config.need_dx)
        return code;
    code = cpu_product_run(
        &linear->data, &linear->room, op, args,
        (cpu_factors_t){dy, args->params[0], NULL,
                        cpu_reorder_place(&linear->plain.dx, args, args->dx)},
        err);
    if (code == ERR_OK)
        code = cpu_reorder_flush(&linear->plain.dx, &linear->room, args,
                                 args->dx, err);
    return code;
}

const op_kernel_t cpu_linear_kernel = {
    .open = cpu_linear_open,
    .close = cpu_linear_close,
    .forward = cpu_linear_forward,
    .backward = cpu_linear_backward,
};
