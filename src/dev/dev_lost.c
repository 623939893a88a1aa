/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The functions of a device that was given up (dev_abandon). None of them calls
 * the device. */
#include "dev/dev_ops.h"

static err_code_t lost(err_t *err)
{
    return err_set_peer(err, -1, NULL, "this rank has given up its device");
}

static void lost_close(dev_device_t *dev)
{
    (void)dev;
}

static err_code_t lost_alloc(dev_device_t *dev, size_t bytes, const char *what,
                             void **out, err_t *err)
{
    (void)dev;
    (void)bytes;
    (void)what;
    (void)out;
    return lost(err);
}

static void lost_free(dev_device_t *dev, void *block)
{
    (void)dev;
    (void)block;
}

static err_code_t lost_room(dev_device_t *dev, size_t *free_bytes,
                            size_t *total_bytes, err_t *err)
{
    (void)dev;
    (void)free_bytes;
    (void)total_bytes;
    return lost(err);
}

static err_code_t lost_pin(dev_device_t *dev, void *block, size_t bytes,
                           err_t *err)
{
    (void)dev;
    (void)block;
    (void)bytes;
    return lost(err);
}

/* ---- streams ------------------------------------------------------------- */

static err_code_t lost_stream_open(dev_device_t *dev, dev_stream_kind_t kind,
                                   dev_stream_t **out, err_t *err)
{
    (void)dev;
    (void)kind;
    (void)out;
    return lost(err);
}

static void lost_stream_close(dev_stream_t *stream)
{
    (void)stream;
}

static err_code_t lost_stream_wait(dev_stream_t *stream, err_t *err)
{
    (void)stream;
    return lost(err);
}

static err_code_t lost_copy(dev_stream_t *stream, void *to, const void *from,
                            size_t bytes, dev_copy_kind_t kind, err_t *err)
{
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    (void)kind;
    return lost(err);
}

static err_code_t lost_fill(dev_stream_t *stream, void *to, int byte,
                            size_t bytes, err_t *err)
{
    (void)stream;
    (void)to;
    (void)byte;
    (void)bytes;
    return lost(err);
}

/* ---- events and graphs --------------------------------------------------- */

static err_code_t lost_event_open(dev_device_t *dev, dev_event_t **out,
                                  err_t *err)
{
    (void)dev;
    (void)out;
    return lost(err);
}

static void lost_event_close(dev_event_t *event)
{
    (void)event;
}

static err_code_t lost_event_on(dev_event_t *event, dev_stream_t *stream,
                                err_t *err)
{
    (void)event;
    (void)stream;
    return lost(err);
}

static err_code_t lost_event_wait(dev_event_t *event, err_t *err)
{
    (void)event;
    return lost(err);
}

static err_code_t lost_capture_end(dev_stream_t *stream, dev_graph_t **out,
                                   err_t *err)
{
    (void)stream;
    (void)out;
    return lost(err);
}

static err_code_t lost_graph_launch(dev_graph_t *graph, dev_stream_t *stream,
                                    err_t *err)
{
    (void)graph;
    (void)stream;
    return lost(err);
}

static void lost_graph_close(dev_graph_t *graph)
{
    (void)graph;
}

const dev_ops_t dev_lost_ops = {
    .name = "lost",
    .lost = true,
    .close = lost_close,
    .alloc = lost_alloc,
    .free = lost_free,
    .room = lost_room,
    .pinned_alloc = lost_alloc,
    .pinned_free = lost_free,
    .pin = lost_pin,
    .unpin = lost_free,
    .stream_open = lost_stream_open,
    .stream_close = lost_stream_close,
    .stream_wait = lost_stream_wait,
    .copy = lost_copy,
    .fill = lost_fill,
    .event_open = lost_event_open,
    .event_close = lost_event_close,
    .event_record = lost_event_on,
    .event_wait = lost_event_wait,
    .event_wait_on = lost_event_on,
    .capture_begin = lost_stream_wait,
    .capture_end = lost_capture_end,
    .graph_launch = lost_graph_launch,
    .graph_close = lost_graph_close,
};
