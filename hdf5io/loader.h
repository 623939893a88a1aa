/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * loader: delivers this rank's share of each step. Threads read data.prefetch
 * batches ahead, each thread one batch at a time, and chunks of later batches
 * (dataset_ahead.h); with 0, or with MPI-IO, batches are read in the caller.
 * Steps are delivered in order, epoch after epoch from a given start, up to
 * config.epochs. The number of threads changes neither the bits of a batch nor
 * which error is returned. All buffers are allocated at open.
 *
 * Thread rule: one consumer.
 */
#ifndef CDDP_HDF5IO_LOADER_H
#define CDDP_HDF5IO_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/dataset.h"
#include "hdf5io/sampler.h"

typedef struct hdf5io_loader hdf5io_loader_t;

typedef struct hdf5io_loader_config {
    hdf5io_dataset_t *dataset; /* not owned */
    hdf5io_sampler_t *sampler; /* not owned; only the loader uses it */
    int prefetch;              /* batches read ahead, 0: none */
    int threads; /* that read them; 0: one. No more than [prefetch] are used */
    int kept;    /* earlier batches that stay valid beside the newest one */
    int64_t epoch, step; /* the first batch to deliver */
    int64_t epochs;      /* [epoch, epochs) are delivered */
    bool augment;        /* crop and mirror at random (hdf5io_draw_t) */
    uint64_t seed;       /* of [augment] */
    int rank;            /* for the thread's log lines */
} hdf5io_loader_config_t;

typedef struct hdf5io_batch {
    int64_t epoch, step;
    int64_t count;  /* samples of this rank, may be 0 */
    int64_t global; /* samples of the step over all ranks */
    union { /* float or int32 [count, elems]: the only input, or each one */
        void *input;
        void *inputs[HDF5IO_FIELDS_MAX];
    };
    union { /* int64 or float [count, elems]: the only target, or each one */
        void *target;
        void *targets[HDF5IO_FIELDS_MAX];
    };
    uint64_t *sample_ids; /* [count] global sample numbers */
} hdf5io_batch_t;

/* Allocate the buffers and start the threads, which begin to read. A step
 * behind the last one of its epoch counts as the start of the next epoch.
 * ERR_MEMORY. Local. */
err_code_t hdf5io_loader_open(const hdf5io_loader_config_t *config,
                              hdf5io_loader_t **out, err_t *err);

/* Get the next batch, which is valid until the next call, or config.kept calls
 * longer. *out is NULL after the last one. Blocks until the batch is read. A
 * read error is returned in place of its batch, and again by later calls. */
err_code_t hdf5io_loader_next(hdf5io_loader_t *loader, hdf5io_batch_t **out,
                              err_t *err);

/* The memory of all batches, of [*bytes] bytes. */
void *hdf5io_loader_memory(const hdf5io_loader_t *loader, size_t *bytes);

/* hdf5io_loader_close shall not free that memory, because something else may
 * still read it. It stays allocated until the process ends. */
void hdf5io_loader_memory_keep(hdf5io_loader_t *loader);

/* Stop the threads, and free the loader. Each thread first ends the batch or
 * the few chunks that it is reading. NULL allowed. */
void hdf5io_loader_close(hdf5io_loader_t *loader);

#endif
