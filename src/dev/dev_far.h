/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The device "far": a test double that behaves like a GPU in the ways that
 * matter to a caller, on a machine without one. Only test programs link it.
 *
 * - The host cannot access its memory: an access ends the process (SIGSEGV).
 * - Operations run only when the host waits. If the host changes the source of
 *   a copy before that, the copy reads the changed numbers.
 * - A copy to the host fills its target with NaN when it is enqueued, so a host
 *   that reads before it has waited gets NaN. The target must not be the source
 *   of a pending copy.
 * - Operations of different streams run in one of two orders, dev_far_order_t,
 *   which are chosen so that a missing event gives wrong numbers.
 * - An error of an operation is returned by the next wait, and by all later
 *   calls. A wait that dev_far_fail lets fail has waited all the same.
 * - A graph keeps the operations that were captured, and a launch executes them
 *   in the device's order. What dev.h forbids during a capture is an error.
 *
 * Thread rule: that of dev.h.
 */
#ifndef CDDP_DEV_DEV_FAR_H
#define CDDP_DEV_DEV_FAR_H

#include <stdint.h>

#include "dev/dev.h"

/* dev_open chooses the order by its index. */
typedef enum dev_far_order {
    /* Of all operations that may run next, the one that was enqueued last
     * runs. */
    DEV_FAR_LAST_FIRST,
    /* Only those operations run that have to be done before the wait can
     * end. */
    DEV_FAR_NEEDED_ONLY,
    DEV_FAR_ORDERS
} dev_far_order_t;

/* Enqueue a call of [run] on [stream], a stream of this device, with a copy of
 * the [bytes] bytes at [arg]. [run] may access the device's memory, and must
 * not call dev.h. ERR_MEMORY. Does not block. */
typedef err_code_t dev_far_run_fn(void *arg, err_t *err);
err_code_t dev_far_enqueue(dev_stream_t *stream, dev_far_run_fn *run,
                           const void *arg, size_t bytes, err_t *err);

/* Let one later call fail with ERR_UNAVAILABLE: with [number] 1 the next one,
 * with 2 the one after it; 0: none. Counted are the calls of dev.h that return
 * a code, and those of dev_far_enqueue. */
void dev_far_fail(dev_device_t *dev, int64_t number);

/* For tests of code that opens the device itself. fail_new: let call [number]
 * of each device [index] that is opened from now on fail, as dev_far_fail does.
 * newest: the device that was opened last and is still open; NULL: none. */
void dev_far_fail_new(int index, int64_t number);
dev_device_t *dev_far_newest(void);

/* Set the bytes of the device's memory (at first 1 TiB). */
void dev_far_room(dev_device_t *dev, size_t bytes);

/* Numbers of calls since dev_open. */
typedef struct dev_far_counts {
    int64_t calls;    /* as dev_far_fail counts them */
    int64_t waits;    /* waits of the host, for a stream or an event */
    int64_t allocs;   /* of device memory and of pinned memory */
    int64_t launches; /* of graphs */
    int64_t unpinned; /* copies from or to host memory that is not pinned */
} dev_far_counts_t;

dev_far_counts_t dev_far_counts(dev_device_t *dev);

#endif
