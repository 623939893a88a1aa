/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A bounded queue of pointers between threads. Any number of putters and
 * getters. Allocates only in queue_open. */
#ifndef CDDP_BASE_QUEUE_H
#define CDDP_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct queue queue_t;

typedef enum queue_result {
    QUEUE_DONE,    /* an item was moved */
    QUEUE_TIMEOUT, /* the instant passed first */
    QUEUE_CLOSED   /* closed; for get: and empty */
} queue_result_t;

/* Make a queue of [room] items. The caller closes with queue_free. */
err_code_t queue_open(size_t room, queue_t **out, err_t *err);

/* Put or get one [item], waiting until [instant] of clock_now (0: do not wait,
 * negative: for ever). */
queue_result_t queue_put(queue_t *queue, void *item, double instant);
queue_result_t queue_get(queue_t *queue, double instant, void **item);

/* Refuse further puts, wake all waiters. Items inside can still be got. */
void queue_close(queue_t *queue);

/* Free it; NULL allowed; no thread may be inside. Items are the caller's. */
void queue_free(queue_t *queue);

#endif
