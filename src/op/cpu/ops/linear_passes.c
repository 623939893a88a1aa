/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* linear: the passes over y and dy besides the products, for float32 and
 * bfloat16. */
#include <string.h>

#include "base/check.h"
#include "base/half.h"
#include "op/cpu/ops/linear.h"
#include "op/cpu/vector/activations.h"
#include "op/cpu/vector/chunk.h"
#include "op/cpu/vector/rows.h"
#include "op/op_geometry.h"
#include "simd/team.h"

/* Minimum columns of dy per thread, and minimum elements of an activation per
 * thread. */
#define CPU_BIAS_GRAIN 64
#define CPU_ACTIVATE_GRAIN 4096
/* Elements of a row that are processed while they are in the L1 cache. */
#define CPU_PIECE 2048

cpu_matmul_spec_t cpu_linear_product(const op_config_t *config)
{
    return (cpu_matmul_spec_t){.M = op_linear_rows(config),
                               .N = config->out,
                               .K = op_linear_features(config),
                               .b_transposed = true,
                               .bias = config->bias};
}

typedef struct cpu_activate_work {
    cpu_activation_t activation;
    const float *h;
    void *y;
    bool bf16; /* y is stored as bfloat16 */
} cpu_activate_work_t;

static void cpu_activate_body(void *context, int64_t first, int64_t last)
{
    const cpu_activate_work_t *work = context;
    float buffer[CPU_CHUNK];
    int64_t n;

    for (int64_t i = first; i < last; i += n) {
        n = cpu_chunk_count(i, last, work->bf16);
        cpu_activation_forward(work->activation, work->h + i,
                               cpu_chunk_place(work->y, i, work->bf16, buffer),
                               n);
        cpu_chunk_flush(work->y, i, n, work->bf16, buffer);
    }
}

void cpu_linear_activate(const op_t *op, const op_args_t *args, const float *h)
{
    cpu_activate_work_t work = {
        .activation =
            cpu_activation_of(op->config.activation, op->config.alpha),
        .h = h,
        .y = args->y,
        .bf16 = op_stored_bf16(&op->out),
    };

    simd_team_run(op->config.threads,
                  op_linear_rows(&op->config) * op->config.out,
                  CPU_ACTIVATE_GRAIN, cpu_activate_body, &work);
}

typedef struct cpu_dy_work {
    bool activated;
    cpu_activation_t activation; /* if activated */
    const float *dy, *h;
    float *floats, *db;
    uint16_t *halves;
    int64_t N, O;
} cpu_dy_work_t;

/* Process the columns [first, first + count), row after row. */
static void cpu_dy_panel(const cpu_dy_work_t *work, int64_t first,
                         int64_t count)
{
    float piece[CPU_PIECE];

    if (work->db != NULL)
        memset(work->db + first, 0, (size_t)count * sizeof(float));
    for (int64_t n = 0; n < work->N; n++) {
        const int64_t at = n * work->O + first;
        const float *dy = work->dy + at;

        if (work->activated) {
            float *to = work->floats == NULL ? &piece[0] : work->floats + at;

            cpu_activation_backward(work->activation, work->h + at, dy, to,
                                    count);
            dy = to;
        }
        if (work->db != NULL)
            cpu_row_add(work->db + first, dy, count);
        if (work->halves != NULL)
            half_round_bf16(work->halves + at, dy, (size_t)count);
    }
}

static void cpu_dy_body(void *context, int64_t first, int64_t last)
{
    for (int64_t o = first; o < last; o += CPU_PIECE)
        cpu_dy_panel(context, o, last - o < CPU_PIECE ? last - o : CPU_PIECE);
}

void cpu_linear_pass_dy(const op_t *op, const op_args_t *args, const float *h,
                        float *floats, uint16_t *halves)
{
    cpu_dy_work_t work = {.activated = op->config.activation != OP_NONE,
                          .dy = args->dy,
                          .h = h,
                          .floats = floats,
                          .halves = halves,
                          .N = op_linear_rows(&op->config),
                          .O = op->config.out};

    if (work.activated)
        work.activation =
            cpu_activation_of(op->config.activation, op->config.alpha);
    check(!work.activated || h != NULL, "the product was not kept");
    check(floats != NULL || halves != NULL || op->config.bias,
          "a pass that writes nothing");
    if (op->config.bias)
        work.db = args->dparams[1];
    simd_team_run(op->config.threads, work.O, CPU_BIAS_GRAIN, cpu_dy_body,
                  &work);
}
