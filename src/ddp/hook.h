/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * hook: what travels instead of the plain gradients of a bucket. A hook is one
 * constant table (ddp_hook_ops_t); the built-in ones are fp16, bf16 and
 * powersgd, and a program may bring its own (ddp_config_t.hooks), which the run
 * file then chooses by name like the others.
 *
 * A bucket goes through the hook in turns. Turn 0 is taken as soon as the
 * bucket's gradients are final, while backward goes on; turn 1 for all buckets
 * in order when backward is through, then turn 2 for all, and so on. Every rank
 * takes the same turns in the same order, so a turn may start collectives, and
 * a later turn of the bucket waits for them. After its last turn the bucket
 * must hold the sum over ranks (or what the hook offers in its place), the same
 * bits on every rank. The tail (loss, requests to stop, failures) never passes
 * a hook.
 *
 * Gradients are sums already divided by the global denominator: what ranks have
 * to give is added, never averaged. Thread rule: one thread.
 */
#ifndef CDDP_DDP_HOOK_H
#define CDDP_DDP_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt_pick.h"
#include "comm/comm.h"

/* ---- the way out --------------------------------------------------------- */

/* A bucket's collectives under way; the reducer owns it, measures bytes and
 * time, and releases after a failure what was started. */
typedef struct ddp_wire ddp_wire_t;

#define DDP_WIRE_WORKS 4 /* most that one turn may start */

int ddp_wire_rank(const ddp_wire_t *wire);
int ddp_wire_size(const ddp_wire_t *wire);

/* Start the sum over ranks, in place; [data] stays until ddp_wire_wait. */
err_code_t ddp_wire_sum(ddp_wire_t *wire, void *data, size_t count,
                        comm_type_t type, err_t *err);

/* Start gathering [bytes] at [mine] of each rank to [all] (size * bytes). */
err_code_t ddp_wire_gather(ddp_wire_t *wire, const void *mine, size_t bytes,
                           void *all, err_t *err);

/* Wait for all that was started. Blocks as comm does. */
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
    const void *options; /* read by the hook's own table */
    const void *context; /* that table's */
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
    const void *context; /* (optional) for whoever made the table */

    /* Allocate all that steps need; they allocate nothing. [plan] and all in it
     * outlive the state. Local. */
    err_code_t (*open)(const ddp_hook_plan_t *plan, void **state, err_t *err);
    void (*close)(void *state);

    /* (optional) A step begins; [step] updates were made before it in the whole
     * run, resumed or not. Default: nothing. */
    void (*begin)(void *state, int64_t step);

    /* Take [turn] of [bucket]. */
    err_code_t (*turn)(void *state, const ddp_hook_bucket_t *bucket, int turn,
                       ddp_wire_t *wire, err_t *err);

    /* (optional) List the state into [parts], room for DDP_HOOK_PARTS; how
     * many. Freshly opened, they hold zeros: setting all to zeros forgets the
     * past. Default: there is no state. */
    int (*parts)(void *state, ddp_hook_part_t *parts);

    /* (optional) Bytes of memory that [state] holds. Default: not told. */
    size_t (*bytes)(const void *state);
} ddp_hook_ops_t;

#endif
