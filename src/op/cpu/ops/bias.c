/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/ops/bias.h"

#include "op/op_desc.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

#define BLOCK_MAX 16 /* maximum channels per block of a layout */
#define GRAIN 16384  /* minimum elements per thread */

typedef struct bias_work {
    const cpu_bias_t *bias;
    const float *b;
    float *y;
} bias_work_t;

err_code_t cpu_bias_open(cpu_bias_t *bias, const op_t *op, cpu_engine_t *engine,
                         const cpu_md_t *y, err_t *err)
{
    const op_desc_t *out = &op->out;
    int lanes = -1;
    err_code_t rc = cpu_md_lanes(y, engine, out, &lanes, err);

    if (rc != ERR_OK || lanes < 0)
        return rc;
    bias->used = true;
    bias->channels = out->dims[1];
    bias->run = lanes == 0 ? out->dims[1] : lanes;
    bias->blocks = (bias->channels + bias->run - 1) / bias->run;
    bias->items = out->dims[0] * bias->blocks;
    bias->positions = op_desc_space(out);
    return ERR_OK;
}

SIMD_INLINE void add_runs(float *restrict y, const float *restrict b,
                          int64_t positions, int64_t run)
{
    for (int64_t p = 0; p < positions; p++)
        for (int64_t c = 0; c < run; c++)
            y[p * run + c] += b[c];
}

/* Loops of constant length for the block sizes of oneDNN's layouts. */
SIMD_CLONES
static void bias_item(float *y, const float *b, int64_t positions, int64_t run)
{
    if (run == 16)
        add_runs(y, b, positions, 16);
    else if (run == 8)
        add_runs(y, b, positions, 8);
    else if (run == 1)
        add_runs(y, b, positions, 1);
    else
        add_runs(y, b, positions, run);
}

static void bias_body(void *context, int64_t first, int64_t last)
{
    const bias_work_t *work = context;
    const cpu_bias_t *bias = work->bias;
    const int64_t run = bias->run;

    for (int64_t item = first; item < last; item++) {
        const int64_t from = item % bias->blocks * run;
        const float *b = work->b + from;
        float padded[BLOCK_MAX] = {0};

        if (from + run > bias->channels) { /* the last block is not full */
            for (int64_t c = 0; from + c < bias->channels; c++)
                padded[c] = b[c];
            b = padded;
        }
        bias_item(work->y + item * bias->positions * run, b, bias->positions,
                  run);
    }
}

void cpu_bias_add(const cpu_bias_t *bias, int threads, const float *b, float *y)
{
    bias_work_t work = {bias, b, y};

    simd_team_run(threads, bias->items,
                  1 + GRAIN / (bias->positions * bias->run), bias_body, &work);
}
