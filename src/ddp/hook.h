/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * hook: reduces a bucket in another way than by the sum of its plain gradients.
 * A hook is one constant table (ddp_hook_ops_t). The built-in hooks are fp16,
 * bf16 and powersgd; a program may add its own (ddp_config_t.hooks). The run
 * file chooses a hook by name.
 *
 * A hook works on a bucket in turns. Turn 0 begins as soon as the gradients of
 * the bucket are final, overlapped with backward. After backward come turn 1 of
 * all buckets, in order, then turn 2 of all buckets, and so on. All ranks take
 * the same turns in the same order. So a turn may start collectives, for which
 * a later turn of the bucket waits. After its last turn the bucket must have
 * the sum over ranks, or the hook's approximation, with the same bits on all
 * ranks. The tail (losses, requests to stop, failures) does not pass through a
 * hook.
 *
 * The table says where a hook works (ddp_hook_place_t). Most hooks work on the
 * host's memory. If gradients are on a device, such a hook gets a copy of them,
 * and turn 0 of the buckets begins when all of backward is enqueued. But fp16
 * and bf16 work on the device (half.c) if the data group only enqueues its
 * collectives there (comm_group_enqueues). And powersgd works on the device if
 * the op backend of the device has the arithmetic (op_lowrank_offered).
 *
 * A hook of the place "device" gets the gradients in the device's memory. Its
 * turns only enqueue, on ddp_wire_stream. Its collectives work on memory of the
 * device. A collective begins when the device has finished the work that this
 * stream had when the collective was started. Work that is enqueued after
 * ddp_wire_wait finds the results of the collectives.
 *
 * Gradients are already divided by the global denominator: hooks sum over ranks
 * and do not average. Thread rule: one thread.
 */
#ifndef CDDP_DDP_HOOK_H
#define CDDP_DDP_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt_pick.h"
#include "comm/comm.h"

struct ddp_config;     /* ddp.h */
struct op_backend_ops; /* op/op.h */
struct ddp_rounding;   /* hook_priv.h */

/* Does [dev] compute the hook of [config] itself? [enqueues]: the data group
 * only enqueues its collectives there. */
bool ddp_hook_fits_device(const struct ddp_config *config,
                          const dev_device_t *dev, bool enqueues);

/* ---- collectives of a turn ----------------------------------------------- */

/* The collectives of one bucket that are in flight. The reducer owns it,
 * measures bytes and time, and waits for the collectives after a failure. */
typedef struct ddp_wire ddp_wire_t;

#define DDP_WIRE_WORKS 4 /* maximum number of collectives in flight */

int ddp_wire_rank(const ddp_wire_t *wire);
int ddp_wire_size(const ddp_wire_t *wire);

/* Start the sum over ranks of [data], in place. [data] must stay until
 * ddp_wire_wait. */
err_code_t ddp_wire_sum(ddp_wire_t *wire, void *data, size_t count,
                        comm_type_t type, err_t *err);

/* Start an all-gather of [bytes] bytes at [mine] to [all], which has room for
 * the bytes of all ranks. */
err_code_t ddp_wire_gather(ddp_wire_t *wire, const void *mine, size_t bytes,
                           void *all, err_t *err);

/* Wait for all collectives of the wire. On the host's memory it blocks like any
 * wait of comm. On a device the stream waits for the results, and the host
 * waits no longer than the data group needs (comm_work_wait_on). */
err_code_t ddp_wire_wait(ddp_wire_t *wire, err_t *err);

/* The stream on which a hook of the place "device" enqueues in this step. NULL:
 * the hook works on the host's memory. */
dev_stream_t *ddp_wire_stream(const ddp_wire_t *wire);

/* Where a hook wants the gradients. */
typedef enum ddp_hook_place {
    DDP_HOOK_HOST,  /* in the host's memory, in every run */
    DDP_HOOK_DEVICE /* in the device's memory: only for runs on a device */
} ddp_hook_place_t;

/* ---- what a hook sees ---------------------------------------------------- */

/* One parameter's gradient. A tensor of two or more dimensions counts as a
 * matrix: rows is its first dimension, columns the product of the others. For
 * other tensors rows is 0. */
typedef struct ddp_hook_view {
    size_t offset; /* index of the first element in the arena */
    size_t count;
    int64_t rows, columns;
} ddp_hook_view_t;

typedef struct ddp_hook_bucket {
    int index;
    /* [count]: this bucket's part of the gradient arena; gaps are zero. */
    float *grads;
    size_t offset, count; /* first element in the arena; number of elements */
    const ddp_hook_view_t *views; /* in the order of the arena */
    int view_count;
} ddp_hook_bucket_t;

typedef struct ddp_hook_plan {
    const void *options; /* struct filled from the hook's option table */
    const void *context; /* context of the hook's table */
    const ddp_hook_bucket_t *buckets;
    int bucket_count;
    size_t elems; /* elements of the gradient arena */
    int rank, size;
    dev_device_t *dev; /* its memory has the gradients; NULL: the host's has */
    /* The state is opened only to count its memory (see [bytes] below). No turn
     * follows, so the memory of turns need not be allocated. */
    bool counted;
} ddp_hook_plan_t;

/* A part of a hook's state that checkpoints store. */
typedef struct ddp_hook_part {
    const char *name; /* a static text, such as "residual" */
    float *data;
    size_t count;
    bool own; /* true: differs between ranks; false: same bits on all ranks */
    bool device; /* memory of the reducer's device; false: of the host */
} ddp_hook_part_t;

#define DDP_HOOK_PARTS 4

typedef struct ddp_hook_ops {
    opt_pick_row_t row; /* name in the run file, help, option table */
    /* Size of the struct that the option table fills; 0: no options. */
    size_t option_bytes;
    int turns; /* number of turns, >= 1 */
    ddp_hook_place_t place;
    /* (optional) passed on to [open], for the author of the table. */
    const void *context;

    /* Allocate all memory that steps need: turns allocate nothing. [plan] and
     * all it points to outlive the state. Local. */
    err_code_t (*open)(const ddp_hook_plan_t *plan, void **state, err_t *err);
    void (*close)(void *state); /* never called with NULL */

    /* (optional) Begin a step. [step] is the number of updates since the start
     * of the run, also if the run was resumed. Default: nothing. */
    void (*begin)(void *state, int64_t step);

    /* Take turn number [turn] of [bucket]. An error ends the run: no further
     * turn is taken, and the reducer waits for the collectives of all wires. */
    err_code_t (*turn)(void *state, const ddp_hook_bucket_t *bucket, int turn,
                       ddp_wire_t *wire, err_t *err);

    /* (optional) List the state in [parts], which has DDP_HOOK_PARTS elements.
     * Returns the number of parts. Open sets all of the state to zeros; zeros
     * always mean a fresh start. Default: no state. */
    int (*parts)(void *state, ddp_hook_part_t *parts);

    /* (optional) Bytes of memory that [state] uses. Default: not known. */
    size_t (*bytes)(const void *state);

    /* (optional) For a built-in hook that only rounds gradients: set [out] to
     * how it rounds, so that a device can do the same (half.c). */
    void (*rounds)(const void *options, struct ddp_rounding *out);

    /* (optional) For a built-in hook of the place "host": can the hook work
     * on the memory of devices with the op backend [backend], too? */
    bool (*fits)(const struct op_backend_ops *backend);
} ddp_hook_ops_t;

#endif
