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
    const char *shares;
    hdf5io_sum_t sums[HDF5IO_SUMS_MAX];
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
    hdf5io_shard_config_t how; /* they are opened; access is owned */
    retry_t retry;
    size_t cache_max, cached; /* bytes of the shards that are open */
    int open_max, open_count; /* and how many these are */
    uint64_t uses;            /* counts */
    int64_t samples;
    size_t row_bytes; /* of the largest column */
    pthread_mutex_t lock;
    read_scratch_t *scratch; /* a list of those not in use; under the lock */
    unsigned char *touched; /* mpi: the shards of the read under way, [count] */
    _Atomic int64_t bytes_read;
    _Atomic int64_t shards_read;
};

/* Work on an open shard; if it returns ERR_IO, errno says why. */
typedef err_code_t (*dataset_work_t)(void *context, err_t *err);

/* Open [shard], do [work], and both again where storage refuses. Without the
 * lock; with mpi, just do it. */
err_code_t hdf5io_dataset_use(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                              dataset_work_t work, void *context, err_t *err);

/* Close the shard that was used longest ago, of those that nobody reads; false:
 * there is none. Lock held, or the dataset is not shared yet. */
bool hdf5io_dataset_rest_oldest(hdf5io_dataset_t *dataset);

/* Read rows of one column of a shard that way, as hdf5io_column_read does. */
typedef struct dataset_rows {
    hdf5io_dataset_t *dataset;
    hdf5io_shard_t *shard;
    int column;
    const column_run_t *runs;
    int64_t count;
    void *out;
} dataset_rows_t;

err_code_t hdf5io_dataset_rows(dataset_rows_t *rows, err_t *err);

/* The shard [last] has been opened: close those that were used longest ago
 * while the caches of all are too large, or files are few. Lock held, or the
 * dataset is not shared yet. */
void hdf5io_dataset_trim(hdf5io_dataset_t *dataset, const hdf5io_shard_t *last);

/* Open together what each rank has opened for itself. A rank that could not go
 * on would leave the others waiting, and so would one that sees other files:
 * so they agree first. [code] is what became of this rank; [dataset] is not
 * looked at if that is an error. ERR_DATA: ranks differ. Collective. */
err_code_t hdf5io_dataset_join(hdf5io_dataset_t *dataset, h5mpi_t *mpi,
                               err_code_t code, err_t *err);

/* Free the list of scratch. */
void hdf5io_read_scratch_free(read_scratch_t *scratch);

#endif
