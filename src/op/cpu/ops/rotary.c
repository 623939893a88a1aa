/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* rotary on a plain x, with a table of cosines and sines that is computed at
 * open. The tokens are divided among threads. y may overwrite a plain x. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "simd/team.h"
#include "simd/vector.h"

typedef struct cpu_rotary {
    cpu_combine_t combine;  /* first member: combine.c uses the op's state as a
                               cpu_combine_t */
    float *cosines, *sines; /* [tokens, D/2] */
} cpu_rotary_t;

typedef struct rotary_work {
    int64_t tokens, features, D;
    op_rotary_t rotary;
    const float *cosines, *sines;
    float sign;
    const float *from;
    float *to;
} rotary_work_t;

static err_code_t rotary_table(op_t *op, cpu_rotary_t *state, err_t *err)
{
    const op_rotary_t *rotary = &op->config.rotary;
    const int64_t D = op->config.in.dims[2] / rotary->parts;
    const int64_t count = op->config.in.dims[1] * (D / 2);
    err_code_t rc = mem_new(float, 2 * (size_t)count, "a table of angles",
                            &state->cosines, err);

    if (rc != ERR_OK)
        return rc;
    state->sines = state->cosines + count;
    for (int64_t i = 0; i < count; i++) {
        int64_t pair = i % (D / 2);
        double angle = (double)(i / (D / 2)) *
                       pow(rotary->base, -2.0 * (double)pair / (double)D);

        state->cosines[i] = (float)cos(angle);
        state->sines[i] = (float)sin(angle);
    }
    return ERR_OK;
}

static err_code_t cpu_rotary_open(op_t *op, err_t *err)
{
    cpu_rotary_t *state;
    err_code_t rc = cpu_combine_open_in(op, sizeof *state, true, err);

    if (rc != ERR_OK)
        return rc;
    state = op->state;
    op->in_place = state->combine.in[0].direct;
    op->reads_x = false;
    return rotary_table(op, state, err);
}

static void cpu_rotary_close(op_t *op)
{
    cpu_rotary_t *state = op->state;

    if (state != NULL)
        mem_free(state->cosines);
    cpu_combine_close(op);
}

/* Rotate a head of token [token]; element i and element i + D/2 are a pair. */
SIMD_CLONES
static void rotary_halves(const rotary_work_t *work, int64_t token,
                          const float *from, float *to)
{
    const int64_t half = work->D / 2;
    const float *cosines = work->cosines + token * half;
    const float *sines = work->sines + token * half;
    const float sign = work->sign;

    SIMD_INDEPENDENT
    for (int64_t i = 0; i < half; i++) {
        float c = cosines[i], s = sign * sines[i];
        float a = from[i], b = from[i + half];

        to[i] = a * c - b * s;
        to[i + half] = a * s + b * c;
    }
}

/* Rotate a head of token [token]; adjacent elements are a pair. */
SIMD_CLONES
static void rotary_neighbours(const rotary_work_t *work, int64_t token,
                              const float *from, float *to)
{
    const int64_t half = work->D / 2;
    const float *cosines = work->cosines + token * half;
    const float *sines = work->sines + token * half;
    const float sign = work->sign;

    SIMD_INDEPENDENT
    for (int64_t i = 0; i < half; i++) {
        float c = cosines[i], s = sign * sines[i];
        float a = from[2 * i], b = from[2 * i + 1];

        to[2 * i] = a * c - b * s;
        to[2 * i + 1] = a * s + b * c;
    }
}

/* Rotate tokens [first, last), counted over all samples. */
static void rotary_body(void *context, int64_t first, int64_t last)
{
    const rotary_work_t *work = context;
    const int64_t rotated = work->rotary.heads * work->D;

    for (int64_t row = first; row < last; row++) {
        const float *from = work->from + row * work->features;
        float *to = work->to + row * work->features;

        for (int64_t at = 0; at < rotated; at += work->D)
            (work->rotary.halves ? rotary_halves : rotary_neighbours)(
                work, row % work->tokens, from + at, to + at);
        if (from != to)
            memcpy(to + rotated, from + rotated,
                   (size_t)(work->features - rotated) * sizeof *to);
    }
}

static void rotary_run(const op_t *op, const float *from, float sign, float *to)
{
    const cpu_rotary_t *state = op->state;
    const op_desc_t *in = &op->config.in;
    rotary_work_t work = {.tokens = in->dims[1],
                          .features = in->dims[2],
                          .D = in->dims[2] / op->config.rotary.parts,
                          .rotary = op->config.rotary,
                          .cosines = state->cosines,
                          .sines = state->sines,
                          .sign = sign,
                          .from = from,
                          .to = to};

    simd_team_run(op->config.threads, in->dims[0] * work.tokens,
                  1 + CPU_COMBINE_GRAIN / work.features, rotary_body, &work);
}

static err_code_t cpu_rotary_forward(op_t *op, const op_args_t *args,
                                     err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        rotary_run(op, x[0], 1, args->y);
    return rc;
}

static err_code_t cpu_rotary_backward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    rotary_run(op, args->dy, -1, cpu_combine_place(op, args, 0));
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_rotary_kernel = {
    .open = cpu_rotary_open,
    .close = cpu_rotary_close,
    .forward = cpu_rotary_forward,
    .backward = cpu_rotary_backward,
};
