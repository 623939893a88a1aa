/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to the files dataset_*.c and digest.c. */
#ifndef CDDP_HDF5IO_DATASET_IMPL_H
#define CDDP_HDF5IO_DATASET_IMPL_H

#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hdf5io/dataset.h"
#include "hdf5io/dataset_ahead.h"
#include "hdf5io/shard.h"
#include "hdf5io/shard_alike.h"
#include "hdf5io/transform.h"

/* Buffers of one read in progress. They are reused, so that after the first
 * batches nothing is allocated. */
typedef struct read_scratch read_scratch_t;

/* How one field is read. */
typedef struct dataset_field {
    char *path, *place; /* [place]: see hdf5io_want_t; may be NULL */
    hdf5io_as_t as;
    hdf5io_transform_t transform; /* of class numbers only the crop is used */
    int64_t whole;                /* shift of tokens and class numbers */
    int64_t limit, ignored;
    bool ignore;
    const char *shares;
    hdf5io_sum_t sums[HDF5IO_SUMS_MAX];
    int64_t elems; /* values of a delivered sample */
} dataset_field_t;

#define DATASET_FIELDS_MAX (2 * HDF5IO_FIELDS_MAX)

struct hdf5io_dataset {
    dataset_field_t fields[DATASET_FIELDS_MAX]; /* inputs, then targets */
    int inputs, field_count;
    /* While it is opened; else NULL. Not owned. */
    const hdf5io_dataset_config_t *config;
    h5mpi_t *mpi;
    hid_t transfer;                /* H5P_DEFAULT, or collective */
    hdf5io_catalogue_t *catalogue; /* of the shards below */
    hdf5io_catalogue_t *index;     /* of .cddp-index; NULL: none is used */
    hdf5io_column_t **likes;       /* [like_count], each [field_count]: closed
                                      columns, one array for each shape */
    int like_count;
    hdf5io_shard_t *shards;
    int count;
    hdf5io_alike_t *alike;     /* until all shards are known; NULL: none */
    hdf5io_shard_config_t how; /* how shards are opened; owns [access] */
    hdf5io_pool_t *pool;       /* of decoded chunks and of bands */
    bool banded[DATASET_FIELDS_MAX]; /* read in bands (dataset_band.c) */
    uint64_t owner; /* owner in the pool of the chunks or bands of field 0 of
                       shard 0; the owners of other fields and shards follow */
    retry_t retry;
    /* bytes of chunk caches: limit, and of all open shards */
    size_t cache_max, cached;
    struct hdf5io_stage *stage; /* copies of the shards; NULL: none */
    int stage_first;            /* number of shard 0 among files of [stage] */
    bool stage_told;            /* the log says that a copy cannot be used */
    int open_max, open_count;   /* number of open shards: limit and current */
    hdf5io_shard_t *oldest, *newest; /* ends of the list of open shards */
    int64_t samples;
    size_t row_bytes; /* stored bytes per sample, largest column */
    pthread_mutex_t lock;
    read_scratch_t *scratch; /* list of unused buffers; under the lock */
    unsigned char *touched;  /* [count], MPI-IO: 1 for each shard that the
                                current read needs */
    trace_t *const *traces;  /* [trace_count]; each read in progress uses one */
    int trace_count;
    uint64_t traced; /* bit i: traces[i] is in use; under the lock */
    ahead_state_t ahead;
    slow_t slow;
    _Atomic int64_t bytes_read;
    _Atomic int64_t bytes_direct; /* of these, not from decoded chunks */
    _Atomic int64_t retries;      /* tries beyond the first one */
    _Atomic int64_t shards_read;
};

/* The columns of a known shard as far as its shape says it: everything but file
 * name, number of rows, offsets and what is open. Valid, and unchanged, while
 * other threads open and close the shard. */
const hdf5io_column_t *hdf5io_dataset_columns(const hdf5io_dataset_t *dataset,
                                              const hdf5io_shard_t *shard);

/* The owner in the pool of the chunks or bands of field [field] of [shard]. */
static inline uint64_t hdf5io_dataset_owner(const hdf5io_dataset_t *dataset,
                                            const hdf5io_shard_t *shard,
                                            int field)
{
    return dataset->owner +
           (uint64_t)(shard - dataset->shards) *
               (uint64_t)dataset->field_count +
           (uint64_t)field;
}

/* Work on an open shard. If it returns ERR_IO, errno holds the reason. */
typedef err_code_t (*dataset_work_t)(void *context, err_t *err);

/* Open [shard] if it is closed, and do [work]. If storage refuses, both are
 * repeated as dataset->retry says. Call it without the lock. With mpi: only
 * [work]. */
