/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * trace: the traces of a run's threads (base/trace.h) as text in Chrome's trace
 * event format, which Perfetto and chrome://tracing show: a rank is a process,
 * its threads and buckets are the lines in it. Pure, but for the memory of the
 * text.
 */
#ifndef CDDP_OBS_TRACE_H
#define CDDP_OBS_TRACE_H

#include "base/str.h"
#include "base/trace.h"

typedef struct obs_trace_rank {
    int rank;
    const char *host;
    trace_t *const *threads; /* elements may be NULL */
    int count;
    double shift;  /* seconds to be added to the rank's instants */
    double origin; /* the instant that becomes 0, after the shift */
} obs_trace_rank_t;

/* The begin and the end of a file; between them come the events of all ranks,
 * in any order. [about] are members of a JSON object. */
void obs_trace_head(const char *about, str_buf_t *out);
void obs_trace_tail(str_buf_t *out);

/* Add the events of a rank, each with a comma before it. */
void obs_trace_events(const obs_trace_rank_t *rank, str_buf_t *out);

/* The earliest instant in the traces, before the shift; INFINITY: no span. */
double obs_trace_first(const obs_trace_rank_t *rank);

#endif
