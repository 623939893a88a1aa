/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dropout with the mask of op_mask.h. Forward and backward both compute the
 * mask, so that it is not stored. Elements are numbered in plain order; x is
 * therefore converted to plain layout, and y is always plain.
 */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"
#include "op/op_desc.h"
#include "op/op_mask.h"
#include "simd/team.h"
#include "simd/vector.h"
#include "simd/zip.h"

/* Random blocks, of four numbers each, that are computed together. */
#define BLOCKS 64

typedef struct cpu_dropout {
    cpu_scratch_t scratch;
    cpu_plain_t plain;
} cpu_dropout_t;

typedef struct cpu_dropout_work {
    op_mask_t mask;
    const uint64_t *samples;
    int64_t elems; /* of one sample */
    const float *from;
    float *to;
} cpu_dropout_work_t;

static err_code_t cpu_dropout_open(op_t *op, err_t *err)
{
    cpu_dropout_t *dropout;
    err_code_t rc = mem_new(cpu_dropout_t, 1, "a dropout op", &dropout, err);

    if (rc != ERR_OK)
        return rc;
    op->state = dropout;
    op->in_place = op->config.in.layout == NULL;
    op->reads_x = false;
    rc = cpu_engine_open(&dropout->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_plain_open(&dropout->plain, &dropout->scratch, op, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&dropout->scratch, op);
    return rc;
}

static void cpu_dropout_close(op_t *op)
{
    cpu_dropout_t *dropout = op->state;

    if (dropout == NULL)
        return;
    cpu_plain_close(&dropout->plain);
    cpu_engine_close(&dropout->scratch.engine);
    mem_free(dropout);
}

/* The numbers that op_mask_block gives for [blocks] blocks from [block] on.
 * random[k] receives number k of every block. */
static void dropout_random(const op_mask_t *mask, uint64_t sample,
                           uint32_t block, int64_t blocks,
                           uint32_t random[4][BLOCKS])
{
    const uint32_t counter[4] = {block, mask->layer, (uint32_t)sample,
                                 (uint32_t)(sample >> 32)};
    uint32_t *const out[4] = {random[0], random[1], random[2], random[3]};

    rng_philox_many(mask->key, counter, (size_t)blocks, out);
}

/* For [count] elements: to = from * factor where the mask keeps the element,
 * else 0. */
SIMD_CLONES
static void dropout_keep(const op_mask_t *mask,
                         const uint32_t random[4][BLOCKS], const float *from,
                         float *to, int64_t count)
{
    const uint32_t threshold = mask->threshold;
    const float factor = mask->factor;

    for (int64_t b = 0; 4 * b < count; b += SIMD_ZIP) {
        const int64_t at = 4 * b, step = 4 * SIMD_ZIP;
        const int64_t n = count - at < step ? count - at : step;
        float lanes[4][SIMD_ZIP], even[2 * SIMD_ZIP], odd[2 * SIMD_ZIP];
        float kept[4 * SIMD_ZIP];

        for (int k = 0; k < 4; k++)
            for (int j = 0; j < SIMD_ZIP; j++)
                lanes[k][j] = random[k][b + j] >= threshold ? factor : 0;
        simd_zip(lanes[0], lanes[2], even);
        simd_zip(lanes[1], lanes[3], odd);
        simd_zip(even, odd, kept);
        simd_zip(even + SIMD_ZIP, odd + SIMD_ZIP, kept + 2 * SIMD_ZIP);
        SIMD_INDEPENDENT
        for (int64_t j = 0; j < n; j++)
            to[at + j] = from[at + j] * kept[j];
    }
}

/* Apply the mask to sample [n]. */
static void dropout_sample(const cpu_dropout_work_t *work, int64_t n)
{
    const float *from = work->from + n * work->elems;
    float *to = work->to + n * work->elems;
    uint32_t random[4][BLOCKS];

    for (int64_t i = 0; i < work->elems; i += 4 * BLOCKS) {
        const int64_t rest = work->elems - i;
        const int64_t count = rest < 4 * BLOCKS ? rest : 4 * BLOCKS;
        const int64_t step = 4 * SIMD_ZIP;
        const int64_t blocks = (count + step - 1) / step * SIMD_ZIP;

        dropout_random(&work->mask, work->samples[n], (uint32_t)(i / 4), blocks,
                       random);
        dropout_keep(&work->mask, random, from + i, to + i, count);
    }
}

static void cpu_dropout_body(void *context, int64_t first, int64_t last)
{
    for (int64_t n = first; n < last; n++)
        dropout_sample(context, n);
}

static void cpu_dropout_apply(const op_t *op, const op_args_t *args,
                              const float *from, float *to)
{
    cpu_dropout_work_t work = {
        .mask = op_mask_make(&op->config, args),
        .samples = args->sample_ids,
        .elems = op_desc_sample(&op->config.in),
        .from = from,
        .to = to,
    };

    simd_team_run(op->config.threads, op->config.in.dims[0], 1,
                  cpu_dropout_body, &work);
}

static err_code_t cpu_dropout_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_dropout_t *dropout = op->state;
    const void *x;
    err_code_t rc = cpu_reorder_read(&dropout->plain.x, args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    if (op->config.training)
        cpu_dropout_apply(op, args, x, args->y);
    else if (args->y != x)
        memcpy(args->y, x, op->out.bytes);
    return ERR_OK;
}

static err_code_t cpu_dropout_backward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    cpu_dropout_t *dropout = op->state;

    if (!op->config.need_dx)
        return ERR_OK;
    cpu_dropout_apply(op, args, args->dy,
                      cpu_reorder_place(&dropout->plain.dx, args, args->dx));
    return cpu_reorder_flush(&dropout->plain.dx, args, args->dx, err);
}

const op_kernel_t cpu_dropout_kernel = {
    .open = cpu_dropout_open,
    .close = cpu_dropout_close,
    .forward = cpu_dropout_forward,
    .backward = cpu_dropout_backward,
};