err_code_t hdf5io_dataset_use(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                              dataset_work_t work, void *context, err_t *err);

/* Do [work] on [shard] once, if the shard is open. With [opens], a closed shard
 * is opened first, unless another one would have to be closed for it. An error
 * is dropped. Call it without the lock. Not with mpi. */
void hdf5io_dataset_try(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                        bool opens, dataset_work_t work, void *context);

/* Compare the known shard [shard] with the first one, if that is known, and
 * with the model; find what is done to its numbers. ERR_DATA, ERR_MEMORY. */
err_code_t hdf5io_dataset_suits(hdf5io_dataset_t *dataset,
                                const hdf5io_shard_t *shard, err_t *err);

/* Make shards of the facts in the catalogue, which must all be known, and
 * compare and number all shards. The last part of opening that is local.
 * ERR_DATA, ERR_UNAVAILABLE (see hdf5io_dataset_open), ERR_MEMORY. */
err_code_t hdf5io_dataset_settle(hdf5io_dataset_t *dataset, err_t *err);

/* Count [shard], which was opened, and make it the newest one. Lock held, or
 * the dataset is not shared yet. */
void hdf5io_dataset_opened(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard);

/* Close the least recently used open shard that nobody reads; false: there is
 * none. Lock held, or the dataset is not shared yet. */
bool hdf5io_dataset_rest_oldest(hdf5io_dataset_t *dataset);

/* Rows of one column of a shard, and the place to read them to, as stored. */
typedef struct dataset_rows {
    hdf5io_dataset_t *dataset;
    hdf5io_shard_t *shard;
    int column;
    const column_run_t *runs;
    /* NULL: the runs follow each other in [out]. Else run i begins at row
     * slots[i] of [out]; not with mpi. */
    const int64_t *slots;
    int64_t count; /* of [runs] */
    void *out;
} dataset_rows_t;

/* Read [rows] with all tries, see hdf5io_dataset_use. ERR_IO, ERR_DATA. */
err_code_t hdf5io_dataset_rows(dataset_rows_t *rows, err_t *err);

/* Choose the fields whose rows are so short that bands of them are read into
 * the pool. All shards are known. */
void hdf5io_dataset_bands_choose(hdf5io_dataset_t *dataset);
/* hdf5io_dataset_rows for such a field. */
err_code_t hdf5io_dataset_band_rows(const dataset_rows_t *rows, err_t *err);

/* Check what is done to the numbers of [want]: tokens and class numbers take
 * only scale 1 and a whole shift. [key] is "input" or "target". ERR_CONFIG. */
err_code_t hdf5io_want_check(const hdf5io_want_t *want, const char *key,
                             err_t *err);

/* Find the transform of each field, if that is not yet done. The samples of all
 * shards have the shapes of those of [shard]. ERR_DATA: what the run file asks
 * for does not suit these shapes. ERR_MEMORY. */
err_code_t hdf5io_dataset_transforms_make(hdf5io_dataset_t *dataset,
                                          const hdf5io_shard_t *shard,
                                          err_t *err);

/* Do the samples of [shard] have the numbers of values that the model expects?
 * ERR_DATA. */
err_code_t hdf5io_dataset_fits(const hdf5io_dataset_t *dataset,
                               const hdf5io_dataset_config_t *config,
                               const hdf5io_shard_t *shard, err_t *err);

/* Refuse real numbers as class numbers of field [index]: ERR_DATA. Class
 * numbers may be stored as floats, so the first sample is read and checked,
 * long before a training step would fail. With mpi: collective. */
err_code_t hdf5io_dataset_classes_check(hdf5io_dataset_t *dataset,
                                        const hdf5io_want_t *want, int index,
                                        err_t *err);

/* Samples per unit of [shard]. All shards are known. */
int64_t hdf5io_dataset_unit_of(const hdf5io_dataset_t *dataset,
                               const hdf5io_shard_t *shard);

/* Close least recently used shards after [last] was opened, while the chunk
 * caches exceed their limit or descriptors are scarce. Lock held, or the
 * dataset is not shared yet. */
void hdf5io_dataset_trim(hdf5io_dataset_t *dataset, const hdf5io_shard_t *last);

/* MPI-IO: open all shards collectively, after each rank has opened them for
 * itself. The ranks first compare their results, since a rank that failed, or
 * that sees other files, would leave the others waiting. [rc] is this rank's
 * result; if it is an error, [dataset] is not used. ERR_DATA: ranks see
 * different files. Collective. */
err_code_t hdf5io_dataset_join(hdf5io_dataset_t *dataset, h5mpi_t *mpi,
                               err_code_t rc, err_t *err);

/* Free a list of buffers. */
void hdf5io_read_scratch_free(read_scratch_t *scratch);

#endif
