/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * upsample of a plain x, processed by lines of the last dimension: a line of y
 * repeats one line of x. The images [n, c] are divided among threads.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "simd/team.h"
#include "simd/vector.h"
#include "simd/zip.h"

typedef struct cpu_upsample_work {
    int ndim;               /* dimensions of an image */
    const int64_t *dims;    /* of an image of x */
    const int64_t *factors; /* sizes of y's dimensions divided by those of x */
    int64_t x_elems, y_elems, y_lines; /* of an image */
    const float *from;
    float *to;
} cpu_upsample_work_t;

static err_code_t cpu_upsample_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    return cpu_combine_open(op, true, err);
}

/* Line of x that line [at] of y repeats. */
static int64_t source_line(const cpu_upsample_work_t *work, int64_t at)
{
    int64_t source = 0, step = 1;

    for (int d = work->ndim - 2; d >= 0; d--) {
        int64_t size = work->dims[d] * work->factors[d];

        source += (d == 0 ? at : at % size) / work->factors[d] * step;
        at = d == 0 ? 0 : at / size;
        step *= work->dims[d];
    }
    return source;
}

/* Write each of the [width] elements of x [factor] times. */
SIMD_CLONES
static void upsample_stretch(const float *x, int64_t width, int64_t factor,
                             float *restrict y)
{
    int64_t i = 0;

    for (; factor == 2 && i + SIMD_ZIP <= width; i += SIMD_ZIP)
        simd_zip(x + i, x + i, y + 2 * i);
    for (; i < width; i++)
        for (int64_t k = 0; k < factor; k++)
            y[i * factor + k] = x[i];
}

/* Backward of upsample_stretch: add sums of [factor] elements of dy to dx. */
SIMD_CLONES
static void upsample_shrink(const float *dy, int64_t width, int64_t factor,
                            float *restrict dx)
{
    int64_t i = 0;

    for (; factor == 2 && i + SIMD_ZIP <= width; i += SIMD_ZIP) {
        float even[SIMD_ZIP], odd[SIMD_ZIP];

        simd_unzip(dy + 2 * i, even);
        simd_unzip(dy + 2 * i + 1, odd);
        for (int j = 0; j < SIMD_ZIP; j++)
            dx[i + j] = dx[i + j] + even[j] + odd[j];
    }
    for (; i < width; i++)
        for (int64_t k = 0; k < factor; k++)
            dx[i] += dy[i * factor + k];
}

static void cpu_upsample_forward_body(void *context, int64_t first,
                                      int64_t last)
{
    const cpu_upsample_work_t *work = context;
    const int64_t width = work->dims[work->ndim - 1];
    const int64_t factor = work->factors[work->ndim - 1];

    for (int64_t n = first; n < last; n++)
        for (int64_t line = 0; line < work->y_lines; line++) {
            const float *x = work->from + n * work->x_elems +
                             source_line(work, line) * width;
            float *y = work->to + n * work->y_elems + line * width * factor;

            upsample_stretch(x, width, factor, y);
        }
}

static void cpu_upsample_backward_body(void *context, int64_t first,
                                       int64_t last)
{
    const cpu_upsample_work_t *work = context;
    const int64_t width = work->dims[work->ndim - 1];
    const int64_t factor = work->factors[work->ndim - 1];

    for (int64_t n = first; n < last; n++) {
        float *image = work->to + n * work->x_elems;

        memset(image, 0, (size_t)work->x_elems * sizeof *image);
        for (int64_t line = 0; line < work->y_lines; line++) {
            const float *dy =
                work->from + n * work->y_elems + line * width * factor;
            float *dx = image + source_line(work, line) * width;

            upsample_shrink(dy, width, factor, dx);
        }
    }
}

static void cpu_upsample_run(const op_t *op, simd_team_body_t *body,
                             const float *from, float *to)
{
    const op_desc_t *in = &op->config.in;
    cpu_upsample_work_t work = {.ndim = in->ndim - 2,
                                .dims = in->dims + 2,
                                .factors = op->config.view.dims,
                                .x_elems = op_desc_space(in),
                                .y_elems = op_desc_space(&op->out),
                                .from = from,
                                .to = to};

    work.y_lines = work.y_elems / op->out.dims[op->out.ndim - 1];
    simd_team_run(op->config.threads, in->dims[0] * in->dims[1],
                  1 + CPU_COMBINE_GRAIN / work.y_elems, body, &work);
}

static err_code_t cpu_upsample_forward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        cpu_upsample_run(op, cpu_upsample_forward_body, x[0], args->y);
    return rc;
}

static err_code_t cpu_upsample_backward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    cpu_upsample_run(op, cpu_upsample_backward_body, args->dy,
                     cpu_combine_place(op, args, 0));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_upsample_kernel = {
    .open = cpu_upsample_open,
    .close = cpu_combine_close,
    .forward = cpu_upsample_forward,
    .backward = cpu_upsample_backward,
};
