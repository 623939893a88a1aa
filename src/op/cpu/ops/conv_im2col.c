/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Columns are copied run by run. A run is the taps along the last dimension of
 * space, which are adjacent in x, too. Positions outside x are 0.
 */
#include "op/cpu/ops/conv_im2col.h"

#include <string.h>

#include "base/check.h"
#include "op/cpu/cpu.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Maximum bytes of the columns, and minimum rows per thread. */
#define COLUMNS_BYTES (16 << 20)
#define COLUMNS_GRAIN 256
/* Elements of a run that one vector instruction can copy. */
#define SMALL_RUN 8

/* Rows of dy that are summed in float32 before they are added in double. */
#define SUM_ROWS 128
#define SUM_LANES 16

typedef struct columns_work {
    const uint16_t *x;
    uint16_t *to;
    int64_t C, row; /* C: channels; row: elements per row */
    /* three dimensions of space; missing leading ones are 1 */
    int64_t in[OP_SPACE_MAX], out[OP_SPACE_MAX], kernel[OP_SPACE_MAX],
        stride[OP_SPACE_MAX], pad[OP_SPACE_MAX], dilation[OP_SPACE_MAX];
} columns_work_t;

static int64_t columns_rows(const op_t *op)
{
    return op->out.dims[0] * op_desc_space(&op->out);
}

static int64_t columns_row(const op_t *op)
{
    return op_window_taps(&op->config) * op->config.in.dims[1];
}

/*
 * Is im2col expected to be faster? oneDNN's gradient of the weights is faster
 * for large images with many channels. oneDNN 2.6 with AMX is slow in three
 * cases: many weights for few positions of y, strides above 1, and volumes
 * with few channels.
 *
 * Without AMX im2col is never used: oneDNN 2.6 and 3.2 then choose no layout
 * with channels last. With AMX and oneDNN 3.x the two ways have not been
 * compared, so the version does not decide (docs/benchmarks/libraries.md).
 */
static bool columns_are_faster(const op_t *op)
{
    const op_config_t *config = &op->config;
    bool jumps = false;

    for (int i = 0; i < config->in.ndim - 2; i++)
        jumps = jumps || config->conv.stride[i] > 1;
    return jumps || op_desc_space(&op->out) <= 64 ||
           (config->in.ndim == 2 + OP_SPACE_MAX && config->in.dims[1] < 16);
}

err_code_t cpu_im2col_suit(const op_t *op, cpu_engine_t *engine,
                           const cpu_md_t *x, bool *suit, err_t *err)
{
    const op_config_t *config = &op->config;
    const size_t bytes =
        (size_t)columns_rows(op) * (size_t)columns_row(op) * sizeof(uint16_t);
    int lanes = -1;
    err_code_t rc = ERR_OK;

    if (config->kind == OP_CONV2D && op_computes_bf16(config) &&
        config->conv.groups == 1 && bytes <= COLUMNS_BYTES &&
        columns_are_faster(op) && cpu_md_is_bf16(x))
        rc = cpu_md_lanes(x, engine, &config->in, &lanes, err);
    if (rc == ERR_OK)
        *suit = lanes == 0;
    return rc;
}

err_code_t cpu_im2col_open(cpu_im2col_t *columns, const op_t *op,
                           cpu_scratch_t *scratch, err_t *err)
{
    const int64_t rows = columns_rows(op), row = columns_row(op);
    const cpu_matmul_spec_t dw = {.M = op->config.conv.out,
                                  .N = row,
                                  .K = rows,
                                  .a_transposed = true,
                                  .bf16 = true};

    columns->used = true;
    columns->scratch = scratch;
    columns->at = cpu_scratch_take(scratch, (size_t)rows * (size_t)row *
                                                sizeof(uint16_t));
    return cpu_prim_matmul(&columns->product, &scratch->engine, &dw, err);
}

void cpu_im2col_close(cpu_im2col_t *columns)
{
    cpu_prim_close(&columns->product);
}

static columns_work_t columns_shape(const op_t *op)
{
    const op_config_t *config = &op->config;
    const int space = config->in.ndim - 2;
    columns_work_t work = {.C = config->in.dims[1], .row = columns_row(op)};

    cpu_space_three(config->in.dims + 2, space, 1, work.in);
    cpu_space_three(op->out.dims + 2, space, 1, work.out);
    cpu_space_three(config->conv.kernel, space, 1, work.kernel);
    cpu_space_three(config->conv.stride, space, 1, work.stride);
    cpu_space_three(config->conv.pad, space, 0, work.pad);
    cpu_space_three(config->conv.dilation, space, 1, work.dilation);
    return work;
}

/* Copy the taps along the last dimension, beginning at position [at] of a line
 * of x. NULL: the line is outside x. */
