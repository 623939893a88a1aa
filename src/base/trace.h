/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * trace: what a thread does when, as spans of time. Code that is traced has a
 * pointer to the trace of its thread, which is NULL in a run that traces
 * nothing:
 *
 *     const double begin = trace_begin(trace);
 *     work();
 *     trace_end(trace, begin, "work", NULL, TRACE_NO_NUMBER);
 *
 * Spans of one track are nested or apart. All memory is allocated at open; when
 * it is full, further spans are only counted.
 *
 * Thread rule: one thread adds spans. Another thread may switch the trace on
 * and off, and read those spans that trace_count counts.
 */
#ifndef CDDP_BASE_TRACE_H
#define CDDP_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define TRACE_NO_NUMBER (-1)

typedef struct trace_span {
    double begin, end; /* instants of clock.h */
    const char *name;  /* not owned */
    const char *what;  /* kind of work, not owned; NULL: [name] is enough */
    int64_t number;    /* of a step or bucket; TRACE_NO_NUMBER: none */
    int32_t track;     /* 0: the thread itself; others: see trace_add */
} trace_span_t;

typedef struct trace {
    char name[24]; /* of the thread */
    size_t room;
    trace_span_t *spans; /* [room] */
    atomic_size_t count; /* spans that are complete */
    atomic_size_t lost;  /* spans that came when all was full */
    atomic_bool on;
} trace_t;

/* Open a trace of up to [room] spans, which is off. ERR_MEMORY. */
err_code_t trace_open(const char *name, size_t room, trace_t **out, err_t *err);
void trace_close(trace_t *trace); /* NULL allowed */

/* NULL allowed for [trace]. */
void trace_switch(trace_t *trace, bool on);

/* Add a span. [track]: 0, or the number of another line in the picture, for
 * work that goes on beside that of the thread. Allocates nothing. */
void trace_add(trace_t *trace, const trace_span_t *span);

/* The number of spans that may be read. */
size_t trace_count(const trace_t *trace);

/* The instant at which a span begins; negative: nothing is traced. */
static inline double trace_begin(const trace_t *trace)
{
    return trace != NULL &&
                   atomic_load_explicit(&trace->on, memory_order_relaxed)
               ? clock_now()
               : -1;
}

/* The span that began at [begin] ends now. */
static inline void trace_end(trace_t *trace, double begin, const char *name,
                             const char *what, int64_t number)
{
    if (begin >= 0)
        trace_add(trace, &(trace_span_t){.begin = begin,
                                         .end = clock_now(),
                                         .name = name,
                                         .what = what,
                                         .number = number});
}

#endif
