/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * relu in whatever layout x has, padding included: elements are independent,
 * and the padding is 0 and stays 0. oneDNN's relu is not used, because it
 * turns NaN into 0, which would hide a diverging run.
 */
#include "op/cpu/ops/relu.h"

#include "op/cpu/cpu.h"
#include "op/cpu/vector/chunk.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Minimum elements per thread. */
#define CPU_RELU_GRAIN 16384

typedef struct cpu_relu_work {
    const void *x, *y, *dy;
    void *to;
    bool bf16; /* all tensors are stored as bfloat16 */
} cpu_relu_work_t;

static err_code_t cpu_relu_open(op_t *op, err_t *err)
{
    (void)err;
    op->in_place = true;
    op->reads_x = false;
    op->reads_y = true;
    op->out.layout = op->config.in.layout;
    op->out.bytes = op->config.in.bytes;
    op->out.stored_as = op_desc_storage(&op->config.in);
    return ERR_OK;
}

SIMD_CLONES
static void cpu_relu_run(const float *x, float *y, int64_t count)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

SIMD_CLONES
static void cpu_relu_mask(const float *y, const float *dy, float *dx,
                          int64_t count)
{
    SIMD_INDEPENDENT
    for (int64_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

static void cpu_relu_body_forward(void *context, int64_t first, int64_t last)
{
    const cpu_relu_work_t *work = context;
    float buffer[CPU_CHUNK];
    int64_t n;

    for (int64_t i = first; i < last; i += n) {
        n = cpu_chunk_count(i, last, work->bf16);
        cpu_relu_run(cpu_chunk_read(work->x, i, n, work->bf16, buffer),
                     cpu_chunk_place(work->to, i, work->bf16, buffer), n);
        cpu_chunk_flush(work->to, i, n, work->bf16, buffer);
    }
}

static void cpu_relu_body_backward(void *context, int64_t first, int64_t last)
{
    const cpu_relu_work_t *work = context;
    float y[CPU_CHUNK], dy[CPU_CHUNK];
    int64_t n;

    for (int64_t i = first; i < last; i += n) {
        n = cpu_chunk_count(i, last, work->bf16);
        cpu_relu_mask(cpu_chunk_read(work->y, i, n, work->bf16, y),
                      cpu_chunk_read(work->dy, i, n, work->bf16, dy),
                      cpu_chunk_place(work->to, i, work->bf16, dy), n);
        cpu_chunk_flush(work->to, i, n, work->bf16, dy);
    }
}

static void cpu_relu_team(const op_t *op, simd_team_body_t *body,
                          cpu_relu_work_t *work)
{
    work->bf16 = op_stored_bf16(&op->out);
    simd_team_run(op->config.threads, (int64_t)op_desc_stored_elems(&op->out),
                  CPU_RELU_GRAIN, body, work);
}

static err_code_t cpu_relu_forward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_relu_work_t work = {.x = args->x, .to = args->y};

    (void)err;
    cpu_relu_team(op, cpu_relu_body_forward, &work);
    return ERR_OK;
}

void cpu_relu_gradient(const op_t *op, const op_args_t *args, void *to)
{
    cpu_relu_work_t work = {.y = args->y, .dy = args->dy, .to = to};

    cpu_relu_team(op, cpu_relu_body_backward, &work);
}

static err_code_t cpu_relu_backward(op_t *op, const op_args_t *args, err_t *err)
{
    (void)err;
    if (op->config.need_dx)
        cpu_relu_gradient(op, args, args->dx);
    return ERR_OK;
}

const op_kernel_t cpu_relu_kernel = {
    .open = cpu_relu_open,
    .forward = cpu_relu_forward,
    .backward = cpu_relu_backward,
};
