/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/dev_far.h"

#include "base/check.h"
#include "base/mem.h"
#include "dev/far_device.h"

#define FAR_ROOM ((size_t)1 << 40)

/* global: a test cannot hand these to the code that opens the device */
static _Atomic(int64_t) fail_new[DEV_FAR_ORDERS];
/* global: see above */
static _Atomic(far_device_t *) newest;

bool far_capturing(const far_device_t *dev)
{
    return dev->capture.graph != NULL &&
           pthread_equal(dev->capture.thread, pthread_self());
}

err_code_t far_call_begin(far_device_t *dev, const char *what, err_t *err)
{
    pthread_mutex_lock(&dev->lock);
    if (++dev->counts.calls == dev->fail_at)
        return err_set(err, ERR_UNAVAILABLE, "far: %s failed (call %lld)", what,
                       (long long)dev->fail_at);
    return dev->failure.code == ERR_OK ? ERR_OK : err_copy(err, &dev->failure);
}

err_code_t far_call_plain(far_device_t *dev, const char *what, err_t *err)
{
    err_code_t rc = far_call_begin(dev, what, err);

    if (rc == ERR_OK && far_capturing(dev))
        rc = err_set(err, ERR_UNAVAILABLE,
                     "far: %s during the capture of a graph", what);
    return rc;
}

err_code_t far_call_end(far_device_t *dev, err_code_t rc)
{
    if (rc != ERR_OK && far_capturing(dev))
        dev->capture.failed = true;
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
    dev->room = FAR_ROOM;
    dev->fail_at = fail_new[index];
    newest = dev;
    *out = &dev->base;
    return ERR_OK;
}

static void far_close(dev_device_t *base)
{
    far_device_t *dev = (far_device_t *)base;

    check(dev->memory.blocks == NULL, "a device is closed, but not its memory");
    check(dev->queue.lines == NULL, "a device is closed, but not its streams");
    check(dev->pins == NULL, "a device is closed, but not its pinned memory");
    check(dev->capture.graph == NULL, "a device is closed in a capture");
    if (newest == dev)
        newest = NULL;
    far_queue_free(&dev->queue);
    pthread_mutex_destroy(&dev->lock);
    mem_free(dev);
}

static err_code_t far_list(dev_info_t *out, int room, int *count, err_t *err)
{
    (void)err;
    for (int i = 0; i < room && i < DEV_FAR_ORDERS; i++)
        out[i] = (dev_info_t){
            .index = i, .name = "a test double", .bytes = FAR_ROOM};
    *count = DEV_FAR_ORDERS;
    return ERR_OK;
}

/* ---- memory -------------------------------------------------------------- */

static err_code_t far_alloc(dev_device_t *base, size_t bytes, const char *what,
                            void **out, err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    err_code_t rc = far_call_plain(dev, "dev_alloc", err);

    dev->counts.allocs++;
    if (rc == ERR_OK && bytes > dev->room - dev->memory.bytes)
        rc = err_set(err, ERR_MEMORY,
                     "%zu bytes for %s: the far device has %zu free", bytes,
                     what, dev->room - dev->memory.bytes);
    if (rc == ERR_OK)
        rc = far_memory_map(&dev->memory, bytes, what, out, err);
    return far_call_end(dev, rc);
}

/* The frame of a call that returns no code: it is not counted, but fails a
 * capture. */
static void quiet_begin(far_device_t *dev)
{
    pthread_mutex_lock(&dev->lock);
    if (far_capturing(dev))
        dev->capture.failed = true;
}

static void far_free(dev_device_t *base, void *block)
{
    far_device_t *dev = (far_device_t *)base;

    quiet_begin(dev);
    far_memory_unmap(&dev->memory, block);
    far_call_end(dev, ERR_OK);
}

