/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sampler: which samples each step takes, and which of them are mine. A pure
 * function of (seed, epoch, step, rank, size): every rank knows the whole plan,
 * so nobody waits for a collective that another will not enter. Sample p of the
 * epoch's order belongs to step p / batch; a step's samples are dealt to ranks
 * in contiguous runs (rank r has [n r / size, n (r+1) / size)), so the last
 * step may be short and some ranks may have none. With a grain g > 1 whole runs
 * of g samples are dealt instead of samples (the step's last run may be short),
 * so that the cut into runs does not depend on the number of ranks.
 *
 * Shuffles: none (file order), full (one permutation of all samples, by
 * Fisher-Yates over the counter generator), chunk (see below).
 * Thread rule: steps and shares are constant once opened, for any thread;
 * epoch_set and index belong to one thread (the loader's).
 */
#ifndef CDDP_HDF5IO_SAMPLER_H
#define CDDP_HDF5IO_SAMPLER_H

#include <stdint.h>

#include "base/err.h"

typedef struct hdf5io_sampler hdf5io_sampler_t;

typedef enum hdf5io_shuffle {
    HDF5IO_SHUFFLE_NONE,
    HDF5IO_SHUFFLE_CHUNK, /* chunks of 256 consecutive samples are permuted, and
                             samples inside a window of 64 chunks: large reads,
                             and 4 bytes of memory for 256 samples */
    HDF5IO_SHUFFLE_FULL   /* all samples: 4 bytes of memory each */
} hdf5io_shuffle_t;

typedef struct hdf5io_sampler_config {
    int64_t samples; /* in the dataset */
    int64_t batch;   /* global batch of a step */
    int rank, size;
    int64_t grain; /* samples that stay together; 0 means 1 */
    hdf5io_shuffle_t shuffle;
    uint64_t seed;
} hdf5io_sampler_config_t;

/* One rank's share of one step. */
typedef struct hdf5io_share {
    int64_t first;  /* position of my first sample in the epoch's order */
    int64_t count;  /* my samples, may be 0 */
    int64_t global; /* samples of the step over all ranks */
} hdf5io_share_t;

err_code_t hdf5io_sampler_open(const hdf5io_sampler_config_t *config,
                               hdf5io_sampler_t **out, err_t *err);
void hdf5io_sampler_close(hdf5io_sampler_t *sampler);

/* Steps of an epoch: ceil(samples / batch). */
int64_t hdf5io_sampler_steps(const hdf5io_sampler_t *sampler);

/* Prepare the order of [epoch] (from 0). */
void hdf5io_sampler_epoch_set(hdf5io_sampler_t *sampler, int64_t epoch);

/* My share of step [step] (from 0), or that of any rank. Pure. */
hdf5io_share_t hdf5io_sampler_share(const hdf5io_sampler_t *sampler,
                                    int64_t step);
hdf5io_share_t hdf5io_sampler_share_of(const hdf5io_sampler_t *sampler,
                                       int64_t step, int rank);

/* The most samples that my share of any step can have. */
int64_t hdf5io_sampler_share_max(const hdf5io_sampler_t *sampler);

/* Global sample numbers at positions [first, first + count) of the order; the
 * answer depends on nothing but the configuration and the epoch. */
void hdf5io_sampler_index(hdf5io_sampler_t *sampler, int64_t first,
                          int64_t count, int64_t *index);

#endif
