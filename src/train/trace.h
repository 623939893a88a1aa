/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * trace: obs.trace. While the steps of obs.trace_steps are made, the threads of
 * every rank keep what they do when (base/trace.h). After the last of these
 * steps, rank 0 writes RUNDIR/trace.json (obs/trace.h). Changes no bit of the
 * run. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_TRACE_H
#define CDDP_TRAIN_TRACE_H

#include "base/trace.h"

typedef struct train_state train_state_t;

/* All zeros: off. */
typedef struct train_trace {
    int64_t first, last; /* the steps to be traced, from 1 */
    /* [count]: one for each team, then one for each thread that reads ahead,
     * then one for the thread that writes checkpoints, if there is one. The
     * first team is the training thread. NULL: off. */
    trace_t **threads;
    int count;
    double *room; /* scratch: [3 * ranks] */
    bool on;
} train_trace_t;

/* Allocate what obs.trace needs, before the loader and the execs are bound to
 * it, and before the first checkpoint; nothing if it is none. ERR_MEMORY.
 * train_trace_close frees it, also after a failure. Local. */
err_code_t train_trace_open(train_state_t *run, err_t *err);
void train_trace_close(train_trace_t *trace);

/* The trace of the training thread; NULL: there is none. */
static inline trace_t *train_trace_own(const train_trace_t *trace)
{
    return trace->threads == NULL ? NULL : trace->threads[0];
}

/* A step is about to begin: trace it, if it is one of those. */
void train_trace_step(train_state_t *run);

/* A step is done, with what follows it: write the file, if it was the last one
 * to be traced, or if training [ends]. A file that cannot be written is a
 * warning. Collective in these cases; blocks. */
err_code_t train_trace_done(train_state_t *run, bool ends, err_t *err);

#endif
