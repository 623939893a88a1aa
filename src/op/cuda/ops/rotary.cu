/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * rotary: pairs of features are rotated by angles that depend on the token;
 * op/ref/rotary.c has the formula. Sines and cosines are computed in float64 on
 * the host when the op is opened: float2 [tokens, D/2].
 */
#include <math.h>

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"

namespace
{

struct rotary_work {
    int64_t count; /* pairs */
    int64_t features, D;
    index_divisor_t tokens, half, pairs; /* half: D / 2; pairs: of a row */
    int64_t heads;                       /* the first ones are rotated */
    bool halves;                         /* see op_rotary_t */
    float sign;                          /* -1: backward */
    const float2 *table;                 /* cosine and sine */
    const float *from;
    float *to;
};

} // namespace

static __global__ void __launch_bounds__(EACH_THREADS)
    rotary_turn(rotary_work work)
{
    const int64_t half = work.half.by;

    for (int64_t i = each_first(); i < work.count; i += each_step()) {
        int64_t row = i;
        int64_t head = index_split(&row, work.pairs);
        const int64_t pair = index_split(&head, work.half);
        const int64_t first = row * work.features + head * work.D;
        const int64_t at = first + (work.halves ? pair : 2 * pair);
        const int64_t next = at + (work.halves ? half : 1);
        const float a = work.from[at], b = work.from[next];
        float2 turn = make_float2(1, 0);

        if (head < work.heads)
            turn = work.table[index_split(&row, work.tokens) * half + pair];
        turn.y *= work.sign;
        work.to[at] = a * turn.x - b * turn.y;
        work.to[next] = a * turn.y + b * turn.x;
    }
}

static void table_make(const op_t *op, float2 *table)
{
    const op_rotary_t *rotary = &op->config.rotary;
    const int64_t D = op->config.in.dims[2] / rotary->parts;

    for (int64_t t = 0; t < op->config.in.dims[1]; t++)
        for (int64_t pair = 0; pair < D / 2; pair++) {
            const double angle =
                (double)t * pow(rotary->base, -2.0 * (double)pair / (double)D);

            table[t * (D / 2) + pair] =
                make_float2((float)cos(angle), (float)sin(angle));
        }
}

static err_code_t rotary_open(op_t *op, err_t *err)
{
    const int64_t D = op->config.in.dims[2] / op->config.rotary.parts;
    const size_t count = (size_t)(op->config.in.dims[1] * (D / 2));
    float2 *table = NULL;
    err_code_t rc = mem_new(float2, count, "angles of rotary", &table, err);

    op->in_place = true;
    op->reads_x = false;
    if (rc != ERR_OK)
        return rc;
    table_make(op, table);
    rc = cuda_constant(op, table, count * sizeof(float2), "angles of rotary",
                       &op->state, err);
    mem_free(table);
    return rc;
}

static void rotary_close(op_t *op)
{
    dev_free(op->dev, op->state);
}

static err_code_t turn(const op_t *op, const op_args_t *args, const void *from,
                       float sign, void *to, err_t *err)
{
    const op_rotary_t *rotary = &op->config.rotary;
    const op_desc_t *in = &op->config.in;
    rotary_work work = {};

    work.count = op_desc_elems(in) / 2;
    work.tokens = index_divisor_of(in->dims[1]);
    work.features = in->dims[2];
    work.D = in->dims[2] / rotary->parts;
    work.half = index_divisor_of(work.D / 2);
    work.pairs = index_divisor_of(work.features / 2);
    work.heads = rotary->heads;
    work.halves = rotary->halves;
    work.sign = sign;
    work.table = (const float2 *)op->state;
    work.from = (const float *)from;
    work.to = (float *)to;
    LAUNCH(rotary_turn, each_blocks(work.count, EACH_THREADS), EACH_THREADS, 0,
           cuda_stream(args), work);
    return cuda_started(op, err);
}

static err_code_t rotary_forward(op_t *op, const op_args_t *args, err_t *err)
{
    return turn(op, args, args->x, 1, args->y, err);
}

static err_code_t rotary_backward(op_t *op, const op_args_t *args, err_t *err)
{
    return op->config.need_dx ? turn(op, args, args->dy, -1, args->dx, err)
                              : ERR_OK;
}

extern "C" const op_kernel_t cuda_rotary_kernel = {
    rotary_open, rotary_close, rotary_forward, rotary_backward};
