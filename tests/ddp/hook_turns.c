/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/hook_turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct turns {
    dev_device_t *dev; /* NULL: the memory below is the host's */
    int size;
    float *sums; /* [elems] */
    float *all;  /* [size * elems]: the gathered numbers of each bucket */
} turns_t;

static err_code_t block_open(const turns_t *turns, size_t count, float **out,
                             err_t *err)
{
    void *block = NULL;
    err_code_t rc;

    if (turns->dev == NULL)
        return mem_new(float, count, "numbers of a hook", out, err);
    rc = dev_alloc(turns->dev, count * sizeof **out, "numbers of a hook",
                   &block, err);
    *out = block;
    return rc;
}

static void block_close(const turns_t *turns, float *block)
{
    if (turns->dev == NULL)
        mem_free(block);
    else
        dev_free(turns->dev, block);
}

static void turns_close(void *state)
{
    turns_t *turns = state;

    block_close(turns, turns->sums);
    block_close(turns, turns->all);
    mem_free(turns);
}

static err_code_t turns_open(const ddp_hook_plan_t *plan, void **state,
                             err_t *err)
{
    turns_t *turns = NULL;
    err_code_t rc = mem_new(turns_t, 1, "a hook", &turns, err);

    if (rc != ERR_OK)
        return rc;
    turns->dev = plan->dev;
    turns->size = plan->size;
    rc = block_open(turns, plan->elems, &turns->sums, err);
    if (rc == ERR_OK)
        rc = block_open(turns, plan->elems * (size_t)plan->size, &turns->all,
                        err);
    if (rc == ERR_OK)
        *state = turns;
    else
        turns_close(turns);
    return rc;
}

/* Copy [count] numbers: at once, or on the stream. */
static err_code_t move(const turns_t *turns, const ddp_wire_t *wire, float *to,
                       const float *from, size_t count, err_t *err)
{
    if (turns->dev != NULL)
        return dev_copy(ddp_wire_stream(wire), to, from, count * sizeof *to,
                        DEV_DEV_TO_DEV, err);
    memcpy(to, from, count * sizeof *to);
    return ERR_OK;
}

static err_code_t turn_first(const turns_t *turns,
                             const ddp_hook_bucket_t *bucket, ddp_wire_t *wire,
                             err_t *err)
{
    const size_t count = bucket->count;
    float *sums = turns->sums + bucket->offset;
    float *all = turns->all + bucket->offset * (size_t)turns->size;
    err_code_t rc = move(turns, wire, sums, bucket->grads, count, err);

    if (rc == ERR_OK)
        rc = ddp_wire_sum(wire, sums, count, COMM_FLOAT32, err);
    return rc == ERR_OK ? ddp_wire_gather(wire, bucket->grads,
                                          count * sizeof *all, all, err)
                        : rc;
}

static err_code_t turn_second(const turns_t *turns,
                              const ddp_hook_bucket_t *bucket, ddp_wire_t *wire,
                              err_t *err)
{
    const size_t count = bucket->count, half = count / 2;
    float *sums = turns->sums + bucket->offset;
    const float *last = turns->all + bucket->offset * (size_t)turns->size +
                        count * (size_t)(turns->size - 1);
    err_code_t rc = ddp_wire_wait(wire, err);

    if (rc == ERR_OK)
        rc = move(turns, wire, bucket->grads, sums, half, err);
    if (rc == ERR_OK)
        rc = move(turns, wire, sums + half, last + half, count - half, err);
    return rc == ERR_OK ? ddp_wire_sum(wire, sums + half, count - half,
                                       COMM_FLOAT32, err)
                        : rc;
}

static err_code_t turns_turn(void *state, const ddp_hook_bucket_t *bucket,
                             int turn, ddp_wire_t *wire, err_t *err)
{
    const turns_t *turns = state;
    const size_t half = bucket->count / 2;
    err_code_t rc;

    if (turn == 0)
        return turn_first(turns, bucket, wire, err);
    if (turn == 1)
        return turn_second(turns, bucket, wire, err);
    rc = ddp_wire_wait(wire, err);
    return rc == ERR_OK ? move(turns, wire, bucket->grads + half,
                               turns->sums + bucket->offset + half,
                               bucket->count - half, err)
                        : rc;
}

static const opt_row_t no_rows[] = {{.name = NULL}};

#define ROW                                                       \
    {                                                             \
        .name = "turns", .help = "For tests", .options = no_rows, \
    }

static const ddp_hook_ops_t host = {.row = ROW,
                                    .turns = 3,
                                    .open = turns_open,
                                    .close = turns_close,
                                    .turn = turns_turn};
static const ddp_hook_ops_t device = {.row = ROW,
                                      .turns = 3,
                                      .place = DDP_HOOK_DEVICE,
                                      .open = turns_open,
                                      .close = turns_close,
                                      .turn = turns_turn};

const ddp_hook_ops_t *const hook_turns_host[2] = {&host, NULL};
const ddp_hook_ops_t *const hook_turns_device[2] = {&device, NULL};
