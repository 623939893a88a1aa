/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The CPU as a device: memory is host memory, and operations on a stream are
 * executed at once by the caller. So streams have nothing pending, and events
 * are always complete.
 */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "dev/dev_ops.h"

static size_t memory_bytes(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static err_code_t dev_cpu_open(int index, dev_device_t **out, err_t *err)
{
    err_code_t rc;
    dev_device_t *dev = NULL;

    if (index != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "the cpu backend has one device, index 0, "
                       "but index %d was asked for",
                       index);
    rc = mem_new(dev_device_t, 1, "the cpu device", &dev, err);
    if (rc == ERR_OK)
        *out = dev;
    return rc;
}

static void dev_cpu_close(dev_device_t *dev)
{
    mem_free(dev);
}

static err_code_t dev_cpu_list(dev_info_t *out, int room, int *count,
                               err_t *err)
{
    (void)err;
    if (room > 0) {
        *out = (dev_info_t){.name = "this machine's processors"};
        out->bytes = memory_bytes();
    }
    *count = 1;
    return ERR_OK;
}

static err_code_t dev_cpu_alloc(dev_device_t *dev, size_t bytes,
                                const char *what, void **out, err_t *err)
{
    (void)dev;
    return mem_alloc(bytes, what, out, err);
}

static void dev_cpu_free(dev_device_t *dev, void *block)
{
    (void)dev;
    mem_free(block);
}

static err_code_t dev_cpu_room(dev_device_t *dev, size_t *free_bytes,
                               size_t *total_bytes, err_t *err)
{
    (void)dev;
    (void)err;
    *total_bytes = memory_bytes();
    *free_bytes = *total_bytes;
    return ERR_OK;
}

static err_code_t dev_cpu_pin(dev_device_t *dev, void *block, size_t bytes,
                              err_t *err)
{
    (void)dev;
    (void)block;
    (void)bytes;
    (void)err;
    return ERR_OK;
}

static void dev_cpu_unpin(dev_device_t *dev, void *block)
{
    (void)dev;
    (void)block;
}

static err_code_t dev_cpu_stream_open(dev_device_t *dev, dev_stream_kind_t kind,
                                      dev_stream_t **out, err_t *err)
{
    dev_stream_t *stream = NULL;
    err_code_t rc = mem_new(dev_stream_t, 1, "a cpu stream", &stream, err);

    (void)dev;
    (void)kind;
    if (rc == ERR_OK)
        *out = stream;
    return rc;
}

static void dev_cpu_stream_close(dev_stream_t *stream)
{
    mem_free(stream);
}

static err_code_t dev_cpu_stream_wait(dev_stream_t *stream, err_t *err)
{
    (void)stream;
    (void)err;
    return ERR_OK;
}

static err_code_t dev_cpu_copy(dev_stream_t *stream, void *to, const void *from,
                               size_t bytes, dev_copy_kind_t kind, err_t *err)
{
    (void)stream;
    (void)kind; /* host and device memory are the same */
    (void)err;
    if (bytes > 0)
        memmove(to, from, bytes);
    return ERR_OK;
}

static err_code_t dev_cpu_fill(dev_stream_t *stream, void *to, int byte,
                               size_t bytes, err_t *err)
{
    (void)stream;
    (void)err;
    if (bytes > 0)
        memset(to, byte, bytes);
    return ERR_OK;
}

static err_code_t dev_cpu_event_open(dev_device_t *dev, dev_event_t **out,
                                     err_t *err)
{
    dev_event_t *event = NULL;
    err_code_t rc = mem_new(dev_event_t, 1, "a cpu event", &event, err);

    (void)dev;
    if (rc == ERR_OK)
        *out = event;
    return rc;
}

static void dev_cpu_event_close(dev_event_t *event)
{
    mem_free(event);
}

static err_code_t dev_cpu_event_record(dev_event_t *event, dev_stream_t *stream,
                                       err_t *err)
{
    (void)event;
    (void)stream;
    (void)err;
    return ERR_OK;
}

static err_code_t dev_cpu_event_wait(dev_event_t *event, err_t *err)
{
    (void)event;
    (void)err;
    return ERR_OK;
}

static err_code_t dev_cpu_event_wait_on(dev_event_t *event,
                                        dev_stream_t *stream, err_t *err)
{
    (void)event;
    (void)stream;
    (void)err;
    return ERR_OK;
}

const dev_ops_t dev_cpu_ops = {
    .name = DEV_HOST,
    .host_visible = true,
    .open = dev_cpu_open,
    .close = dev_cpu_close,
    .list = dev_cpu_list,
    .alloc = dev_cpu_alloc,
    .free = dev_cpu_free,
    .room = dev_cpu_room,
    .pinned_alloc = dev_cpu_alloc,
    .pinned_free = dev_cpu_free,
    .pin = dev_cpu_pin,
    .unpin = dev_cpu_unpin,
    .stream_open = dev_cpu_stream_open,
    .stream_close = dev_cpu_stream_close,
    .stream_wait = dev_cpu_stream_wait,
    .copy = dev_cpu_copy,
    .fill = dev_cpu_fill,
    .event_open = dev_cpu_event_open,
    .event_close = dev_cpu_event_close,
    .event_record = dev_cpu_event_record,
    .event_wait = dev_cpu_event_wait,
    .event_wait_on = dev_cpu_event_wait_on,
};