static err_code_t far_room(dev_device_t *base, size_t *free_bytes,
                           size_t *total_bytes, err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    err_code_t rc = far_call_begin(dev, "dev_room", err);

    if (rc == ERR_OK) {
        *free_bytes = dev->room - dev->memory.bytes;
        *total_bytes = dev->room;
    }
    return far_call_end(dev, rc);
}

static err_code_t pin_add(far_device_t *dev, const void *at, size_t bytes,
                          err_t *err)
{
    far_pin_t *pin = NULL;
    err_code_t rc = mem_new(far_pin_t, 1, "a pinned block", &pin, err);

    if (rc != ERR_OK)
        return rc;
    *pin = (far_pin_t){dev->pins, at, bytes};
    dev->pins = pin;
    return ERR_OK;
}

static void pin_remove(far_device_t *dev, const void *block)
{
    far_pin_t **at = &dev->pins, *pin;

    while (*at != NULL && (*at)->at != (const char *)block)
        at = &(*at)->next;
    pin = *at;
    check(pin != NULL, "%p is not pinned", block);
    if (pin == NULL)
        return;
    *at = pin->next;
    mem_free(pin);
}

static err_code_t far_pinned_alloc(dev_device_t *base, size_t bytes,
                                   const char *what, void **out, err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    void *block = NULL;
    err_code_t rc = far_call_plain(dev, "dev_pinned_alloc", err);

    dev->counts.allocs++;
    if (rc == ERR_OK)
        rc = mem_alloc(bytes, what, &block, err);
    if (rc == ERR_OK)
        rc = pin_add(dev, block, bytes, err);
    if (rc == ERR_OK)
        *out = block;
    else
        mem_free(block);
    return far_call_end(dev, rc);
}

static void far_unpin(dev_device_t *base, void *block)
{
    far_device_t *dev = (far_device_t *)base;

    quiet_begin(dev);
    pin_remove(dev, block);
    far_call_end(dev, ERR_OK);
}

static void far_pinned_free(dev_device_t *base, void *block)
{
    far_unpin(base, block);
    mem_free(block);
}

static err_code_t far_pin(dev_device_t *base, void *block, size_t bytes,
                          err_t *err)
{
    far_device_t *dev = (far_device_t *)base;
    err_code_t rc = far_call_plain(dev, "dev_pin", err);

    if (rc == ERR_OK)
        rc = pin_add(dev, block, bytes, err);
    return far_call_end(dev, rc);
}

/* ---- for tests ----------------------------------------------------------- */

void dev_far_fail(dev_device_t *base, int64_t number)
{
    far_device_t *dev = (far_device_t *)base;

    pthread_mutex_lock(&dev->lock);
    dev->fail_at = number > 0 ? dev->counts.calls + number : 0;
    pthread_mutex_unlock(&dev->lock);
}

void dev_far_fail_new(int index, int64_t number)
{
    fail_new[index] = number;
}

dev_device_t *dev_far_newest(void)
{
    far_device_t *dev = newest;

    return dev == NULL ? NULL : &dev->base;
}

void dev_far_room(dev_device_t *base, size_t bytes)
{
    far_device_t *dev = (far_device_t *)base;

    pthread_mutex_lock(&dev->lock);
    check(bytes >= dev->memory.bytes, "%zu bytes are in use",
          dev->memory.bytes);
    dev->room = bytes;
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
    .list = far_list,
    .alloc = far_alloc,
    .free = far_free,
    .room = far_room,
    .pinned_alloc = far_pinned_alloc,
    .pinned_free = far_pinned_free,
    .pin = far_pin,
    .unpin = far_unpin,
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
    .capture_begin = far_capture_begin,
    .capture_end = far_capture_end,
    .graph_launch = far_graph_launch,
    .graph_close = far_graph_close,
};

/* In a program that links this file, these lists replace those in registry.c.
 */
const char *const dev_choices[] = {"auto", DEV_HOST, "cuda", "far", NULL};

const dev_ops_t *const dev_registry[] = {
    &dev_cpu_ops,
    &dev_far_ops,
    NULL,
};
