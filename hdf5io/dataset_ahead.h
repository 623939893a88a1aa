/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset_ahead: reading ahead of use. What later batches need is known, so
 * their chunks are read and decoded into memory, as far as dataset's
 * config.cache_bytes allow, without giving up what an earlier batch needs. If
 * storage is slow, the system is told which samples will be read without the
 * pool, so that it reads many of them at the same time.
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
 * samples. [units]: this many units (units.h) are in use at a time, of which
 * all samples are read soon; 0: the order has no units. Not while the dataset
 * is read. */
void hdf5io_dataset_plan(hdf5io_dataset_t *dataset, int64_t most,
                         int64_t units);
/* All batches before [batch] have been read. */
void hdf5io_dataset_plan_done(hdf5io_dataset_t *dataset, int64_t batch);

/* Can reading ahead save time now? */
bool hdf5io_dataset_ahead_helps(hdf5io_dataset_t *dataset);

/* Read ahead what [batch] needs of samples index[count]. Returns how many of
 * them are done; fewer than [count] if memory is full. What cannot be read is
 * skipped: the read of the batch gives the error. Opens no shard if another one
 * would have to be closed for it. */
int64_t hdf5io_dataset_ahead(hdf5io_dataset_t *dataset, int64_t batch,
                             const int64_t *index, int64_t count);

#endif
