/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * avgpool with op_pool_t.ceil, whose last windows reach beyond x and its
 * padding, on plain tensors. Positions beyond the padding do not count in the
 * average, which oneDNN's pools cannot do. One plane (box.h) is computed by one
 * thread.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/box.h"
#include "op/cpu/ops/combine.h"
#include "simd/team.h"

typedef struct ceil_work {
    int64_t in[OP_SPACE_MAX], out[OP_SPACE_MAX], kernel[OP_SPACE_MAX],
        stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    bool inside; /* average over elements of x only, not over padding */
    const float *from;
    float *to;
} ceil_work_t;

/* The elements of x in a window, and the divisor of their sum. */
typedef struct ceil_window {
    cpu_box_t box;
    float divisor;
} ceil_window_t;

static err_code_t cpu_avgpool_ceil_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    return cpu_combine_open(op, true, err);
}

static ceil_work_t work_of(const op_t *op)
{
    const op_pool_t *pool = &op->config.pool;
    const int space = op->config.in.ndim - 2;
    ceil_work_t work = {.inside = pool->inside};

    cpu_space_three(op->config.in.dims + 2, space, 1, work.in);
    cpu_space_three(op->out.dims + 2, space, 1, work.out);
    cpu_space_three(pool->kernel, space, 1, work.kernel);
    cpu_space_three(pool->stride, space, 1, work.stride);
    cpu_space_three(pool->pad, space, 0, work.pad);
    return work;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Window number [o] of a plane. */
static ceil_window_t window_of(const ceil_work_t *work, int64_t o)
{
    ceil_window_t window;
    int64_t count = 1;

    for (int i = OP_SPACE_MAX - 1; i >= 0; i--) {
        const int64_t first = o % work->out[i] * work->stride[i] - work->pad[i];
        const int64_t end =
            least(first + work->kernel[i], work->in[i] + work->pad[i]);

        window.box.from[i] = first < 0 ? 0 : first;
        window.box.to[i] = least(end, work->in[i]);
        count *=
            work->inside ? window.box.to[i] - window.box.from[i] : end - first;
        o /= work->out[i];
    }
    window.divisor = (float)count;
    return window;
}

static int64_t windows_of(const ceil_work_t *work)
{
    return work->out[0] * work->out[1] * work->out[2];
}

static int64_t plane_of(const ceil_work_t *work)
{
    return work->in[0] * work->in[1] * work->in[2];
}

static void forward_body(void *context, int64_t first, int64_t last)
{
    const ceil_work_t *work = context;
    const int64_t windows = windows_of(work);

    for (int64_t plane = first; plane < last; plane++)
        for (int64_t o = 0; o < windows; o++) {
            const ceil_window_t window = window_of(work, o);

            work->to[plane * windows + o] =
                cpu_box_sum(&window.box, work->in,
                            work->from + plane * plane_of(work)) /
                window.divisor;
        }
}

static void backward_body(void *context, int64_t first, int64_t last)
{
    const ceil_work_t *work = context;
    const int64_t windows = windows_of(work), size = plane_of(work);

    for (int64_t plane = first; plane < last; plane++) {
        float *dx = work->to + plane * size;

        memset(dx, 0, (size_t)size * sizeof *dx);
        for (int64_t o = 0; o < windows; o++) {
            const ceil_window_t window = window_of(work, o);

            cpu_box_add(&window.box, work->in,
                        work->from[plane * windows + o] / window.divisor, dx);
        }
    }
}

static void planes_run(const op_t *op, ceil_work_t *work,
                       simd_team_body_t *body)
{
    const op_desc_t *in = &op->config.in;

    simd_team_run(op->config.threads, in->dims[0] * in->dims[1],
                  1 + CPU_COMBINE_GRAIN / plane_of(work), body, work);
}

static err_code_t cpu_avgpool_ceil_forward(op_t *op, const op_args_t *args,
                                           err_t *err)
{
    ceil_work_t work = work_of(op);
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc != ERR_OK)
        return rc;
    work.from = x[0];
    work.to = args->y;
    planes_run(op, &work, forward_body);
    return ERR_OK;
}

static err_code_t cpu_avgpool_ceil_backward(op_t *op, const op_args_t *args,
                                            err_t *err)
{
    ceil_work_t work = work_of(op);

    if (!op->config.need_dx)
        return ERR_OK;
    work.from = args->dy;
    work.to = cpu_combine_place(op, args, 0);
    planes_run(op, &work, backward_body);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_avgpool_ceil_kernel = {
    .open = cpu_avgpool_ceil_open,
    .close = cpu_combine_close,
    .forward = cpu_avgpool_ceil_forward,
    .backward = cpu_avgpool_ceil_backward,
};
