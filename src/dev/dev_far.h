/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The device "far": a test double that behaves like a GPU in the ways that
 * matter to a caller, on a machine without one. Only test programs link it.
 *
 * - The host cannot access its memory: an access ends the process (SIGSEGV).
 * - What is put on a stream is executed only when the host waits, so a copy
 *   reads host memory that was changed too early. A copy to the host fills its
 *   target with NaN when it is enqueued, so whoever reads before the wait gets
 *   NaN. (So the target must not be the source of a copy that is pending.)
 * - Streams are executed in an order that shows a missing event: see
 *   dev_far_order_t. An order that works in both, works in any.
 * - An error of an operation is returned by the next wait, and by all later
 *   calls.
 *
 * Thread rule: that of dev.h.
 */
#ifndef CDDP_DEV_DEV_FAR_H
#define CDDP_DEV_DEV_FAR_H

#include <stdint.h>

#include "dev/dev.h"

/* The order is the index that dev_open gets. */
typedef enum dev_far_order {
    /* Of the operations that may run next, the one that was enqueued last runs
     * first. */
    DEV_FAR_LAST_FIRST,
    /* Nothing runs that the wait does not need. */
    DEV_FAR_NEEDED_ONLY,
    DEV_FAR_ORDERS
} dev_far_order_t;

/* Enqueue a call of [run] on [stream], a stream of this device, with a copy of
 * the [bytes] bytes at [arg]. [run] may access the device's memory, and must
 * not call dev.h. ERR_MEMORY. Does not block. */
typedef err_code_t dev_far_run_fn(void *arg, err_t *err);
err_code_t dev_far_enqueue(dev_stream_t *stream, dev_far_run_fn *run,
                           const void *arg, size_t bytes, err_t *err);

/* Let the call number [number] from now (1: the next one) fail with
 * ERR_UNAVAILABLE. Calls are those of dev.h that return a code, and
 * dev_far_enqueue. 0: none. */
void dev_far_fail(dev_device_t *dev, int64_t number);

/* Calls so far. */
typedef struct dev_far_counts {
    int64_t calls; /* as dev_far_fail counts them */
    int64_t waits; /* waits of the host, for a stream or an event */
    int64_t allocs;
} dev_far_counts_t;

dev_far_counts_t dev_far_counts(dev_device_t *dev);

#endif
