/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What dataset.c (opening) and dataset_read.c (reading) share. */
#ifndef CDDP_HDF5IO_DATASET_IMPL_H
#define CDDP_HDF5IO_DATASET_IMPL_H

#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hdf5io/dataset.h"
#include "hdf5io/shard.h"

/* What one read in progress needs. Kept and used again, so that after the
 * first batches nothing is allocated. */
typedef struct read_scratch read_scratch_t;

/* How one field is read. */
typedef struct dataset_field {
    char *path, *place; /* place: see hdf5io_want_t; may be NULL */
    hdf5io_as_t as;
    float scale, shift;
    int64_t whole; /* shift of tokens and classes */
    int64_t limit, ignored;
    bool ignore;
    int64_t elems;
} dataset_field_t;

#define DATASET_FIELDS_MAX (2 * HDF5IO_FIELDS_MAX)

struct hdf5io_dataset {
    dataset_field_t fields[DATASET_FIELDS_MAX]; /* inputs, then targets */
    int inputs, field_count;
    h5mpi_t *mpi;
    hid_t transfer; /* H5P_DEFAULT, or collective */
    hdf5io_shard_t *shards;
    int count;
    int64_t samples;
    size_t row_bytes; /* of the largest column */
    pthread_mutex_t lock;
    read_scratch_t *scratch; /* a list of those not in use; under the lock */
    unsigned char *touched; /* mpi: the shards of the read under way, [count] */
    _Atomic int64_t bytes_read;
    _Atomic int64_t shards_read;
};

/* Free the list of scratch. */
void hdf5io_read_scratch_free(read_scratch_t *scratch);

#endif
