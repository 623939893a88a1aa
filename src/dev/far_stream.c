/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Streams, events and graphs of the device "far". */
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "dev/far_device.h"

/* ---- streams ------------------------------------------------------------- */

err_code_t far_stream_open(dev_device_t *base, dev_stream_kind_t kind,
                           dev_stream_t **out, err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    far_stream_t *stream = NULL;
    err_code_t rc = far_call_begin(dev, "dev_stream_open", err);

    (void)kind;
    if (rc == ERR_OK)
        rc = mem_new(far_stream_t, 1, "a far stream", &stream, err);
    if (rc == ERR_OK) {
        stream->dev = dev;
        far_queue_add(&dev->queue, &stream->line);
        *out = &stream->base;
    }
    return far_call_end(dev, rc);
}

void far_stream_close(dev_stream_t *base)
{
    far_stream_t *stream = (far_stream_t *)base;

    pthread_mutex_lock(&stream->dev->lock);
    far_queue_remove(&stream->dev->queue, &stream->line);
    pthread_mutex_unlock(&stream->dev->lock);
    mem_free(stream);
}

/* Execute operations up to the end of [line], or to [mark]. */
static err_code_t far_run(far_device_t *dev, far_line_t *line,
                          const far_mark_t *mark)
{
    err_code_t rc;

    dev->counts.waits++;
    far_memory_show(&dev->memory);
    rc = line != NULL ? far_queue_finish(&dev->queue, line, &dev->failure)
                      : far_queue_reach(&dev->queue, mark, &dev->failure);
    far_memory_hide(&dev->memory);
    return rc;
}

err_code_t far_stream_wait(dev_stream_t *base, err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    far_device_t *dev = stream->dev;
    err_code_t rc = far_call_plain(dev, "dev_stream_wait", err);

    if (dev->failure.code == ERR_OK && !far_capturing(dev) &&
        far_run(dev, &stream->line, NULL) != ERR_OK && rc == ERR_OK)
        rc = err_copy(err, &dev->failure);
    return far_call_end(dev, rc);
}

/* Is [stream] part of the capture? */
static bool in_capture(const far_stream_t *stream)
{
    const far_capture_t *capture = &stream->dev->capture;

    return capture->graph != NULL && stream->capture == capture->number;
}

static err_code_t push(far_stream_t *stream, dev_far_run_fn *run,
                       const void *arg, size_t bytes, err_t *err)
{
    far_device_t *dev = stream->dev;

    return in_capture(stream)
               ? far_queue_push(&dev->capture.graph->queue, stream->kept, run,
                                arg, bytes, err)
               : far_queue_push(&dev->queue, &stream->line, run, arg, bytes,
                                err);
}

err_code_t dev_far_enqueue(dev_stream_t *base, dev_far_run_fn *run,
                           const void *arg, size_t bytes, err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    err_code_t rc = far_call_begin(stream->dev, "dev_far_enqueue", err);

    if (rc == ERR_OK)
        rc = push(stream, run, arg, bytes, err);
    return far_call_end(stream->dev, rc);
}

/* ---- copies -------------------------------------------------------------- */

typedef struct far_move {
    void *to;
    const void *from;
    size_t bytes;
} far_move_t;

static err_code_t move_run(void *arg, err_t *err)
{
    const far_move_t *move = arg;

    (void)err;
    memcpy(move->to, move->from, move->bytes);
    return ERR_OK;
}

/* [at] must be memory of the device, or, without [far], memory of the host. */
static void side_check(const far_device_t *dev, const void *at, size_t bytes,
                       bool far)
{
    check(far_memory_has(&dev->memory, at, bytes) == far,
          "%zu bytes at %p are %s memory of the device", bytes, at,
          far ? "no" : "");
    (void)dev;
    (void)at;
    (void)bytes;
    (void)far;
}

static bool pinned(const far_device_t *dev, const void *host, size_t bytes)
{
    const char *at = host;

    for (const far_pin_t *pin = dev->pins; pin != NULL; pin = pin->next)
        if (at >= pin->at && at <= pin->at + pin->bytes &&
            bytes <= (size_t)(pin->at + pin->bytes - at))
            return true;
    return false;
}

