/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * far_queue: the operations that wait on the streams of a "far" device, and the
 * order in which they are executed (dev_far.h).
 *
 * Thread rule: the caller holds the device's lock.
 */
#ifndef CDDP_DEV_FAR_QUEUE_H
#define CDDP_DEV_FAR_QUEUE_H

#include <stdbool.h>

#include "dev/dev_far.h"

typedef struct far_op far_op_t;

/* The pending operations of one stream, in the order of enqueueing. */
typedef struct far_line {
    int64_t first, last; /* indices in far_queue_t.ops; first is -1: none */
    struct far_line *next;
} far_line_t;

/* The records of one event, counted from 1. */
typedef struct far_mark {
    int64_t asked; /* number of records enqueued */
    int64_t done;  /* number of the newest record executed; 0: none */
} far_mark_t;

typedef struct far_queue {
    dev_far_order_t order;
    far_line_t *lines; /* a list */
    far_op_t *ops;     /* [space], of which [count] are used */
    int64_t count, space, pending;
    char *args; /* [args_space] bytes, of which [args_bytes] are used */
    size_t args_bytes, args_space;
} far_queue_t;

void far_queue_free(far_queue_t *queue);

/* A line is owned by the caller, which adds it before its first operation and
 * removes it when it has no pending one. */
void far_queue_add(far_queue_t *queue, far_line_t *line);
void far_queue_remove(far_queue_t *queue, far_line_t *line);

/* Enqueue on [line]:
 * - push: a call of [run] with a copy of [arg].
 * - record: a record of [mark].
 * - await: a wait for the newest record of [mark] that was enqueued so far; if
 *   there is none, it waits for nothing.
 * A mark must outlive these operations. ERR_MEMORY. */
err_code_t far_queue_push(far_queue_t *queue, far_line_t *line,
                          dev_far_run_fn *run, const void *arg, size_t bytes,
                          err_t *err);
err_code_t far_queue_record(far_queue_t *queue, far_line_t *line,
                            far_mark_t *mark, err_t *err);
err_code_t far_queue_await(far_queue_t *queue, far_line_t *line,
                           const far_mark_t *mark, err_t *err);

/* Execute operations until [line] has none pending (finish), or until the
 * newest record of [mark] is executed (reach). If an operation fails, return
 * its error; all pending operations are then dropped. */
err_code_t far_queue_finish(far_queue_t *queue, far_line_t *line, err_t *err);
err_code_t far_queue_reach(far_queue_t *queue, const far_mark_t *mark,
                           err_t *err);

/* For a queue whose operations are kept: execute all of them, again. */
err_code_t far_queue_replay(far_queue_t *queue, err_t *err);
/* Does the end of [line] depend on all operations of all lines? Executes
 * nothing. */
bool far_queue_joined(far_queue_t *queue, far_line_t *line);

#endif
