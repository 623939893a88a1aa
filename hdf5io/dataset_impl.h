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

struct hdf5io_dataset {
    char *input_path, *target_path;
    float input_scale, input_shift;
    float target_scale, target_shift;
    bool target_is_class;
    int64_t classes, class_shift;
    bool ignore;
    int64_t ignored;
    int64_t tokens, token_shift;
    int64_t input_elems, target_elems;
    h5mpi_t *mpi;
    hid_t transfer; /* H5P_DEFAULT, or collective */
    hdf5io_shard_t *shards;
    int count;
    int64_t samples;
    uint64_t hash;
    size_t row_bytes; /* of the largest column */
    pthread_mutex_t lock;
    read_scratch_t *scratch; /* a list of those not in use; under the lock */
    _Atomic int64_t bytes_read;
};

/* Free the list of scratch. */
void hdf5io_read_scratch_free(read_scratch_t *scratch);

#endif
