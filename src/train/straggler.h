/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * straggler: every obs.every seconds the ranks tell each other their loads.
 * Rank 0 names the ranks that make the others wait (obs/straggler.h), and
 * writes what each rank needed to metrics.jsonl (obs/ranks.h). Rank 0's clock
 * decides when: a flag in the tail of a step tells it to all ranks (flags.c),
 * so no step has a collective more. Changes no bit of the run. Thread rule: one
 * thread.
 */
#ifndef CDDP_TRAIN_STRAGGLER_H
#define CDDP_TRAIN_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "hdf5io/loader.h"
#include "obs/metrics.h"
#include "obs/ranks.h"
#include "obs/straggler.h"

typedef struct train_state train_state_t;

/* All zeros: off, as with one rank or in a benchmark. */
typedef struct train_straggler {
    double every;    /* seconds of a window; 0: off */
    bool looked;     /* the first window, which is shorter, is over */
    double begun;    /* instant at which the window began; INFINITY: not yet */
    int64_t steps;   /* of this window */
    obs_load_t sums; /* of this rank over these steps */
    obs_load_t before; /* what the kernel had counted when the window began */
    int *hosts;        /* [ranks]: the number of a rank's host */
    int *leads;        /* [ranks]: leads[h] is the first rank on host h */
    int host_count;
    obs_load_t *all;        /* [ranks] */
    double *sorted;         /* scratch: [ranks] */
    double *links;          /* [ranks]: links[h] is of host h */
    obs_straggler_t *judge; /* open on rank 0, else NULL */
    obs_ranks_t *ranks;     /* likewise; also NULL above OBS_RANKS_MAX ranks */
} train_straggler_t;

/* Allocate what a run on several ranks needs; nothing for one rank. ERR_MEMORY.
 * train_straggler_close frees it, also after a failure. Local. */
err_code_t train_straggler_open(train_state_t *run, err_t *err);
void train_straggler_close(train_straggler_t *straggler);

/* Begin the first window: after the first step of this life, which takes longer
 * than others. */
void train_straggler_begin(train_state_t *run);

/* A step has made [row]; [batch] are this rank's samples. Allocates nothing. */
void train_straggler_step(train_state_t *run, const hdf5io_batch_t *batch,
                          const obs_step_t *row);

/* Is the window over at the instant [now]? The first one lasts 10 s at most, so
 * that a short run has one, too. */
bool train_straggler_due(const train_straggler_t *straggler, double now);

/* The window is over on all ranks: exchange its loads, name who is slow, record
 * from time to time what each rank needed, and begin the next window. ERR_PEER.
 * Collective; blocks. */
err_code_t train_straggler_look(train_state_t *run, err_t *err);

/* The run ends: record the windows that are not recorded yet. Local. */
void train_straggler_end(train_state_t *run);

#endif
