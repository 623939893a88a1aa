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
#include "op/op_mask.h"

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

/* Four elements (fewer at the end of a sample) an item of Philox. */
static void cpu_dropout_sample(const cpu_dropout_work_t *work, int64_t n)
{
    const float *from = work->from + n * work->elems;
    float *to = work->to + n * work->elems;
    uint32_t random[4];

    for (int64_t i = 0; i < work->elems; i += 4) {
        int64_t count = work->elems - i < 4 ? work->elems - i : 4;

        op_mask_block(&work->mask, work->samples[n], (uint32_t)(i / 4), random);
        for (int64_t j = 0; j < count; j++)
            to[i + j] =
                from[i + j] *
                (random[j] >= work->mask.threshold ? work->mask.factor : 0);
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
