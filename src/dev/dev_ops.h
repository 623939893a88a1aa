/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The function table of a device backend. dev.c forwards every call of dev.h to
 * it, with the same contracts. All functions but those of graphs and those with
 * a remark are mandatory.
 * A backend has dev_device_t, dev_stream_t, dev_event_t and dev_graph_t as the
 * first member of its own structs; dev.c fills their fields.
 */
#ifndef CDDP_DEV_DEV_OPS_H
#define CDDP_DEV_DEV_OPS_H

#include "dev/dev.h"
#include "dev/dev_links.h"

typedef struct dev_ops {
    const char *name; /* the name for dev_open */
    bool host_visible;
    bool lost; /* the table of a device that was given up */

    err_code_t (*open)(int index, dev_device_t **out, err_t *err);
    void (*close)(dev_device_t *dev);
    err_code_t (*list)(dev_info_t *out, int room, int *count, err_t *err);
    /* (optional) NULL: the backend knows no links. */
    err_code_t (*links)(int index, dev_links_t *out, err_t *err);

    err_code_t (*alloc)(dev_device_t *dev, size_t bytes, const char *what,
                        void **out, err_t *err);
    void (*free)(dev_device_t *dev, void *block);
    err_code_t (*room)(dev_device_t *dev, size_t *free_bytes,
                       size_t *total_bytes, err_t *err);

    err_code_t (*pinned_alloc)(dev_device_t *dev, size_t bytes,
                               const char *what, void **out, err_t *err);
    void (*pinned_free)(dev_device_t *dev, void *block);
    err_code_t (*pin)(dev_device_t *dev, void *block, size_t bytes, err_t *err);
    void (*unpin)(dev_device_t *dev, void *block);

    err_code_t (*stream_open)(dev_device_t *dev, dev_stream_kind_t kind,
                              dev_stream_t **out, err_t *err);
    void (*stream_close)(dev_stream_t *stream);
    /* (optional) NULL: dev_stream_handle returns NULL. */
    void *(*stream_handle)(const dev_stream_t *stream);
    err_code_t (*stream_wait)(dev_stream_t *stream, err_t *err);
    /* (optional) NULL: dev_stream_wait_or calls stream_wait. */
    err_code_t (*stream_wait_or)(dev_stream_t *stream, dev_look_fn *look,
                                 void *context, err_t *err);
    err_code_t (*copy)(dev_stream_t *stream, void *to, const void *from,
                       size_t bytes, dev_copy_kind_t kind, err_t *err);
    err_code_t (*fill)(dev_stream_t *stream, void *to, int byte, size_t bytes,
                       err_t *err);

    err_code_t (*event_open)(dev_device_t *dev, dev_event_t **out, err_t *err);
    void (*event_close)(dev_event_t *event);
    err_code_t (*event_record)(dev_event_t *event, dev_stream_t *stream,
                               err_t *err);
    err_code_t (*event_wait)(dev_event_t *event, err_t *err);
    /* (optional) If [look] ends the wait, this abandons the device. NULL:
     * dev_event_wait calls event_wait. */
    err_code_t (*event_wait_or)(dev_event_t *event, dev_look_fn *look,
                                void *context, err_t *err);
    err_code_t (*event_wait_on)(dev_event_t *event, dev_stream_t *stream,
                                err_t *err);

    /* NULL, all four: the device cannot capture. */
    err_code_t (*capture_begin)(dev_stream_t *stream, err_t *err);
    err_code_t (*capture_end)(dev_stream_t *stream, dev_graph_t **out,
                              err_t *err);
    err_code_t (*graph_launch)(dev_graph_t *graph, dev_stream_t *stream,
                               err_t *err);
    void (*graph_close)(dev_graph_t *graph);
} dev_ops_t;

struct dev_device {
    const dev_ops_t *_Atomic ops;
    dev_look_fn *look; /* set by dev_watch; NULL: none */
    void *context;
};

struct dev_stream {
    dev_device_t *dev;
};

struct dev_event {
    dev_device_t *dev;
};

struct dev_graph {
    dev_device_t *dev;
};

/* The table of a device that was given up. The plugin has a copy of its own. */
extern const dev_ops_t dev_lost_ops;

/* Backends, one per file; registry.c lists those that were built in. "cuda" is
 * in a plugin (dev_plugin.h). */
extern const dev_ops_t dev_cpu_ops;

/* The registry; it ends with NULL. */
extern const dev_ops_t *const dev_registry[];

#endif
