/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * hook: reduces a bucket in another way than by the sum of its plain gradients.
 * A hook is one constant table (ddp_hook_ops_t). The built-in hooks are fp16,
 * bf16 and powersgd; a program may add its own (ddp_config_t.hooks). The run
 * file chooses a hook by name.
 *
 * A hook works on a bucket in turns. Turn 0 begins as soon as the gradients of
 * the bucket are final, overlapped with backward. After backward comes turn 1
 * of all buckets, in order, then turn 2 of all, and so on. All ranks take the
 * same turns in the same order, so a turn may start collectives, and a later
 * turn of the bucket waits for them. After its last turn the bucket must hold
 * the sum over ranks, or the hook's approximation, with the same bits on all
 * ranks. The tail (losses, requests to stop, failures) never passes a hook.
 *
 * Gradients are already divided by the global denominator: ranks add them, and
 * never average. Thread rule: one thread.
 */
#ifndef CDDP_DDP_HOOK_H
#define CDDP_DDP_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt_pick.h"
#include "comm/comm.h"

/* ---- collectives of a turn ----------------------------------------------- */

/* The collectives in flight of one bucket. The reducer owns it, measures bytes
 * and time, and waits for the collectives after a failure. */
typedef struct ddp_wire ddp_wire_t;

#define DDP_WIRE_WORKS 4 /* most that one turn may start */

int ddp_wire_rank(const ddp_wire_t *wire);
int ddp_wire_size(const ddp_wire_t *wire);

/* Start the sum over ranks, in place; [data] must stay until ddp_wire_wait. */
err_code_t ddp_wire_sum(ddp_wire_t *wire, void *data, size_t count,
                        comm_type_t type, err_t *err);

/* Start gathering [bytes] at [mine] of each rank to [all] (size * bytes). */
err_code_t ddp_wire_gather(ddp_wire_t *wire, const void *mine, size_t bytes,
                           void *all, err_t *err);

/* Wait for all collectives of the wire. Blocks as comm does. */
err_code_t ddp_wire_wait(ddp_wire_t *wire, err_t *err);

/* ---- what a hook sees ---------------------------------------------------- */

/* One parameter's gradient. A tensor of two or more dimensions counts as a
 * matrix of rows x columns (its first dimension by the others); else rows is 0.
 */
typedef struct ddp_hook_view {
    size_t offset; /* elements, in the arena */
    size_t count;
    int64_t rows, columns;
} ddp_hook_view_t;

typedef struct ddp_hook_bucket {
    int index;
    float *grads;         /* [count], in the gradient arena; gaps are zeros */
    size_t offset, count; /* elements, in the arena */
    const ddp_hook_view_t *views; /* in arena order */
    int view_count;
} ddp_hook_bucket_t;

typedef struct ddp_hook_plan {
    const void *options; /* as the hook's option table has filled them */
    const void *context; /* of the hook's table */
    const ddp_hook_bucket_t *buckets;
    int bucket_count;
    size_t elems; /* of the gradient arena */
    int rank, size;
} ddp_hook_plan_t;

/* A part of a hook's state that a checkpoint keeps. */
typedef struct ddp_hook_part {
    const char *name; /* static: "residual" */
    float *data;
    size_t count;
    bool own; /* differs from rank to rank; else the same bits on all */
} ddp_hook_part_t;

#define DDP_HOOK_PARTS 4

typedef struct ddp_hook_ops {
    opt_pick_row_t row;  /* name in the run file, help, option table */
    size_t option_bytes; /* of the struct that the table fills; 0: none */
    int turns;           /* >= 1 */
    const void *context; /* (optional) for the maker of the table */

    /* Allocate all memory that steps need: turns allocate nothing. [plan] and
     * all in it outlive the state. Local. */
    err_code_t (*open)(const ddp_hook_plan_t *plan, void **state, err_t *err);
    void (*close)(void *state);

    /* (optional) A step begins, after [step] updates since the start of the
     * run, resumed or not. Default: nothing. */
    void (*begin)(void *state, int64_t step);

    /* Take [turn] of [bucket]. */
    err_code_t (*turn)(void *state, const ddp_hook_bucket_t *bucket, int turn,
                       ddp_wire_t *wire, err_t *err);

    /* (optional) List the state in [parts], of DDP_HOOK_PARTS elements; returns
     * their number. Open sets all of it to zeros, and setting it to zeros again
     * is a fresh start. Default: no state. */
    int (*parts)(void *state, ddp_hook_part_t *parts);

    /* (optional) Bytes of memory that [state] holds. Default: not told. */
    size_t (*bytes)(const void *state);
} ddp_hook_ops_t;

#endif
