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

/* A stream: its operations are those of [queue] with its number. */
typedef struct far_line {
    int64_t first, last; /* its oldest and newest pending operation; -1: none */
    struct far_line *next;
} far_line_t;

/* An event: counts how often it was recorded. */
typedef struct far_mark {
    int64_t asked; /* records enqueued */
    int64_t done;  /* the newest record that was executed */
} far_mark_t;

typedef struct far_queue {
    dev_far_order_t order;
    far_line_t *lines; /* a list */
    far_op_t *ops;     /* [count] of [space], in the order of enqueueing */
    int64_t count, space, pending;
    char *args; /* [args_bytes] of [args_space]: arguments of the operations */
    size_t args_bytes, args_space;
} far_queue_t;

void far_queue_free(far_queue_t *queue);

/* A line is owned by the caller, which adds it before its first operation and
 * removes it when it has no pending one. */
void far_queue_add(far_queue_t *queue, far_line_t *line);
void far_queue_remove(far_queue_t *queue, far_line_t *line);

/* Enqueue a call of [run] with a copy of [arg]; a record of [mark]; a wait for
 * the newest record of [mark] that was enqueued before (none: no wait). A mark
 * must outlive these operations. ERR_MEMORY. */
err_code_t far_queue_push(far_queue_t *queue, far_line_t *line,
                          dev_far_run_fn *run, const void *arg, size_t bytes,
                          err_t *err);
err_code_t far_queue_record(far_queue_t *queue, far_line_t *line,
                            far_mark_t *mark, err_t *err);
err_code_t far_queue_await(far_queue_t *queue, far_line_t *line,
                           const far_mark_t *mark, err_t *err);

/* Execute operations until [line] has no pending one, or [mark] was recorded as
 * often as was asked for. Returns the error of the first operation that fails;
 * it and all that are pending then count as executed. */
err_code_t far_queue_finish(far_queue_t *queue, far_line_t *line, err_t *err);
err_code_t far_queue_reach(far_queue_t *queue, const far_mark_t *mark,
                           err_t *err);

#endif
