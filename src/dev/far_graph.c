/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/far_graph.h"

#include <string.h>

#include "base/mem.h"

struct far_kept_line {
    far_kept_line_t *next;
    far_line_t line;
};

struct far_kept_mark {
    far_kept_mark_t *next;
    far_mark_t mark;
};

struct far_target {
    far_target_t *next;
    void *to;
    size_t bytes;
};

err_code_t far_graph_new(dev_far_order_t order, far_graph_t **out, err_t *err)
{
    far_graph_t *graph = NULL;
    err_code_t rc = mem_new(far_graph_t, 1, "a far graph", &graph, err);

    if (rc != ERR_OK)
        return rc;
    graph->queue.order = order;
    *out = graph;
    return ERR_OK;
}

void far_graph_free(far_graph_t *graph)
{
    if (graph == NULL)
        return;
    for (far_kept_line_t *line = graph->lines, *next; line != NULL;
         line = next) {
        next = line->next;
        mem_free(line);
    }
    for (far_kept_mark_t *mark = graph->marks, *next; mark != NULL;
         mark = next) {
        next = mark->next;
        mem_free(mark);
    }
    for (far_target_t *target = graph->targets, *next; target != NULL;
         target = next) {
        next = target->next;
        mem_free(target);
    }
    far_queue_free(&graph->queue);
    mem_free(graph);
}

err_code_t far_graph_line(far_graph_t *graph, far_line_t **out, err_t *err)
{
    far_kept_line_t *kept = NULL;
    err_code_t rc =
        mem_new(far_kept_line_t, 1, "a stream of a graph", &kept, err);

    if (rc != ERR_OK)
        return rc;
    kept->next = graph->lines;
    graph->lines = kept;
    far_queue_add(&graph->queue, &kept->line);
    *out = &kept->line;
    return ERR_OK;
}

err_code_t far_graph_mark(far_graph_t *graph, far_mark_t **out, err_t *err)
{
    far_kept_mark_t *kept = NULL;
    err_code_t rc =
        mem_new(far_kept_mark_t, 1, "an event of a graph", &kept, err);

    if (rc != ERR_OK)
        return rc;
    kept->next = graph->marks;
    graph->marks = kept;
    *out = &kept->mark;
    return ERR_OK;
}

err_code_t far_graph_target(far_graph_t *graph, void *to, size_t bytes,
                            err_t *err)
{
    far_target_t *target = NULL;
    err_code_t rc = mem_new(far_target_t, 1, "a copy of a graph", &target, err);

    if (rc != ERR_OK)
        return rc;
    *target = (far_target_t){graph->targets, to, bytes};
    graph->targets = target;
    return ERR_OK;
}

void far_graph_poison(const far_graph_t *graph)
{
    for (const far_target_t *target = graph->targets; target != NULL;
         target = target->next)
        memset(target->to, 0xff, target->bytes);
}