static void columns_line(const columns_work_t *work, const uint16_t *line,
                         int64_t at, uint16_t *to)
{
    const int64_t C = work->C, W = work->in[2], taps = work->kernel[2];
    const size_t each = (size_t)C * sizeof *to;

    if (line == NULL) {
        memset(to, 0, (size_t)taps * each);
    } else if (work->dilation[2] == 1 && at >= 0 && at + taps <= W &&
               taps * C == SMALL_RUN) {
        memcpy(to, line + at * C, SMALL_RUN * sizeof *to); /* one instruction */
    } else if (work->dilation[2] == 1 && at >= 0 && at + taps <= W) {
        memcpy(to, line + at * C, (size_t)taps * each);
    } else {
        for (int64_t k = 0; k < taps; k++) {
            const int64_t w = at + k * work->dilation[2];

            if (w >= 0 && w < W)
                memcpy(to + k * C, line + w * C, each);
            else
                memset(to + k * C, 0, each);
        }
    }
}

/* Copy the windows of line [line] of y. */
static void columns_of(const columns_work_t *work, int64_t line)
{
    const int64_t *in = work->in, *out = work->out, *kernel = work->kernel;
    const int64_t n = line / (out[0] * out[1]);
    const int64_t d0 = line / out[1] % out[0] * work->stride[0] - work->pad[0];
    const int64_t h0 = line % out[1] * work->stride[1] - work->pad[1];

    for (int64_t k = 0; k < kernel[0] * kernel[1]; k++) {
        const int64_t d = d0 + k / kernel[1] * work->dilation[0];
        const int64_t h = h0 + k % kernel[1] * work->dilation[1];
        const bool inside = d >= 0 && d < in[0] && h >= 0 && h < in[1];
        const uint16_t *from =
            inside ? work->x + ((n * in[0] + d) * in[1] + h) * in[2] * work->C
                   : NULL;
        uint16_t *to =
            work->to + line * out[2] * work->row + k * kernel[2] * work->C;

        for (int64_t w = 0; w < out[2]; w++, to += work->row)
            columns_line(work, from, w * work->stride[2] - work->pad[2], to);
    }
}

static void columns_body(void *context, int64_t first, int64_t last)
{
    for (int64_t line = first; line < last; line++)
        columns_of(context, line);
}

/* ---- the gradient of b --------------------------------------------------- */

typedef struct sum_work {
    const uint16_t *dy;
    float *db;
    int64_t rows, O;
} sum_work_t;

SIMD_CLONES
static void sum_rows(const uint16_t *dy, int64_t rows, int64_t step, int width,
                     double *total)
{
    float sum[SUM_LANES] = {0};

    for (int64_t r = 0; r < rows; r++)
        for (int o = 0; o < width; o++) {
            const uint32_t bits = (uint32_t)dy[r * step + o] << 16;
            float value;

            memcpy(&value, &bits, sizeof value);
            sum[o] += value;
        }
    for (int o = 0; o < width; o++)
        total[o] += (double)sum[o];
}

/* Items of the parallel loop are groups of SUM_LANES channels. */
static void sum_body(void *context, int64_t first, int64_t last)
{
    const sum_work_t *work = context;

    for (int64_t i = first; i < last; i++) {
        const int64_t at = i * SUM_LANES, left = work->O - at;
        const int width = left < SUM_LANES ? (int)left : SUM_LANES;
        double total[SUM_LANES] = {0};

        for (int64_t r = 0; r < work->rows; r += SUM_ROWS) {
            const int64_t rest = work->rows - r;

            sum_rows(work->dy + r * work->O + at,
                     rest < SUM_ROWS ? rest : SUM_ROWS, work->O, width, total);
        }
        for (int o = 0; o < width; o++)
            work->db[at + o] = (float)total[o];
    }
}

err_code_t cpu_im2col_run(cpu_im2col_t *columns, const op_t *op,
                          const op_args_t *args, cpu_im2col_tensors_t with,
                          err_t *err)
{
    const cpu_scratch_t *scratch = columns->scratch;
    columns_work_t work = columns_shape(op);
    const int64_t rows = columns_rows(op);

    work.x = with.x;
    work.to = (uint16_t *)((char *)args->scratch + columns->at);
    check(rows % work.out[2] == 0, "%d rows in lines of %d", (int)rows,
          (int)work.out[2]);
    check(columns->at + (size_t)rows * (size_t)work.row * sizeof(uint16_t) <=
              scratch->most,
          "columns do not fit into scratch");
    simd_team_run(op->config.threads, rows / work.out[2],
                  1 + COLUMNS_GRAIN / work.out[2], columns_body, &work);
    if (with.db != NULL) {
        sum_work_t sum = {with.dy, with.db, rows, op->config.conv.out};

        simd_team_run(op->config.threads, (sum.O + SUM_LANES - 1) / SUM_LANES,
                      1, sum_body, &sum);
    }
    return cpu_scratch_matmul(
        scratch, &columns->product, args,
        (cpu_factors_t){.a = with.dy, .b = work.to, .c = with.dw}, err);
}