static err_code_t copy_push(far_stream_t *stream, const far_move_t *move,
                            dev_copy_kind_t kind, err_t *err)
{
    far_device_t *dev = stream->dev;
    const void *host = kind == DEV_HOST_TO_DEV ? move->from : move->to;
    err_code_t rc;

    side_check(dev, move->to, move->bytes, kind != DEV_DEV_TO_HOST);
    side_check(dev, move->from, move->bytes, kind != DEV_HOST_TO_DEV);
    if (kind != DEV_DEV_TO_DEV && !pinned(dev, host, move->bytes))
        dev->counts.unpinned++;
    rc = push(stream, move_run, move, sizeof *move, err);
    if (rc != ERR_OK || kind != DEV_DEV_TO_HOST)
        return rc;
    /* A host that reads before it has waited gets NaN. */
    if (in_capture(stream))
        return far_graph_target(dev->capture.graph, move->to, move->bytes, err);
    memset(move->to, 0xff, move->bytes);
    return ERR_OK;
}

err_code_t far_copy(dev_stream_t *base, void *to, const void *from,
                    size_t bytes, dev_copy_kind_t kind, err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    const far_move_t move = {to, from, bytes};
    err_code_t rc;

    if (bytes == 0)
        return ERR_OK;
    rc = far_call_begin(stream->dev, "dev_copy", err);
    if (rc == ERR_OK)
        rc = copy_push(stream, &move, kind, err);
    return far_call_end(stream->dev, rc);
}

typedef struct far_set {
    void *to;
    int byte;
    size_t bytes;
} far_set_t;

static err_code_t set_run(void *arg, err_t *err)
{
    const far_set_t *set = arg;

    (void)err;
    memset(set->to, set->byte, set->bytes);
    return ERR_OK;
}

err_code_t far_fill(dev_stream_t *base, void *to, int byte, size_t bytes,
                    err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    const far_set_t set = {to, byte, bytes};
    err_code_t rc;

    if (bytes == 0)
        return ERR_OK;
    rc = far_call_begin(stream->dev, "dev_fill", err);
    side_check(stream->dev, to, bytes, true);
    if (rc == ERR_OK)
        rc = push(stream, set_run, &set, sizeof set, err);
    return far_call_end(stream->dev, rc);
}

/* ---- events -------------------------------------------------------------- */

err_code_t far_event_open(dev_device_t *base, dev_event_t **out, err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    far_event_t *event = NULL;
    err_code_t rc = far_call_begin(dev, "dev_event_open", err);

    if (rc == ERR_OK)
        rc = mem_new(far_event_t, 1, "a far event", &event, err);
    if (rc == ERR_OK) {
        event->dev = dev;
        *out = &event->base;
    }
    return far_call_end(dev, rc);
}

void far_event_close(dev_event_t *base)
{
    far_event_t *event = (far_event_t *)base;

    check(event->mark.done == event->mark.asked,
          "an event is closed that was not waited for");
    mem_free(event);
}

/* Was the newest record of [event] made in the present capture? */
static bool event_in_capture(const far_event_t *event)
{
    const far_capture_t *capture = &event->dev->capture;

    return capture->graph != NULL && event->captured &&
           event->capture == capture->number;
}

static err_code_t event_capture(far_event_t *event, far_stream_t *stream,
                                err_t *err)
{
    far_capture_t *capture = &event->dev->capture;
    err_code_t rc = ERR_OK;

    if (event->capture != capture->number)
        rc = far_graph_mark(capture->graph, &event->kept, err);
    if (rc != ERR_OK)
        return rc;
    event->capture = capture->number;
    event->captured = true;
    return far_queue_record(&capture->graph->queue, stream->kept, event->kept,
                            err);
}

err_code_t far_event_record(dev_event_t *base, dev_stream_t *on, err_t *err)
{
    far_event_t *event = (far_event_t *)base;
    far_stream_t *stream = (far_stream_t *)on;
    far_device_t *dev = event->dev;
    err_code_t rc = far_call_begin(dev, "dev_event_record", err);

    if (rc == ERR_OK && in_capture(stream)) {
        rc = event_capture(event, stream, err);
    } else if (rc == ERR_OK) {
        event->captured = false;
        rc = far_queue_record(&dev->queue, &stream->line, &event->mark, err);
    }
    return far_call_end(dev, rc);
}

static err_code_t outside(const char *what, err_t *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "far: %s of an event that was recorded in a capture, and "
                   "not since",
                   what);
}

err_code_t far_event_wait(dev_event_t *base, err_t *err)
{
    far_event_t *event = (far_event_t *)base;
    far_device_t *dev = event->dev;
    err_code_t rc = far_call_plain(dev, "dev_event_wait", err);

    if (rc == ERR_OK && event->captured)
        rc = outside("dev_event_wait", err);
    if (rc == ERR_OK && far_run(dev, NULL, &event->mark) != ERR_OK)
        rc = err_copy(err, &dev->failure);
    return far_call_end(dev, rc);
}

