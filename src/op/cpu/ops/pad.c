/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* pad of a plain x, processed by lines of the last dimension: the middle of a
 * line of y is a line of x. The images [n, c] are divided among threads. */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "simd/team.h"
#include "simd/vector.h"

typedef struct pad_work {
    const op_config_t *config;
    const op_desc_t *out;
    int64_t x_elems, y_elems, y_lines; /* of an image */
    int64_t width, y_width;            /* elements of a line of x and of y */
    const float *from;
    float *to;
} pad_work_t;

static err_code_t cpu_pad_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    return cpu_combine_open(op, true, err);
}

/* Line of x that line [at] of y contains; -1 if line [at] is all padding. */
static int64_t source_line(const pad_work_t *work, int64_t at)
{
    int64_t source = 0, step = 1;

    for (int d = work->out->ndim - 2; d >= 2; d--) {
        int64_t index =
            op_pad_source(work->config, d - 2, at % work->out->dims[d]);

        if (index < 0)
            return -1;
        source += index * step;
        step *= work->config->in.dims[d];
        at /= work->out->dims[d];
    }
    return source;
}

static void pad_fill(float *to, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = value;
}

/* Write a line of y: its edges and its middle. NULL: all padding. */
static void pad_line(const pad_work_t *work, const float *x, float *y)
{
    const int last = work->out->ndim - 3;
    const int64_t before = work->config->pad.before[last];
    const float value = (float)work->config->pad.value;

    if (x == NULL) {
        pad_fill(y, work->y_width, value);
        return;
    }
    memcpy(y + before, x, (size_t)work->width * sizeof *y);
    if (!work->config->pad.reflect) {
        pad_fill(y, before, value);
        pad_fill(y + before + work->width, work->y_width - before - work->width,
                 value);
        return;
    }
    for (int64_t i = 0; i < before; i++)
        y[i] = x[before - i];
    for (int64_t i = before + work->width; i < work->y_width; i++)
        y[i] = x[op_pad_source(work->config, last, i)];
}

static void pad_forward_body(void *context, int64_t first, int64_t last)
{
    const pad_work_t *work = context;

    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++) {
            int64_t source = source_line(work, line);
            const float *image = work->from + n * work->x_elems;

            pad_line(work, source < 0 ? NULL : image + source * work->width,
                     work->to + n * work->y_elems + line * work->y_width);
        }
}

/* Add a line of dy to a line of dx: first the middle, then the edges, if they
 * are reflected. */
SIMD_CLONES
static void pad_line_back(const pad_work_t *work, const float *dy,
                          float *restrict dx)
{
    const int last = work->out->ndim - 3;
    const int64_t before = work->config->pad.before[last];

    for (int64_t i = 0; i < work->width; i++)
        dx[i] += dy[before + i];
    if (!work->config->pad.reflect)
        return;
    for (int64_t i = 0; i < before; i++)
        dx[before - i] += dy[i];
    for (int64_t i = before + work->width; i < work->y_width; i++)
        dx[op_pad_source(work->config, last, i)] += dy[i];
}

static void pad_backward_body(void *context, int64_t first, int64_t last)
{
    const pad_work_t *work = context;

    memset(work->to + first * work->x_elems, 0,
           (size_t)((last - first) * work->x_elems) * sizeof(float));
    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++) {
            int64_t source = source_line(work, line);
            const float *dy =
                work->from + n * work->y_elems + line * work->y_width;
            float *dx = work->to + n * work->x_elems + source * work->width;

            if (source >= 0)
                pad_line_back(work, dy, dx);
        }
}

static void pad_run(const op_t *op, simd_team_body_t *body, const float *from,
                    float *to)
{
    const op_desc_t *in = &op->config.in;
    pad_work_t work = {.config = &op->config,
                       .out = &op->out,
                       .x_elems = op_desc_space(in),
                       .y_elems = op_desc_space(&op->out),
                       .width = in->dims[in->ndim - 1],
                       .y_width = op->out.dims[in->ndim - 1],
                       .from = from,
                       .to = to};

    work.y_lines = work.y_elems / work.y_width;
    simd_team_run(op->config.threads, in->dims[0] * in->dims[1],
                  1 + CPU_COMBINE_GRAIN / work.y_elems, body, &work);
}

static err_code_t cpu_pad_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        pad_run(op, pad_forward_body, x[0], args->y);
    return rc;
}

static err_code_t cpu_pad_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    pad_run(op, pad_backward_body, args->dy, cpu_combine_place(op, args, 0));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_pad_kernel = {
    .open = cpu_pad_open,
    .close = cpu_combine_close,
    .forward = cpu_pad_forward,
    .backward = cpu_pad_backward,
};
