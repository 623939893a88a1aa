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
typedef struct dev_graph dev_graph_t;

/* What a stream is for: operations of COMM are preferred by a device that
 * executes several streams. */
typedef enum dev_stream_kind {
    DEV_STREAM_COMPUTE,
    DEV_STREAM_COPY,
    DEV_STREAM_COMM,
    DEV_STREAM_KINDS
} dev_stream_kind_t;

typedef enum dev_copy_kind {
    DEV_HOST_TO_DEV,
    DEV_DEV_TO_HOST,
    DEV_DEV_TO_DEV
} dev_copy_kind_t;

/* The backend whose memory is the host's. */
#define DEV_HOST "cpu"

/* What an option accepts that chooses a device: "auto" (DEV_AUTO), then names
 * of backends, whether they were built in or not. Ends with NULL. */
#define DEV_AUTO 0
extern const char *const dev_choices[];

/* Open device [index] of [backend] ("cpu", "cuda"; a GPU's index counts those
 * that CUDA_VISIBLE_DEVICES leaves visible). ERR_UNAVAILABLE names the backends
 * that were built in, or says why the device cannot be used; without NVIDIA's
 * driver nothing of CUDA is loaded for this. */
err_code_t dev_open(const char *backend, int index, dev_device_t **out,
                    err_t *err);

/* A device that dev_open would open. */
typedef struct dev_info {
    int index;
    char name[96]; /* "NVIDIA H200" */
    char
        uuid[48]; /* "GPU-..."; part of a GPU: "MIG-..."; "" if there is none */
    char bus[16]; /* PCI address, "0000:17:00.0"; "": it has none */
    char arch[16];      /* "sm_90" */
    char driver[48];    /* its version */
    char libraries[64]; /* versions of the libraries that compute on it */
    size_t bytes;       /* of its memory */
    char lacks[128];    /* "" if it can be used, else why not */
} dev_info_t;

/* Describe the first [room] devices of [backend], without opening them; *count
 * is the number of all. ERR_UNAVAILABLE says why there are none. */
err_code_t dev_list(const char *backend, dev_info_t *out, int room, int *count,
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

/* Bytes of [dev] that dev_alloc may still give, and all its bytes. On the CPU
 * both are the machine's memory, whatever other programs use. */
err_code_t dev_room(dev_device_t *dev, size_t *free_bytes, size_t *total_bytes,
                    err_t *err);

/* ---- host memory that copies use ----------------------------------------- */

/* Zeroed host memory for [what], aligned to MEM_ALIGN, from and to which copies
 * run at full speed and beside the host. */
err_code_t dev_pinned_alloc(dev_device_t *dev, size_t bytes, const char *what,
                            void **out, err_t *err);
void dev_pinned_free(dev_device_t *dev, void *block);

/* The same for [bytes] bytes at [block], which somebody else has allocated,
 * until dev_unpin, which comes before their free. A block that is pinned
 * already must not be pinned again. A device that was given up (dev_abandon)
 * may still access the block: do not free it then. */
err_code_t dev_pin(dev_device_t *dev, void *block, size_t bytes, err_t *err);
void dev_unpin(dev_device_t *dev, void *block);

/* ---- streams ------------------------------------------------------------- */

/* A stream executes its operations in order, asynchronously to the host. Close
 * it (NULL allowed) when its work is done. */
err_code_t dev_stream_open(dev_device_t *dev, dev_stream_kind_t kind,
                           dev_stream_t **out, err_t *err);
void dev_stream_close(dev_stream_t *stream);
/* The backend's own handle of [stream], on which code outside of cddp can
 * enqueue: a cudaStream_t for "cuda". NULL: the backend has no handles. */
void *dev_stream_handle(dev_stream_t *stream);
/* Block the host until all work on [stream] is done. */
err_code_t dev_stream_wait(dev_stream_t *stream, err_t *err);

/* Called every few hundredths of a second by a wait that has lasted [waited]
 * seconds. If it returns ERR_OK the wait goes on; any error ends the wait. Must
 * call no function of dev. */
typedef err_code_t dev_look_fn(void *context, double waited, err_t *err);

/* As dev_stream_wait, but if [look] returns an error, the wait ends with that
 * error. The work of the device may then never end, so the device is abandoned.
 * Only cuda does this: the other devices wait as dev_stream_wait does. */
err_code_t dev_stream_wait_or(dev_stream_t *stream, dev_look_fn *look,
                              void *context, err_t *err);

/* From now on dev_stream_wait is dev_stream_wait_or with [look] for all streams
 * of [dev]. dev_event_wait and dev_alloc wait for the device in the same way.
 * So all threads that wait for [dev] call [look], also at the same time. To be
 * called before other threads use [dev]. */
void dev_watch(dev_device_t *dev, dev_look_fn *look, void *context);

/* Never call the backend of [dev] again, as a call might not return. From now
 * on the functions of this header that can fail return ERR_PEER for [dev], its
 * streams and its events, and those that free or close do nothing. The process
 * is about to end, without the exit handlers of CUDA. Any thread. */
void dev_abandon(dev_device_t *dev);
bool dev_abandoned(const dev_device_t *dev);

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

/* ---- graphs -------------------------------------------------------------- */

/*
 * A graph is a list of operations that was captured once and is launched many
 * times, each time with the same addresses and sizes.
 *
 * Between dev_capture_begin and dev_capture_end, operations on [stream] are not
 * executed but become part of the graph. Another stream joins when it waits for
 * an event that was recorded in the capture; before the end, [stream] must wait
 * for the last operation of each stream that joined. In between, the thread
 * that captures must not wait for, allocate, free or pin anything of this
 * device (an error), and streams of the capture must not wait for events from
 * outside of it (an error). After an error the thread calls dev_capture_end,
 * which then fails; the device can be used as before. An event that was
 * recorded in a capture has to be recorded again before it is used outside.
 *
 * One capture at a time; other threads may use the device and other streams.
 */
bool dev_can_capture(const dev_device_t *dev);
/* ERR_UNAVAILABLE if [stream]'s device cannot capture. */
err_code_t dev_capture_begin(dev_stream_t *stream, err_t *err);
/* Ends the capture, also if it fails. */
err_code_t dev_capture_end(dev_stream_t *stream, dev_graph_t **out, err_t *err);
/* Enqueue all operations of [graph] on [stream]. A graph runs in one place at a
 * time: launch it again on the same stream, or after a wait. */
err_code_t dev_graph_launch(dev_graph_t *graph, dev_stream_t *stream,
                            err_t *err);
/* NULL allowed. The launches of [graph] must be done. */
void dev_graph_close(dev_graph_t *graph);

#endif