/* [stream] waits for a captured event, and becomes part of the capture. */
static err_code_t await_captured(far_event_t *event, far_stream_t *stream,
                                 err_t *err)
{
    far_capture_t *capture = &event->dev->capture;
    err_code_t rc = ERR_OK;

    if (!in_capture(stream))
        rc = far_graph_line(capture->graph, &stream->kept, err);
    if (rc != ERR_OK)
        return rc;
    stream->capture = capture->number;
    return far_queue_await(&capture->graph->queue, stream->kept, event->kept,
                           err);
}

err_code_t far_event_wait_on(dev_event_t *base, dev_stream_t *on, err_t *err)
{
    far_event_t *event = (far_event_t *)base;
    far_stream_t *stream = (far_stream_t *)on;
    far_device_t *dev = event->dev;
    err_code_t rc = far_call_begin(dev, "dev_event_wait_on", err);

    if (rc == ERR_OK && event_in_capture(event))
        rc = await_captured(event, stream, err);
    else if (rc == ERR_OK && in_capture(stream))
        rc = err_set(err, ERR_UNAVAILABLE,
                     "far: a stream of a capture waits for an event from "
                     "outside of it");
    else if (rc == ERR_OK && event->captured)
        rc = outside("dev_event_wait_on", err);
    else if (rc == ERR_OK)
        rc = far_queue_await(&dev->queue, &stream->line, &event->mark, err);
    return far_call_end(dev, rc);
}

/* ---- graphs -------------------------------------------------------------- */

static err_code_t capture_start(far_stream_t *stream, err_t *err)
{
    far_device_t *dev = stream->dev;
    far_graph_t *graph;
    err_code_t rc = far_graph_new(dev->queue.order, &graph, err);

    if (rc != ERR_OK)
        return rc;
    rc = far_graph_line(graph, &stream->kept, err);
    if (rc != ERR_OK) {
        far_graph_free(graph);
        return rc;
    }
    stream->capture = dev->capture.number + 1;
    dev->capture = (far_capture_t){.graph = graph,
                                   .thread = pthread_self(),
                                   .origin = stream,
                                   .number = stream->capture};
    return ERR_OK;
}

err_code_t far_capture_begin(dev_stream_t *base, err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    far_device_t *dev = stream->dev;
    err_code_t rc = far_call_begin(dev, "dev_capture_begin", err);

    check(dev->capture.graph == NULL, "a capture begins within a capture");
    if (rc == ERR_OK)
        rc = capture_start(stream, err);
    return far_call_end(dev, rc);
}

err_code_t far_capture_end(dev_stream_t *base, dev_graph_t **out, err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    far_device_t *dev = stream->dev;
    far_graph_t *graph = dev->capture.graph;
    err_code_t rc = far_call_begin(dev, "dev_capture_end", err);

    check(far_capturing(dev) && dev->capture.origin == stream,
          "a capture ends that did not begin here");
    if (rc == ERR_OK && dev->capture.failed)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "far: the capture of a graph failed, since a call in it "
                     "did, or was one that waits or frees");
    if (rc == ERR_OK && !far_queue_joined(&graph->queue, stream->kept))
        rc = err_set(err, ERR_UNAVAILABLE,
                     "far: the capture of a graph ends, but its stream does "
                     "not wait for all others");
    dev->capture.graph = NULL;
    if (rc == ERR_OK)
        *out = &graph->base;
    else
        far_graph_free(graph);
    return far_call_end(dev, rc);
}

static err_code_t graph_run(void *arg, err_t *err)
{
    far_graph_t *graph = *(far_graph_t **)arg;

    return far_queue_replay(&graph->queue, err);
}

err_code_t far_graph_launch(dev_graph_t *base, dev_stream_t *on, err_t *err)
{
    far_graph_t *graph = (far_graph_t *)base;
    far_stream_t *stream = (far_stream_t *)on;
    far_device_t *dev = stream->dev;
    err_code_t rc = far_call_plain(dev, "dev_graph_launch", err);

    if (rc == ERR_OK)
        rc = push(stream, graph_run, &graph, sizeof graph, err);
    if (rc == ERR_OK) {
        far_graph_poison(graph);
        dev->counts.launches++;
    }
    return far_call_end(dev, rc);
}

void far_graph_close(dev_graph_t *base)
{
    far_graph_free((far_graph_t *)base);
}
