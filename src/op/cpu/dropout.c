/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dropout: the mask of op_mask.h, made in the forward and again in the backward
 * instead of kept. Elements are numbered in plain order, so a private layout
 * goes through a port, and y is always plain.
 */
#include <string.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/port.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"
#include "op/op_mask.h"

/* Blocks of four numbers that are made at a time. */
#define CPU_PHILOX 16

typedef struct cpu_dropout {
    cpu_room_t room;
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
    err_code_t code =
        mem_alloc(sizeof *dropout, "a dropout op", &op->state, err);

    if (code != ERR_OK)
        return code;
    dropout = op->state;
    op->in_place = op->config.in.layout == NULL;
    op->reads_x = false;
    code = cpu_engine_open(&dropout->room.engine, err);
    if (code == ERR_OK)
        code = cpu_plain_open(&dropout->plain, &dropout->room, op, err);
    if (code == ERR_OK)
        cpu_room_finish(&dropout->room, op);
    return code;
}

static void cpu_dropout_close(op_t *op)
{
    cpu_dropout_t *dropout = op->state;

    if (dropout == NULL)
        return;
    cpu_plain_close(&dropout->plain);
    cpu_engine_close(&dropout->room.engine);
    mem_free(dropout);
}

/*
 * The same numbers as op_mask_block for CPU_PHILOX consecutive blocks of
 * [sample], lane by lane, which the compiler makes vectors of: first number 0
 * of all blocks, then number 1, ...
 */
CPU_CLONES
static void cpu_dropout_random(const op_mask_t *mask, uint64_t sample,
                               uint32_t block, uint32_t *restrict out)
{
    uint32_t x0[CPU_PHILOX], x1[CPU_PHILOX], x2[CPU_PHILOX], x3[CPU_PHILOX];
    uint32_t key0 = mask->key[0], key1 = mask->key[1];

    for (uint32_t j = 0; j < CPU_PHILOX; j++) {
        x0[j] = block + j;
        x1[j] = mask->layer;
        x2[j] = (uint32_t)sample;
        x3[j] = (uint32_t)(sample >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < CPU_PHILOX; j++) {
            uint64_t first = (uint64_t)0xD2511F53u * x0[j];
            uint64_t second = (uint64_t)0xCD9E8D57u * x2[j];

            x0[j] = (uint32_t)(second >> 32) ^ x1[j] ^ key0;
            x1[j] = (uint32_t)second;
            x2[j] = (uint32_t)(first >> 32) ^ x3[j] ^ key1;
            x3[j] = (uint32_t)first;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    memcpy(out, x0, sizeof x0);
    memcpy(out + CPU_PHILOX, x1, sizeof x1);
    memcpy(out + 2 * CPU_PHILOX, x2, sizeof x2);
    memcpy(out + 3 * CPU_PHILOX, x3, sizeof x3);
}

/* Sample [n], CPU_PHILOX blocks of four elements at a time. */
CPU_CLONES
static void cpu_dropout_sample(const cpu_dropout_work_t *work, int64_t n)
{
    const float *from = work->from + n * work->elems;
    float *to = work->to + n * work->elems, factor = work->mask.factor;
    uint32_t random[4 * CPU_PHILOX], threshold = work->mask.threshold;
    float lanes[4 * CPU_PHILOX], kept[4 * CPU_PHILOX];

    for (int64_t i = 0; i < work->elems; i += 4 * CPU_PHILOX) {
        int64_t rest = work->elems - i;
        int64_t count = rest < 4 * CPU_PHILOX ? rest : 4 * CPU_PHILOX;

        cpu_dropout_random(&work->mask, work->samples[n], (uint32_t)(i / 4),
                           random);
        for (int j = 0; j < 4 * CPU_PHILOX; j++)
            lanes[j] = random[j] >= threshold ? factor : 0;
        for (int j = 0; j < 4 * CPU_PHILOX; j++)
            kept[j] = lanes[j % 4 * CPU_PHILOX + j / 4];
        for (int64_t j = 0; j < count; j++)
            to[i + j] = from[i + j] * kept[j];
    }
}

static void cpu_dropout_body(void *context, int64_t first, int64_t last)
{
    for (int64_t n = first; n < last; n++)
        cpu_dropout_sample(context, n);
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

    cpu_team_run(op->config.threads, op->config.in.dims[0], 1, cpu_dropout_body,
                 &work);
}

static err_code_t cpu_dropout_forward(op_t *op, const op_args_t *args,
                                      err_t *err)
{
    cpu_dropout_t *dropout = op->state;
    const void *x;
    err_code_t code = cpu_port_read(&dropout->plain.x, &dropout->room, args,
                                    args->x, &x, err);

    if (code != ERR_OK)
        return code;
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
                      cpu_port_place(&dropout->plain.dx, args, args->dx));
    return cpu_port_flush(&dropout->plain.dx, &dropout->room, args, args->dx,
                          err);
}

const op_kernel_t cpu_dropout_kernel = {
    .open = cpu_dropout_open,
    .close = cpu_dropout_close,
    .forward = cpu_dropout_forward,
    .backward = cpu_dropout_backward,
};
