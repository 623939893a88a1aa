/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * far_device: the structs of the device "far" (dev_far.h) and the frame of its
 * calls. dev_far.c has its memory, far_stream.c its streams, events and graphs.
 */
#ifndef CDDP_DEV_FAR_DEVICE_H
#define CDDP_DEV_FAR_DEVICE_H

#include <pthread.h>

#include "dev/dev_ops.h"
#include "dev/far_graph.h"
#include "dev/far_memory.h"
#include "dev/far_queue.h"

/* Host memory that is pinned. */
typedef struct far_pin {
    struct far_pin *next;
    const char *at;
    size_t bytes;
} far_pin_t;

typedef struct far_stream far_stream_t;

/* The capture of a graph. Streams and events that belong to it have its number.
 */
typedef struct far_capture {
    far_graph_t *graph; /* NULL: there is no capture */
    pthread_t thread;   /* the one that captures */
    far_stream_t *origin;
    int64_t number; /* of the newest capture, counted from 1 */
    bool failed;
} far_capture_t;

typedef struct far_device {
    dev_device_t base;
    pthread_mutex_t lock; /* protects the fields below */
    far_memory_t memory;
    size_t room; /* bytes that [memory] may have */
    far_pin_t *pins;
    far_queue_t queue;
    far_capture_t capture;
    dev_far_counts_t counts;
    int64_t fail_at; /* the value of counts.calls whose call fails; 0: none */
    err_t failure;   /* of the first operation that failed; else ERR_OK */
} far_device_t;

struct far_stream {
    dev_stream_t base;
    far_device_t *dev;
    far_line_t line;
    far_line_t *kept; /* in the graph of capture number [capture] */
    int64_t capture;
};

typedef struct far_event {
    dev_event_t base;
    far_device_t *dev;
    far_mark_t mark;
    far_mark_t *kept; /* in the graph of capture number [capture] */
    int64_t capture;
    bool captured; /* Was the newest record captured? */
} far_event_t;

/* Lock the device and count a call named [what]. On an error, too, the caller
 * calls far_call_end. */
err_code_t far_call_begin(far_device_t *dev, const char *what, err_t *err);
/* As far_call_begin, for a call that must not occur during a capture. */
err_code_t far_call_plain(far_device_t *dev, const char *what, err_t *err);
/* Unlock. An error [rc] of the thread that captures ends in a failure of the
 * capture. Returns [rc]. */
err_code_t far_call_end(far_device_t *dev, err_code_t rc);

/* Does this thread capture? */
bool far_capturing(const far_device_t *dev);

/* The functions of far_stream.c, for the table in dev_far.c. */
err_code_t far_stream_open(dev_device_t *base, dev_stream_kind_t kind,
                           dev_stream_t **out, err_t *err);
void far_stream_close(dev_stream_t *base);
err_code_t far_stream_wait(dev_stream_t *base, err_t *err);
err_code_t far_copy(dev_stream_t *base, void *to, const void *from,
                    size_t bytes, dev_copy_kind_t kind, err_t *err);
err_code_t far_fill(dev_stream_t *base, void *to, int byte, size_t bytes,
                    err_t *err);
err_code_t far_event_open(dev_device_t *base, dev_event_t **out, err_t *err);
void far_event_close(dev_event_t *base);
err_code_t far_event_record(dev_event_t *base, dev_stream_t *on, err_t *err);
err_code_t far_event_wait(dev_event_t *base, err_t *err);
err_code_t far_event_wait_on(dev_event_t *base, dev_stream_t *on, err_t *err);
err_code_t far_capture_begin(dev_stream_t *base, err_t *err);
err_code_t far_capture_end(dev_stream_t *base, dev_graph_t **out, err_t *err);
err_code_t far_graph_launch(dev_graph_t *base, dev_stream_t *on, err_t *err);
void far_graph_close(dev_graph_t *base);

#endif
