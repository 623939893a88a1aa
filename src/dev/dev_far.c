/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/dev_far.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "dev/dev_ops.h"
#include "dev/far_memory.h"
#include "dev/far_queue.h"

typedef struct far_device {
    dev_device_t base;
    pthread_mutex_t lock; /* protects the fields below */
    far_memory_t memory;
    far_queue_t queue;
    dev_far_counts_t counts;
    int64_t fail_at; /* the value of counts.calls whose call fails; 0: none */
    err_t failure;   /* of the first operation that failed; else ERR_OK */
} far_device_t;

typedef struct far_stream {
    dev_stream_t base;
    far_device_t *dev;
    far_line_t line;
} far_stream_t;

typedef struct far_event {
    dev_event_t base;
    far_device_t *dev;
    far_mark_t mark;
} far_event_t;

/* Lock the device and count a call named [what]. On an error, too, the caller
 * unlocks. */
static err_code_t call_begin(far_device_t *dev, const char *what, err_t *err)
{
    pthread_mutex_lock(&dev->lock);
    if (++dev->counts.calls == dev->fail_at)
        return err_set(err, ERR_UNAVAILABLE, "far: %s failed (call %lld)", what,
                       (long long)dev->fail_at);
    if (dev->failure.code != ERR_OK) {
        if (err != NULL)
            *err = dev->failure;
        return dev->failure.code;
    }
    return ERR_OK;
}

static err_code_t call_end(far_device_t *dev, err_code_t rc)
{
    pthread_mutex_unlock(&dev->lock);
    return rc;
}

/* ---- the device ---------------------------------------------------------- */

static err_code_t far_open(int index, dev_device_t **out, err_t *err)
{
    far_device_t *dev = NULL;
    err_code_t rc;

    if (index < 0 || index >= DEV_FAR_ORDERS)
        return err_set(err, ERR_UNAVAILABLE,
                       "the far backend has %d devices, but index %d was "
                       "asked for",
                       DEV_FAR_ORDERS, index);
    rc = mem_new(far_device_t, 1, "a far device", &dev, err);
    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&dev->lock, NULL);
    dev->queue.order = (dev_far_order_t)index;
    *out = &dev->base;
    return ERR_OK;
}

static void far_close(dev_device_t *base)
{
    far_device_t *dev = (far_device_t *)base;

    check(dev->memory.blocks == NULL, "a device is closed, but not its memory");
    check(dev->queue.lines == NULL, "a device is closed, but not its streams");
    far_queue_free(&dev->queue);
    pthread_mutex_destroy(&dev->lock);
    mem_free(dev);
}

static err_code_t far_alloc(dev_device_t *base, size_t bytes, const char *what,
                            void **out, err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    err_code_t rc = call_begin(dev, "dev_alloc", err);

    dev->counts.allocs++;
    if (rc == ERR_OK)
        rc = far_memory_map(&dev->memory, bytes, what, out, err);
    return call_end(dev, rc);
}

static void far_free(dev_device_t *base, void *block)
{
    far_device_t *dev = (far_device_t *)base;

    pthread_mutex_lock(&dev->lock);
    far_memory_unmap(&dev->memory, block);
    pthread_mutex_unlock(&dev->lock);
}

/* ---- streams ------------------------------------------------------------- */

static err_code_t far_stream_open(dev_device_t *base, dev_stream_t **out,
                                  err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    far_stream_t *stream = NULL;
    err_code_t rc = call_begin(dev, "dev_stream_open", err);

    if (rc == ERR_OK)
        rc = mem_new(far_stream_t, 1, "a far stream", &stream, err);
    if (rc == ERR_OK) {
        stream->dev = dev;
        far_queue_add(&dev->queue, &stream->line);
        *out = &stream->base;
    }
    return call_end(dev, rc);
}

static void far_stream_close(dev_stream_t *base)
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

static err_code_t far_wait(far_device_t *dev, const char *what,
                           far_line_t *line, const far_mark_t *mark, err_t *err)
{
    err_code_t rc = call_begin(dev, what, err);

    if (rc == ERR_OK) {
        rc = far_run(dev, line, mark);
        if (rc != ERR_OK && err != NULL)
            *err = dev->failure;
    }
    return call_end(dev, rc);
}

static err_code_t far_stream_wait(dev_stream_t *base, err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;

    return far_wait(stream->dev, "dev_stream_wait", &stream->line, NULL, err);
}

static err_code_t far_push(dev_stream_t *base, const char *what,
                           dev_far_run_fn *run, const void *arg, size_t bytes,
                           err_t *err)
{
    far_stream_t *stream = (far_stream_t *)base;
    far_device_t *dev = stream->dev;
    err_code_t rc = call_begin(dev, what, err);

    if (rc == ERR_OK)
        rc = far_queue_push(&dev->queue, &stream->line, run, arg, bytes, err);
    return call_end(dev, rc);
}

err_code_t dev_far_enqueue(dev_stream_t *stream, dev_far_run_fn *run,
                           const void *arg, size_t bytes, err_t *err)
{
    return far_push(stream, "dev_far_enqueue", run, arg, bytes, err);
}

/* ---- copies -------------------------------------------------------------- */

typedef struct far_copy {
    void *to;
    const void *from;
    size_t bytes;
} far_copy_t;

