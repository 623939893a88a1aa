/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dataset: samples along dimension 0 of HDF5 datasets (one input and one
 * target, or several of each) in one or more files (shards). A global index 0
 * .. samples-1 counts through the shards in sorted file order (strverscmp:
 * part-10 follows part-9). Contiguous allocated datasets, and chunks with
 * common filters, are read by pread without the HDF5 lock, others through HDF5.
 *
 * With config.sequence = T each file holds one stream of numbers (tokens), a
 * dataset with one dimension. Sample k of a file is its numbers [k T, k T + T),
 * and the target of each number is the next one.
 *
 * Thread rule: several threads may call hdf5io_dataset_read at the same time.
 */
#ifndef CDDP_HDF5IO_DATASET_H
#define CDDP_HDF5IO_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/retry.h"
#include "base/trace.h"
#include "hdf5io/catalogue.h"
#include "hdf5io/field.h"
#include "hdf5io/h5mpi.h"
#include "hdf5io/transform.h"
#include "hdf5io/units.h"

typedef struct hdf5io_dataset hdf5io_dataset_t;

/* Maximum number of inputs of a sample, and of targets. */
#define HDF5IO_FIELDS_MAX OPT_MAP_MAX

/* Type and range in which the numbers of a field are delivered. */
typedef enum hdf5io_as {
    HDF5IO_AS_REALS,  /* float: see field.h */
    HDF5IO_AS_TOKENS, /* int32 from 0 to limit - 1 */
    HDF5IO_AS_CLASSES /* int64 from 0 to limit - 1 */
} hdf5io_as_t;

/* Probabilities that sum to 1: [count] numbers with distance [step]. */
typedef struct hdf5io_sum {
    int64_t count, step;
} hdf5io_sum_t;

#define HDF5IO_SUMS_MAX 3

/* One input or target as the model needs it. */
typedef struct hdf5io_want {
    const hdf5io_field_t *field; /* as the run file describes it */
    hdf5io_as_t as;
    int64_t limit;
    bool ignore;     /* class numbers equal to [ignored] are accepted */
    int64_t ignored; /* delivered as stored, without shift */
    /* NULL: any numbers are accepted. Else the numbers of a sample must be
     * probabilities: none is below 0, and they sum to 1 in at least one of the
     * ways [sums]. The text ends the error sentence: it says which loss needs
     * this, and how to mend the data. It must outlive the dataset. */
    const char *shares;
    hdf5io_sum_t sums[HDF5IO_SUMS_MAX]; /* ends at the first with count 0 */
    int64_t elems;     /* expected number of values per sample */
    const char *shape; /* inputs only: as text, for error sentences */
    const char *name;  /* NULL if there is only one */
    const char *place; /* the option that asks for it ("run.yaml:7:3: loss
                          mse"), for error sentences; NULL: unknown */
} hdf5io_want_t;

typedef struct hdf5io_dataset_config {
    const opt_texts_t *shards; /* glob patterns or file names */
    hdf5io_want_t inputs[HDF5IO_FIELDS_MAX], targets[HDF5IO_FIELDS_MAX];
    int input_count, target_count; /* 0 counts as 1 */
    bool inputs_only; /* there are no targets. Not with [sequence] */
    int64_t sequence; /* tokens per sample (T); 0: samples along dimension 0.
                         With T > 0 there is one input and one target, and both
                         use the field of the input. */
    bool whole;   /* each shard is one sample: all of its datasets, which may
                     have any shape. Not with [sequence] */
    h5mpi_t *mpi; /* not NULL: collective MPI-IO reads */
    /* (optional) Maximum bytes of HDF5's chunk caches, and of decoded chunks
     * and short rows; a shard that needs more gets it. Default: 128 MiB. */
    size_t cache_bytes;
    /* (optional) Maximum number of open shards. Default: as many as the limit
     * of open files allows. Not used with mpi. */
    int open_files;
    /* How long reads are repeated if storage refuses, and which callback is
     * called during the waits; all zeros: repeat at once. Not used with mpi. */
    retry_t retry;
    /* A look at a shard also finds the digest of a sample of its numbers, so
     * that hdf5io_dataset_digest need not open it. Not used with mpi, and for
     * shards that refer to other files: each host may have others. */
    bool digest;
} hdf5io_dataset_config_t;

/* Open and check all shards. ERR_DATA (no shard matches, truncated file, not
 * HDF5, missing dataset, shapes that differ, wrong size or type) names file and
 * dataset; if a permission is missing it names the owner. ERR_IO: storage
 * refused all tries. As many shards stay open as the caches and the limit of
 * open files allow; others are opened when they are read. With mpi: collective,
 * and all shards stay open. */
err_code_t hdf5io_dataset_open(const hdf5io_dataset_config_t *config,
                               hdf5io_dataset_t **out, err_t *err);
void hdf5io_dataset_close(hdf5io_dataset_t *dataset); /* NULL allowed */

