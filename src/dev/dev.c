/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Forwards all calls to the table of the device's backend. */
#include "dev/dev.h"

#include "dev/dev_ops.h"

void dev_close(dev_device_t *dev)
{
    if (dev != NULL)
        dev->ops->close(dev);
}

const char *dev_name(const dev_device_t *dev)
{
    return dev->ops->name;
}

bool dev_host_visible(const dev_device_t *dev)
{
    return dev->ops->host_visible;
}

err_code_t dev_alloc(dev_device_t *dev, size_t bytes, const char *what,
                     void **out, err_t *err)
{
    return dev->ops->alloc(dev, bytes, what, out, err);
}

void dev_free(dev_device_t *dev, void *block)
{
    if (block != NULL)
        dev->ops->free(dev, block);
}

err_code_t dev_room(dev_device_t *dev, size_t *free_bytes, size_t *total_bytes,
                    err_t *err)
{
    return dev->ops->room(dev, free_bytes, total_bytes, err);
}

err_code_t dev_pinned_alloc(dev_device_t *dev, size_t bytes, const char *what,
                            void **out, err_t *err)
{
    return dev->ops->pinned_alloc(dev, bytes, what, out, err);
}

void dev_pinned_free(dev_device_t *dev, void *block)
{
    if (block != NULL)
        dev->ops->pinned_free(dev, block);
}

err_code_t dev_pin(dev_device_t *dev, void *block, size_t bytes, err_t *err)
{
    return dev->ops->pin(dev, block, bytes, err);
}

void dev_unpin(dev_device_t *dev, void *block)
{
    if (block != NULL)
        dev->ops->unpin(dev, block);
}

err_code_t dev_stream_open(dev_device_t *dev, dev_stream_kind_t kind,
                           dev_stream_t **out, err_t *err)
{
    dev_stream_t *stream;
    err_code_t rc = dev->ops->stream_open(dev, kind, &stream, err);

    if (rc != ERR_OK)
        return rc;
    stream->dev = dev;
    *out = stream;
    return ERR_OK;
}

void dev_stream_close(dev_stream_t *stream)
{
    if (stream != NULL)
        stream->dev->ops->stream_close(stream);
}

void *dev_stream_handle(dev_stream_t *stream)
{
    const dev_ops_t *ops = stream->dev->ops;

    return ops->stream_handle != NULL ? ops->stream_handle(stream) : NULL;
}

/* Calls [look], and remembers whether its error ended the wait. */
typedef struct look_noted {
    dev_look_fn *look;
    void *context;
    bool ends;
} look_noted_t;

static err_code_t look_note(void *context, double waited, err_t *err)
{
    look_noted_t *noted = context;
    err_code_t rc = noted->look(noted->context, waited, err);

    noted->ends = rc != ERR_OK;
    return rc;
}

err_code_t dev_stream_wait_or(dev_stream_t *stream, dev_look_fn *look,
                              void *context, err_t *err)
{
    const dev_ops_t *ops = stream->dev->ops;
    look_noted_t noted = {.look = look, .context = context};
    err_code_t rc;

    if (ops->stream_wait_or == NULL)
        return ops->stream_wait(stream, err);
    rc = ops->stream_wait_or(stream, look_note, &noted, err);
    if (noted.ends)
        dev_abandon(stream->dev);
    return rc;
}

err_code_t dev_stream_wait(dev_stream_t *stream, err_t *err)
{
    const dev_device_t *dev = stream->dev;

    return dev->look != NULL
               ? dev_stream_wait_or(stream, dev->look, dev->context, err)
               : dev->ops->stream_wait(stream, err);
}

void dev_watch(dev_device_t *dev, dev_look_fn *look, void *context)
{
    dev->look = look;
    dev->context = context;
}

void dev_abandon(dev_device_t *dev)
{
    dev->ops = &dev_lost_ops;
}

bool dev_abandoned(const dev_device_t *dev)
{
    return dev->ops->lost;
}

err_code_t dev_copy(dev_stream_t *stream, void *to, const void *from,
                    size_t bytes, dev_copy_kind_t kind, err_t *err)
{
    return stream->dev->ops->copy(stream, to, from, bytes, kind, err);
}

err_code_t dev_fill(dev_stream_t *stream, void *to, int byte, size_t bytes,
                    err_t *err)
{
    return stream->dev->ops->fill(stream, to, byte, bytes, err);
}

err_code_t dev_event_open(dev_device_t *dev, dev_event_t **out, err_t *err)
{
    dev_event_t *event;
    err_code_t rc = dev->ops->event_open(dev, &event, err);

    if (rc != ERR_OK)
        return rc;
    event->dev = dev;
    *out = event;
    return ERR_OK;
}

void dev_event_close(dev_event_t *event)
{
    if (event != NULL)
        event->dev->ops->event_close(event);
}

err_code_t dev_event_record(dev_event_t *event, dev_stream_t *stream,
                            err_t *err)
{
    return event->dev->ops->event_record(event, stream, err);
}

err_code_t dev_event_wait(dev_event_t *event, err_t *err)
{
    const dev_device_t *dev = event->dev;
    const dev_ops_t *ops = dev->ops;

    return dev->look != NULL && ops->event_wait_or != NULL
               ? ops->event_wait_or(event, dev->look, dev->context, err)
               : ops->event_wait(event, err);
}

err_code_t dev_event_wait_on(dev_event_t *event, dev_stream_t *stream,
                             err_t *err)
{
    return event->dev->ops->event_wait_on(event, stream, err);
}

bool dev_can_capture(const dev_device_t *dev)
{
    return dev->ops->capture_begin != NULL;
}

err_code_t dev_capture_begin(dev_stream_t *stream, err_t *err)
{
    const dev_ops_t *ops = stream->dev->ops;

    if (ops->capture_begin == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "the %s backend cannot capture operations", ops->name);
    return ops->capture_begin(stream, err);
}

err_code_t dev_capture_end(dev_stream_t *stream, dev_graph_t **out, err_t *err)
{
    dev_graph_t *graph;
    err_code_t rc = stream->dev->ops->capture_end(stream, &graph, err);

    if (rc != ERR_OK)
        return rc;
    graph->dev = stream->dev;
    *out = graph;
    return ERR_OK;
}

err_code_t dev_graph_launch(dev_graph_t *graph, dev_stream_t *stream,
                            err_t *err)
{
    return graph->dev->ops->graph_launch(graph, stream, err);
}

void dev_graph_close(dev_graph_t *graph)
{
    if (graph != NULL)
        graph->dev->ops->graph_close(graph);
}
