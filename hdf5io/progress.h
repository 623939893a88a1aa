/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* progress: the numbers of a checkpoint beside its tensors: where a run is. */
#ifndef CDDP_HDF5IO_PROGRESS_H
#define CDDP_HDF5IO_PROGRESS_H

#include <stdint.h>

#include "hdf5io/order.h"

/* Samples that a run leaves out, as training diverged in their step. */
typedef struct hdf5io_skip {
    int64_t epoch, first, count; /* first: position in the epoch's order */
} hdf5io_skip_t;

#define HDF5IO_SKIPS_MAX 64
#define HDF5IO_LOSSES_MAX 200

/* Numbers that make a resume exact. They are stored in the manifest. */
typedef struct hdf5io_progress {
    int64_t step;    /* steps done */
    int64_t updates; /* of the parameters: none in a step without any target */
    int64_t epoch;   /* epoch in progress, from 0 */
    int64_t samples; /* of that epoch, used by all ranks together */
    int64_t epoch_step;   /* steps done in that epoch */
    int64_t data_samples; /* in an epoch; 0: unknown */
    hdf5io_order_t order; /* of that epoch */
    uint64_t seed;
    double loss_sum; /* of that epoch so far, for exact means in reports */
    int64_t loss_count;
    int64_t correct;
    double best; /* best validation accuracy so far, -1: none */
    /* State of a learning-rate schedule that watches a metric. */
    struct {
        double best;
        int64_t step;                  /* of the last value seen, 0: none */
        int64_t seen, bad, rest, cuts; /* as in optim_watch_t */
    } watch;
    hdf5io_skip_t skips[HDF5IO_SKIPS_MAX]; /* [skip_count], one per rollback */
    int64_t skip_count;
    double losses[HDF5IO_LOSSES_MAX]; /* of the last steps, oldest first */
    int64_t loss_recent;              /* number of losses; 0: not watched */
} hdf5io_progress_t;

#endif
