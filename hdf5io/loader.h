/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * loader: hands my share of each step to the trainer, read ahead by a thread
 * (data.prefetch batches deep; 0, or MPI-IO: read in the caller). Epoch order:
 * step after step, epoch after epoch from a given start, until `last` is
 * passed. Buffers are allocated at open, none later.
 *
 * Thread rule: one consumer.
 */
#ifndef CDDP_HDF5IO_LOADER_H
#define CDDP_HDF5IO_LOADER_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/dataset.h"
#include "hdf5io/sampler.h"

typedef struct hdf5io_loader hdf5io_loader_t;

typedef struct hdf5io_loader_config {
    hdf5io_dataset_t *dataset; /* not owned */
    hdf5io_sampler_t *sampler; /* not owned; used by the loader alone */
    int prefetch;              /* batches read ahead, 0: none */
    int64_t epoch, step;       /* the first batch to deliver */
    int64_t epochs;            /* deliver epochs < epochs */
    int rank;                  /* for the thread's log lines */
} hdf5io_loader_config_t;

typedef struct hdf5io_batch {
    int64_t epoch, step;
    int64_t count;  /* my samples, may be 0 */
    int64_t global; /* samples of the step over all ranks */
    union {         /* float or int32 [count, elems]: the one there is, */
        void *input;
        void *inputs[HDF5IO_FIELDS_MAX]; /* or each */
    };
    union { /* int64 or float, the same */
        void *target;
        void *targets[HDF5IO_FIELDS_MAX];
    };
    uint64_t *sample_ids; /* [count] global sample numbers */
} hdf5io_batch_t;

err_code_t hdf5io_loader_open(const hdf5io_loader_config_t *config,
                              hdf5io_loader_t **out, err_t *err);

/* The next batch, valid until the next call; *out NULL after the last one.
 * Blocks until it is read. A read error surfaces here, in its place. */
err_code_t hdf5io_loader_next(hdf5io_loader_t *loader, hdf5io_batch_t **out,
                              err_t *err);

/* Stop and free; bounded by one read in flight. NULL allowed. */
void hdf5io_loader_close(hdf5io_loader_t *loader);

#endif
