/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset_ahead: reads ahead of use. The samples of later batches are known.
 * Their chunks are read and decoded into the pool, as far as cache_bytes of
 * hdf5io_dataset_config_t allows. No chunk that an earlier batch needs is given
 * up for that. If storage is slow, the system is told which samples will be
 * read without the pool, so that it can read many of them at the same time.
 *
 * Batches are numbered from 1 in the order in which they are used. One plan at
 * a time.
 *
 * Thread rule: any thread, except hdf5io_dataset_plan.
 */
#ifndef CDDP_HDF5IO_DATASET_AHEAD_H
#define CDDP_HDF5IO_DATASET_AHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hdf5io/dataset.h"

/* A power of two. */
#define AHEAD_TOLD ((size_t)1024)

/* Internal to the files dataset_*.c: what a dataset knows of its plan. */
typedef struct ahead_state {
    bool fills;           /* chunks are decoded ahead */
    bool units;           /* the system is told of whole units */
    int64_t most;         /* batches that may be read ahead */
    _Atomic int64_t done; /* the first batch that is not done */
    struct ahead_told {   /* units of which the system was told; under the
                             lock of the dataset */
        uint64_t key;
        int64_t batch;
    } told[AHEAD_TOLD];
} ahead_state_t;

/* Begin a plan: no batch is known to need anything. A batch has at most [most]
 * samples. [units]: number of units (units.h) in use at a time, all of whose
 * samples are read soon; 0: the order has no units. Not while the dataset is
 * read. */
void hdf5io_dataset_plan(hdf5io_dataset_t *dataset, int64_t most,
                         int64_t units);
/* All batches before [batch] have been read. */
void hdf5io_dataset_plan_done(hdf5io_dataset_t *dataset, int64_t batch);

/* Can reading ahead save time now? */
bool hdf5io_dataset_ahead_helps(hdf5io_dataset_t *dataset);

/* Read the samples index[count] of [batch] ahead. Returns how many of them are
 * done: fewer than [count] if memory is full. A sample that cannot be read is
 * skipped: the read of the batch gives the error. A shard is not opened if
 * another one would have to be closed for it. */
int64_t hdf5io_dataset_ahead(hdf5io_dataset_t *dataset, int64_t batch,
                             const int64_t *index, int64_t count);

#endif
