/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * far_graph: the operations of a captured graph of the device "far"
 * (dev_far.h), kept in a queue of their own, which is executed at each launch.
 *
 * Thread rule: the caller holds the device's lock.
 */
#ifndef CDDP_DEV_FAR_GRAPH_H
#define CDDP_DEV_FAR_GRAPH_H

#include "dev/dev_ops.h"
#include "dev/far_queue.h"

typedef struct far_kept_line far_kept_line_t;
typedef struct far_kept_mark far_kept_mark_t;
typedef struct far_target far_target_t;

typedef struct far_graph {
    dev_graph_t base;
    far_queue_t queue;
    /* Lists: streams, events, and host memory that the graph writes. */
    far_kept_line_t *lines;
    far_kept_mark_t *marks;
    far_target_t *targets;
} far_graph_t;

err_code_t far_graph_new(dev_far_order_t order, far_graph_t **out, err_t *err);
/* NULL allowed. */
void far_graph_free(far_graph_t *graph);

/* A new stream, and a new event, in the graph, which owns them. */
err_code_t far_graph_line(far_graph_t *graph, far_line_t **out, err_t *err);
err_code_t far_graph_mark(far_graph_t *graph, far_mark_t **out, err_t *err);
/* The graph copies to these bytes of the host. */
err_code_t far_graph_target(far_graph_t *graph, void *to, size_t bytes,
                            err_t *err);

/* Fill all targets with NaN: what a host reads after a launch and before its
 * wait. */
void far_graph_poison(const far_graph_t *graph);

#endif