/*
 * The same in parts, for ranks that divide the shards among themselves: begin;
 * a look at some of them; merging into the catalogue what other ranks found;
 * finish, when all facts are known. A shard at which this process did not look
 * stays closed until it is read. All parts are local, and have the errors of
 * hdf5io_dataset_open; after an error, close the dataset. [config] must live
 * until the dataset is finished or closed. Not with mpi.
 *
 * look: open shard [index] (once), check the file, and store its facts. Repeats
 * what storage refuses, so it may block. finish: compare the shards with each
 * other and with the model.
 */
err_code_t hdf5io_dataset_begin(const hdf5io_dataset_config_t *config,
                                hdf5io_dataset_t **out, err_t *err);
err_code_t hdf5io_dataset_look(hdf5io_dataset_t *dataset, int index,
                               err_t *err);
err_code_t hdf5io_dataset_finish(hdf5io_dataset_t *dataset, err_t *err);
/* The facts of the dataset's shards; valid as long as the dataset. Facts may be
 * merged into it between begin and finish. */
hdf5io_catalogue_t *hdf5io_dataset_catalogue(hdf5io_dataset_t *dataset);

/* Number of samples, and of shards. */
int64_t hdf5io_dataset_samples(const hdf5io_dataset_t *dataset);
int hdf5io_dataset_shards(const hdf5io_dataset_t *dataset);
/* File name of shard [index] (0 .. shards-1); valid as long as the dataset. */
const char *hdf5io_dataset_shard(const hdf5io_dataset_t *dataset, int index);
/* Samples of a unit of each shard, rows[shards]; depends on the files only. */
void hdf5io_dataset_unit_rows(const hdf5io_dataset_t *dataset, int64_t *rows);
/* The units for such [rows], to be closed by the caller. ERR_MEMORY. */
err_code_t hdf5io_dataset_units(const hdf5io_dataset_t *dataset,
                                const int64_t *rows, hdf5io_units_t **out,
                                err_t *err);
/* Number of inputs and of targets, and bytes of one delivered sample of field
 * [index]. Fields are the inputs, then the targets, in the order of the
 * configuration. */
int hdf5io_dataset_inputs(const hdf5io_dataset_t *dataset);
int hdf5io_dataset_targets(const hdf5io_dataset_t *dataset);
size_t hdf5io_dataset_field_bytes(const hdf5io_dataset_t *dataset, int index);
/* Bytes of one stored sample, all inputs and targets together. */
size_t hdf5io_dataset_sample_bytes(const hdf5io_dataset_t *dataset);
/* From now on, each read is traced in one of traces[count]; count <= 64. The
 * array is not copied. Not while a read is in progress. */
void hdf5io_dataset_trace(hdf5io_dataset_t *dataset, trace_t *const *traces,
                          int count);

/* Are reads collective (MPI-IO)? Then all ranks must read, each in the calling
 * thread. */
bool hdf5io_dataset_collective(const hdf5io_dataset_t *dataset);

/*
 * Read [count] samples by global index (any order, duplicates allowed).
 * fields[0], fields[1], ... receive the inputs, then the targets, each as
 * [count, elems] numbers, converted and scaled; a field at NULL is not read
 * (without mpi). ERR_DATA: a label or token is out of range (names file, row
 * and value), damaged data, or a shard that changed. ERR_IO: storage refused
 * all tries of config.retry. With mpi: collective; count may be 0.
 */
err_code_t hdf5io_dataset_read_fields(hdf5io_dataset_t *dataset,
                                      const int64_t *index, int64_t count,
                                      void *const *fields, err_t *err);

/* hdf5io_dataset_read_fields for a dataset with one input and one target. */
err_code_t hdf5io_dataset_read(hdf5io_dataset_t *dataset, const int64_t *index,
                               int64_t count, void *input, void *target,
                               err_t *err);

/* The same for training: [draw] and the global index of a sample choose at
 * random where its image is cropped and whether it is mirrored. [draw] NULL:
 * the middle is taken, as above. */
err_code_t hdf5io_dataset_read_drawn(hdf5io_dataset_t *dataset,
                                     const hdf5io_draw_t *draw,
                                     const int64_t *index, int64_t count,
                                     void *const *fields, err_t *err);

/* Look for a number that is not finite among [count] samples, which were read
 * into [fields] as above. [sample_ids] are their global indices. ERR_DATA names
 * file and row of the first such number. Class numbers, tokens and fields
 * at NULL are skipped. */
err_code_t hdf5io_dataset_finite(const hdf5io_dataset_t *dataset,
                                 const uint64_t *sample_ids, int64_t count,
                                 const void *const *fields, err_t *err);

/* Bytes of samples that this process has read from files. */
int64_t hdf5io_dataset_bytes_read(const hdf5io_dataset_t *dataset);
/* Maximum bytes of HDF5's chunk caches and of places of chunks; bytes of chunks
 * decoded without HDF5, and of short rows; number of open shards. */
size_t hdf5io_dataset_cached(hdf5io_dataset_t *dataset);
size_t hdf5io_dataset_pooled(hdf5io_dataset_t *dataset);
int hdf5io_dataset_open_shards(hdf5io_dataset_t *dataset);

/* Number of shards accessed by reads; each read counts a shard once. */
int64_t hdf5io_dataset_shards_read(const hdf5io_dataset_t *dataset);

#endif
