/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint: RUNDIR/checkpoints/step-%010d/ holds shard-R.h5 (one for each
 * writing rank, or for some ranks together) or shared.h5 (MPI-IO),
 * checkpoint.h5 (virtual datasets that show each whole tensor) and
 * MANIFEST.json, which is written last. docs/FORMATS.md is the specification.
 *
 * Publishing: all files are written under a temporary directory name
 * (.tmp-step-...-NONCE), closed, hashed and synced with fsync. The ranks vote.
 * Rank 0 writes the manifest, syncs, renames the directory and syncs its
 * parent. So a directory named step-N was complete when it got this name; later
 * damage is found by the hashes when it is read.
 *
 * A tensor is a named float32 array. Each rank writes some element ranges of
 * the flat tensors: tensors that all ranks hold are divided evenly among the
 * ranks, in order; a part that only one rank holds is written by that rank. So
 * no rank writes much more than its share. The number of reading ranks, and the
 * parts that they hold, may differ from those of the writers: each rank reads
 * the intersections of its ranges with the written ones.
 *
 * Thread rule: one thread per call. Votes go through the callback.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_H
#define CDDP_HDF5IO_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_best.h"
#include "hdf5io/h5mpi.h"
#include "hdf5io/progress.h"

/* Elements of a flat tensor that only one rank holds. */
typedef struct hdf5io_part {
    int rank;
    int64_t first, count; /* count > 0 */
    float *data;          /* the elements, on [rank]; unused on other ranks */
} hdf5io_part_t;

/* One tensor of the training state. It is either whole on every rank, or
 * divided into parts. Then every rank knows all parts; they are sorted and
 * cover each element once. */
typedef struct hdf5io_tensor {
    /* "model/conv1.weight", "optimizer/exp_avg/conv1.weight" */
    const char *name;
    int ndim;
    int64_t dims[6];
    float *data;                /* used if [parts] is NULL */
    const hdf5io_part_t *parts; /* NULL: the tensor is whole on every rank */
    int part_count;
} hdf5io_tensor_t;

#define HDF5IO_SPREAD_ALIGN 64 /* bytes */

/* How ranks communicate. [exchange] is an all-gather as in boot.h. */
typedef struct hdf5io_votes {
    void *context;
    int rank, size;
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
    /* (optional) Called repeatedly while bytes are moved, so that other ranks
     * do not take a long checkpoint for a hanging rank. */
    void (*alive)(void *context);
    /* (optional) All-gather of ranges: rank r gives bytes cuts[r] to
     * cuts[r + 1] - 1 of [data], and every rank gets the bytes of all ranks.
     * All ranks have the same cuts: ascending multiples of
     * HDF5IO_SPREAD_ALIGN, the first one 0. [data] is aligned to
     * HDF5IO_SPREAD_ALIGN bytes. Default: by [exchange]. */
    err_code_t (*spread)(void *context, void *data, const size_t *cuts,
                         err_t *err);
    /* All ranks are threads of one process, so each can read memory of
     * the other ranks. Then loads do not need [spread]. */
    bool together;
    /* (optional) Copy [bytes] bytes at [data] from rank 0 to all ranks.
     * Default: by [exchange]. */
    err_code_t (*broadcast)(void *context, void *data, size_t bytes,
                            err_t *err);
} hdf5io_votes_t;

/* Fingerprint of one shard of the data, or of several consecutive shards, taken
 * when a checkpoint was written. */
typedef struct hdf5io_mark {
    char *split; /* "train" */
    char *name;  /* file name of the (first) shard */
    int shards;  /* number of shards that this mark covers, >= 1 */
    int64_t samples;
    uint64_t quick; /* hash of shapes and some bytes, see hdf5io/digest.h */
    uint64_t full;  /* hash of all bytes, if [whole] */
    bool whole;     /* [full] was computed */
} hdf5io_mark_t;

