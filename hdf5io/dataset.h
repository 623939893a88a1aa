/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset: samples along dimension 0 of HDF5 datasets (an input and a target,
 * or several of each) in one or many files (shards). A global index 0 ..
 * samples-1 runs through the shards in sorted file order (strverscmp: part-10
 * follows part-9). Contiguous allocated datasets are read by pread outside the
 * HDF5 lock, others through HDF5.
 *
 * Or, with config.sequence T, one stream of numbers (tokens) a file, a dataset
 * of one dimension: sample k of a file is its numbers [k T, k T + T), and the
 * target of each number is the one after it.
 *
 * Thread rule: hdf5io_dataset_read may be called by several threads at a time.
 */
#ifndef CDDP_HDF5IO_DATASET_H
#define CDDP_HDF5IO_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/retry.h"
#include "hdf5io/h5mpi.h"

typedef struct hdf5io_dataset hdf5io_dataset_t;

/* `data.input` / `data.target` of the run file. */
typedef struct hdf5io_field {
    char *path;          /* "/spins" */
    int cast;            /* input: choice, float32; target: the loss chooses */
    double scale, shift; /* value * scale + shift, in float32; a class number
                            or token takes a whole shift only (labels from 1:
                            -1) */
} hdf5io_field_t;

extern const opt_row_t hdf5io_input_options[];
extern const opt_row_t hdf5io_target_options[];

/* Inputs of a sample, and as many targets. */
#define HDF5IO_FIELDS_MAX OPT_MAP_MAX

/* What the numbers of a field are to whom they are read for. */
typedef enum hdf5io_as {
    HDF5IO_AS_REALS,  /* float: scaled and shifted */
    HDF5IO_AS_TOKENS, /* int32 from 0 to limit - 1 */
    HDF5IO_AS_CLASSES /* int64 from 0 to limit - 1 */
} hdf5io_as_t;

/* Of probabilities: those that sum to 1 are [count] numbers that stand [step]
 * apart. */
typedef struct hdf5io_sum {
    int64_t count, step;
} hdf5io_sum_t;

#define HDF5IO_SUMS_MAX 3

/* One input or target, as the model takes it. */
typedef struct hdf5io_want {
    const hdf5io_field_t *field; /* where it is */
    hdf5io_as_t as;
    int64_t limit;
    bool ignore;        /* a class number may be [ignored], too, which is */
    int64_t ignored;    /* passed on as stored */
    const char *shares; /* the numbers of a sample are probabilities: none is
                           below 0, and in one of these ways they sum to 1; the
                           text, of static life, tells who wants them so and
                           how to mend what is not. NULL: any numbers */
    hdf5io_sum_t sums[HDF5IO_SUMS_MAX]; /* count 0: no more */
    int64_t elems;                      /* expected, of a sample */
    const char *shape;                  /* an input's, as text, for sentences */
    const char *name;                   /* NULL: it is the only one */
    const char *place; /* who wants it ("run.yaml:7:3: loss mse"); NULL: the
                          sentences that say it does not fit have no place */
} hdf5io_want_t;

typedef struct hdf5io_dataset_config {
    const opt_texts_t *shards; /* globs, files or both */
    hdf5io_want_t inputs[HDF5IO_FIELDS_MAX], targets[HDF5IO_FIELDS_MAX];
    int input_count, target_count; /* 0 means 1 */
    int64_t sequence; /* T; 0: samples along dimension 0. Then there is one
                         input and one target, whose field is the input's. */
    h5mpi_t *mpi;     /* not NULL: collective MPI-IO reads */
    /* (optional) Bytes that chunk caches of all shards may take together; one
     * shard that needs more gets it. Default: 128 MiB. */
    size_t cache_bytes;
    /* How long to try again where storage refuses a read, and whom to tell
     * meanwhile; zeros: try again at once. Not with mpi. */
    retry_t retry;
} hdf5io_dataset_config_t;

/* Open and check all shards: ERR_DATA (no shard matches, truncated or not HDF5,
 * missing dataset, shapes that disagree, wrong size or type) names file and
 * dataset; ERR_DATA with the owner's name where a permission is missing; ERR_IO
 * when storage refuses after all tries. As many shards stay open as caches and
 * the process's limit of files allow; the others are opened when they are read.
 * With mpi: collective, and all stay open. */
err_code_t hdf5io_dataset_open(const hdf5io_dataset_config_t *config,
                               hdf5io_dataset_t **out, err_t *err);
void hdf5io_dataset_close(hdf5io_dataset_t *dataset);

int64_t hdf5io_dataset_samples(const hdf5io_dataset_t *dataset);
int hdf5io_dataset_shards(const hdf5io_dataset_t *dataset);
/* File name of shard [index] (0 .. shards-1); lives as long as the dataset. */
const char *hdf5io_dataset_shard(const hdf5io_dataset_t *dataset, int index);
/* Its inputs and targets, in the order of the configuration: how many, and the
 * bytes of a sample of number [index] as it is read; targets follow inputs. */
int hdf5io_dataset_inputs(const hdf5io_dataset_t *dataset);
int hdf5io_dataset_targets(const hdf5io_dataset_t *dataset);
size_t hdf5io_dataset_field_bytes(const hdf5io_dataset_t *dataset, int index);
/* Bytes of one stored sample (inputs and targets). */
size_t hdf5io_dataset_sample_bytes(const hdf5io_dataset_t *dataset);
/* Are reads collective (MPI-IO)? Then all ranks read, in the calling thread. */
bool hdf5io_dataset_collective(const hdf5io_dataset_t *dataset);

/*
 * Read [count] samples by global index (any order, duplicates allowed) into
 * fields[0], fields[1], ..., one for each input, then for each target, [count,
 * elems] as they are wanted; converted, scaled. ERR_DATA: label or token out of
 * range (names file, row, value), damage, a shard that changed; ERR_IO: storage
 * refused, also after the tries of config.retry. With mpi: collective, count
 * may be 0.
 */
err_code_t hdf5io_dataset_read_fields(hdf5io_dataset_t *dataset,
                                      const int64_t *index, int64_t count,
                                      void *const *fields, err_t *err);

/* The same of a dataset with one input and one target. */
err_code_t hdf5io_dataset_read(hdf5io_dataset_t *dataset, const int64_t *index,
                               int64_t count, void *input, void *target,
                               err_t *err);

/* Look for a number that is not finite among [count] samples that were read
 * into [fields] as above, scaled and shifted; their global indices are in
 * [sample_ids]. ERR_DATA names the first one's file and row. Class numbers and
 * tokens are none. */
err_code_t hdf5io_dataset_finite(const hdf5io_dataset_t *dataset,
                                 const uint64_t *sample_ids, int64_t count,
                                 const void *const *fields, err_t *err);

/* Bytes of samples that this process read from files so far. */
int64_t hdf5io_dataset_bytes_read(const hdf5io_dataset_t *dataset);
/* Bytes that the chunk caches of the shards that are open now may take, and how
 * many shards these are. */
size_t hdf5io_dataset_cached(hdf5io_dataset_t *dataset);
int hdf5io_dataset_open_shards(hdf5io_dataset_t *dataset);

/* Shards that its reads went to so far, each counted once a read. */
int64_t hdf5io_dataset_shards_read(const hdf5io_dataset_t *dataset);

#endif
