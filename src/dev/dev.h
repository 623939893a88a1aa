/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dev: memory, streams and events of a device. On the CPU all of them are
 * trivial (streams have nothing pending, events are always complete), but the
 * executor uses this interface already, so that a CUDA backend needs no change
 * above.
 *
 * (The type is called dev_device_t, since POSIX reserves dev_t.)
 *
 * Thread rule: several threads may use a device; one thread uses a stream.
 */
#ifndef CDDP_DEV_DEV_H
#define CDDP_DEV_DEV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct dev_device dev_device_t;
typedef struct dev_stream dev_stream_t;
typedef struct dev_event dev_event_t;

typedef enum dev_copy_kind {
    DEV_HOST_TO_DEV,
    DEV_DEV_TO_HOST,
    DEV_DEV_TO_DEV
} dev_copy_kind_t;

/* Open device [index] of [backend] ("cpu"). ERR_UNAVAILABLE names the backends
 * that were built in. */
err_code_t dev_open(const char *backend, int index, dev_device_t **out,
                    err_t *err);

/* NULL allowed. All memory, streams and events of [dev] must be freed before.
 */
void dev_close(dev_device_t *dev);

/* Name of the backend, and: may the CPU access the memory of [dev]? */
const char *dev_name(const dev_device_t *dev);
bool dev_host_visible(const dev_device_t *dev);

/* Zeroed memory aligned to MEM_ALIGN for [what] (named in ERR_MEMORY). */
err_code_t dev_alloc(dev_device_t *dev, size_t bytes, const char *what,
                     void **out, err_t *err);
void dev_free(dev_device_t *dev, void *block);

/* A stream executes its operations in order, asynchronously to the host. Close
 * it (NULL allowed) when its work is done. */
err_code_t dev_stream_open(dev_device_t *dev, dev_stream_t **out, err_t *err);
void dev_stream_close(dev_stream_t *stream);
/* Block the host until all work on [stream] is done. */
err_code_t dev_stream_wait(dev_stream_t *stream, err_t *err);

/* Enqueue a copy, or a fill with a byte, on [stream]. Host memory must stay
 * valid until the operation is done. */
err_code_t dev_copy(dev_stream_t *stream, void *to, const void *from,
                    size_t bytes, dev_copy_kind_t kind, err_t *err);
err_code_t dev_fill(dev_stream_t *stream, void *to, int byte, size_t bytes,
                    err_t *err);

/* An event marks a point of a stream (record). The host can wait for it (wait),
 * or another stream can (wait_on: its later operations start after the event,
 * and the host does not block). Closing NULL is allowed. */
err_code_t dev_event_open(dev_device_t *dev, dev_event_t **out, err_t *err);
void dev_event_close(dev_event_t *event);
err_code_t dev_event_record(dev_event_t *event, dev_stream_t *stream,
                            err_t *err);
err_code_t dev_event_wait(dev_event_t *event, err_t *err);
err_code_t dev_event_wait_on(dev_event_t *event, dev_stream_t *stream,
                             err_t *err);

#endif