typedef struct hdf5io_checkpoint_config {
    const char *directory; /* RUNDIR/checkpoints */
    const hdf5io_votes_t *votes;
    h5mpi_t *mpi;       /* not NULL: one shared file, written by MPI-IO */
    int keep;           /* number of newest checkpoints to keep, >= 1 */
    int64_t keep_every; /* keep multiples of this step, too; 0: none */
    bool retire_later;  /* hdf5io_sweep, not the save, deletes the others */
    /* It is that of the best evaluation, which is kept, too; NULL: it is not */
    const hdf5io_best_t *best;
    /* Every file is read back past the page cache before the checkpoint is
     * published. What differs is ERR_IO. */
    bool verify_disk;
    int format; /* version of the manifest, 1 or 2; 0: 2 */
    /* [size]: heads[r] is the lowest of the ranks that write the file of rank r
     * together. NULL, and in format 1: each rank has a file of its own. */
    const int *heads;
    /* Bytes of a block of format 2, and of the window in which ranks exchange
     * what they read. 0: the default. Tests set less. */
    uint64_t block_bytes, window_bytes;
    uint64_t config_hash, model_hash, build_hash;
    /* another model_hash is ERR_CONFIG, even if all tensors fit; else warn */
    bool model_strict;
    const char *config_text;    /* resolved run file, for the manifest */
    const hdf5io_mark_t *marks; /* of the training data, for the manifest */
    int mark_count;
    /* libraries and machine, for the manifest ("UCX 1.13.1"); NULL: none */
    const char *versions;
    const struct hdf5io_share *share; /* what this rank writes; NULL: make it */
    const struct hdf5io_io *io; /* NULL: system calls; tests inject faults */
    double retry_seconds; /* a failed read is repeated 3 times in this time */
} hdf5io_checkpoint_config_t;

typedef struct hdf5io_checkpoint_info {
    char path[4096];
    hdf5io_progress_t progress;
    int world_size;        /* number of ranks that wrote it */
    int64_t bytes_written; /* by this rank; 0 after reading */
    bool none_whole;       /* after ERR_DATA: all checkpoints are damaged */
} hdf5io_checkpoint_info_t;

/* Write and publish a checkpoint. Collective. Checkpoints of later steps are
 * renamed to superseded-* first: the run was resumed before these steps, or
 * started anew. After ERR_IO nothing was published and older checkpoints are
 * unchanged; the temporary directory is removed if possible. ERR_CONFIG is also
 * returned if a later version of cddp was interrupted while it saved, and its
 * checkpoint is newer than all published ones; then nothing is changed. */
err_code_t hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                                   const hdf5io_progress_t *progress,
                                   const hdf5io_tensor_t *tensors, int count,
                                   hdf5io_checkpoint_info_t *info, err_t *err);

/*
 * Read [tensors] from the checkpoint [path], or, if [path] is NULL, from the
 * newest intact checkpoint in the directory. This may be an intact one that an
 * interrupted save left under a temporary name; no file is changed or renamed.
 *
 * The ranks share the reading: each rank reads its part of a candidate,
 * compares the hashes of this part, and sends the bytes to the ranks that need
 * them. A damaged candidate (a file is missing, or has another size or hash) is
 * logged as a warning, and the next older one is tried. *found is false if the
 * directory holds no checkpoint at all.
 *
 * ERR_DATA: all candidates are damaged; the sentence lists them and says that
 * --fresh starts anew. Also if a permission is missing; the sentence names the
 * owner. ERR_CONFIG: the checkpoint belongs to another model (the sentence
 * names the first tensor that differs), ranks name different tensors, or a
 * later version of cddp wrote the checkpoint; then the sentence names what this
 * checkpoint requires, and no older checkpoint is tried instead. ERR_IO:
 * storage could not be read. That is no damage, so no older checkpoint is tried
 * instead. After ERR_DATA and ERR_IO the tensors are undefined. Collective;
 * every rank gets the same result.
 */
err_code_t hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                                  const char *path,
                                  const hdf5io_tensor_t *tensors, int count,
                                  bool *found, hdf5io_checkpoint_info_t *info,
                                  err_t *err);

/* Verify every byte of one checkpoint. ERR_DATA names the damaged file and the
 * damage; ERR_CONFIG: a later version of cddp wrote it; ERR_IO. Local. */
err_code_t hdf5io_checkpoint_verify(const char *path,
                                    hdf5io_checkpoint_info_t *info, err_t *err);

/* List the paths of the checkpoints in [directory], newest first. A checkpoint
 * that an interrupted save left under a temporary name is included if it is
 * newer than all published ones, and is intact or of a later version of cddp.
 * The caller frees each path and the list. Local. */
err_code_t hdf5io_checkpoint_list(const char *directory, char ***paths,
                                  int *count, err_t *err);

/* Rename the checkpoint [path], found by reading, to its final name if an
 * interrupted save left it under a temporary name. Does nothing if [path] is
 * not in [directory]. hdf5io_checkpoint_write does this itself. Local; only for
 * the process that may write in [directory]. */
err_code_t hdf5io_checkpoint_adopt(const char *directory, const char *path,
                                   err_t *err);

/* Prepare [directory] for a run that resumes from checkpoint [path] of [step]:
 * rename newer checkpoints to superseded-*, so that no resume chooses them. If
 * [path] is not in [directory], all checkpoints are renamed and *elsewhere is
 * true. best.json is removed if its checkpoint is renamed. Local. */
err_code_t hdf5io_checkpoint_supersede(const char *directory, const char *path,
                                       int64_t step, bool *elsewhere,
                                       err_t *err);

#endif
