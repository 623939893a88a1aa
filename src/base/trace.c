/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/trace.h"

#include <stdio.h>

#include "base/mem.h"

err_code_t trace_open(const char *name, size_t room, trace_t **out, err_t *err)
{
    trace_t *trace = NULL;
    err_code_t rc = mem_new(trace_t, 1, "a trace", &trace, err);

    if (rc != ERR_OK)
        return rc;
    rc = mem_new(trace_span_t, room, "a trace", &trace->spans, err);
    if (rc != ERR_OK) {
        trace_close(trace);
        return rc;
    }
    snprintf(trace->name, sizeof trace->name, "%s", name);
    trace->room = room;
    *out = trace;
    return ERR_OK;
}

void trace_close(trace_t *trace)
{
    if (trace == NULL)
        return;
    mem_free(trace->spans);
    mem_free(trace);
}

void trace_switch(trace_t *trace, bool on)
{
    if (trace != NULL)
        atomic_store_explicit(&trace->on, on, memory_order_relaxed);
}

void trace_add(trace_t *trace, const trace_span_t *span)
{
    const size_t count =
        atomic_load_explicit(&trace->count, memory_order_relaxed);

    if (count == trace->room) {
        atomic_fetch_add_explicit(&trace->lost, 1, memory_order_relaxed);
        return;
    }
    trace->spans[count] = *span;
    /* Whoever reads the new count sees the span. */
    atomic_store_explicit(&trace->count, count + 1, memory_order_release);
}

size_t trace_count(const trace_t *trace)
{
    return atomic_load_explicit(&trace->count, memory_order_acquire);
}