static err_code_t copy_run(void *arg, err_t *err)
{
    const far_copy_t *copy = arg;

    (void)err;
    memcpy(copy->to, copy->from, copy->bytes);
    return ERR_OK;
}

/* [at] must be memory of the device, or, without [far], memory of the host. */
static void side_check(far_device_t *dev, const void *at, size_t bytes,
                       bool far)
{
    pthread_mutex_lock(&dev->lock);
    check(far_memory_has(&dev->memory, at, bytes) == far,
          "%zu bytes at %p are %s memory of the device", bytes, at,
          far ? "no" : "");
    pthread_mutex_unlock(&dev->lock);
    (void)far;
}

static err_code_t far_copy(dev_stream_t *stream, void *to, const void *from,
                           size_t bytes, dev_copy_kind_t kind, err_t *err)
{
    far_device_t *dev = ((far_stream_t *)stream)->dev;
    const far_copy_t copy = {to, from, bytes};

    if (bytes == 0)
        return ERR_OK;
    side_check(dev, to, bytes, kind != DEV_DEV_TO_HOST);
    side_check(dev, from, bytes, kind != DEV_HOST_TO_DEV);
    /* A host that reads before it has waited gets NaN. */
    if (kind == DEV_DEV_TO_HOST)
        memset(to, 0xff, bytes);
    return far_push(stream, "dev_copy", copy_run, &copy, sizeof copy, err);
}

typedef struct far_fill {
    void *to;
    int byte;
    size_t bytes;
} far_fill_t;

static err_code_t fill_run(void *arg, err_t *err)
{
    const far_fill_t *fill = arg;

    (void)err;
    memset(fill->to, fill->byte, fill->bytes);
    return ERR_OK;
}

static err_code_t far_fill(dev_stream_t *stream, void *to, int byte,
                           size_t bytes, err_t *err)
{
    const far_fill_t fill = {to, byte, bytes};

    if (bytes == 0)
        return ERR_OK;
    side_check(((far_stream_t *)stream)->dev, to, bytes, true);
    return far_push(stream, "dev_fill", fill_run, &fill, sizeof fill, err);
}

/* ---- events -------------------------------------------------------------- */

static err_code_t far_event_open(dev_device_t *base, dev_event_t **out,
                                 err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    far_event_t *event = NULL;
    err_code_t rc = call_begin(dev, "dev_event_open", err);

    if (rc == ERR_OK)
        rc = mem_new(far_event_t, 1, "a far event", &event, err);
    if (rc == ERR_OK) {
        event->dev = dev;
        *out = &event->base;
    }
    return call_end(dev, rc);
}

static void far_event_close(dev_event_t *base)
{
    far_event_t *event = (far_event_t *)base;

    check(event->mark.done == event->mark.asked,
          "an event is closed that was not waited for");
    mem_free(event);
}

static err_code_t far_event_record(dev_event_t *base, dev_stream_t *on,
                                   err_t *err)
{
    far_event_t *event = (far_event_t *)base;
    far_device_t *dev = event->dev;
    err_code_t rc = call_begin(dev, "dev_event_record", err);

    if (rc == ERR_OK)
        rc = far_queue_record(&dev->queue, &((far_stream_t *)on)->line,
                              &event->mark, err);
    return call_end(dev, rc);
}

static err_code_t far_event_wait(dev_event_t *base, err_t *err)
{
    far_event_t *event = (far_event_t *)base;

    return far_wait(event->dev, "dev_event_wait", NULL, &event->mark, err);
}

static err_code_t far_event_wait_on(dev_event_t *base, dev_stream_t *on,
                                    err_t *err)
{
    far_event_t *event = (far_event_t *)base;
    far_device_t *dev = event->dev;
    err_code_t rc = call_begin(dev, "dev_event_wait_on", err);

    if (rc == ERR_OK)
        rc = far_queue_await(&dev->queue, &((far_stream_t *)on)->line,
                             &event->mark, err);
    return call_end(dev, rc);
}

/* ---- for tests ----------------------------------------------------------- */

void dev_far_fail(dev_device_t *base, int64_t number)
{
    far_device_t *dev = (far_device_t *)base;

    pthread_mutex_lock(&dev->lock);
    dev->fail_at = number > 0 ? dev->counts.calls + number : 0;
    pthread_mutex_unlock(&dev->lock);
}

dev_far_counts_t dev_far_counts(dev_device_t *base)
{
    far_device_t *dev = (far_device_t *)base;
    dev_far_counts_t counts;

    pthread_mutex_lock(&dev->lock);
    counts = dev->counts;
    pthread_mutex_unlock(&dev->lock);
    return counts;
}

static const dev_ops_t dev_far_ops = {
    .name = "far",
    .host_visible = false,
    .open = far_open,
    .close = far_close,
    .alloc = far_alloc,
    .free = far_free,
    .stream_open = far_stream_open,
    .stream_close = far_stream_close,
    .stream_wait = far_stream_wait,
    .copy = far_copy,
    .fill = far_fill,
    .event_open = far_event_open,
    .event_close = far_event_close,
    .event_record = far_event_record,
    .event_wait = far_event_wait,
    .event_wait_on = far_event_wait_on,
};

/* In a program that links this file, this list replaces the one in registry.c.
 */
const dev_ops_t *const dev_registry[] = {
    &dev_cpu_ops,
    &dev_far_ops,
    NULL,
};
