/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint: RUNDIR/checkpoints/step-%010d/ with shard-R.h5 (one per writer)
 * or shared.h5 (MPI-IO), checkpoint.h5 (virtual datasets that show every tensor
 * whole), MANIFEST.json last. docs/FORMATS.md is the specification.
 *
 * Publishing: all files under a temporary directory name (.tmp-step-...-NONCE),
 * closed, hashed, fsynced; the ranks vote; rank 0 writes the manifest, fsyncs,
 * renames, fsyncs the parent. So a directory named step-N is whole, or was
 * damaged later, which reading detects by the hashes.
 *
 * A tensor is a named float32 or float64 array; each writer holds the element
 * ranges of the flat tensors that fall to it (ranks split what all of them hold
 * evenly, in order, and each writes what it alone holds), so that rank 0 writes
 * no more than its share. Readers need not be as many, nor hold the same parts:
 * each reads where its ranges meet those that were written.
 *
 * Thread rule: one thread per call; the votes go through the callback.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_H
#define CDDP_HDF5IO_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/h5mpi.h"

/* Elements of a flat tensor that one rank alone holds. */
typedef struct hdf5io_part {
    int rank;
    int64_t first, count; /* count > 0 */
    float *data;          /* on that rank, where they are; else not used */
} hdf5io_part_t;

/* One tensor of the state. It is whole on every rank, or lies in parts, which
 * every rank knows, in order, and which cover it once. */
typedef struct hdf5io_tensor {
    const char
        *name; /* "model/conv1.weight", "optimizer/exp_avg/conv1.weight" */
    int ndim;
    int64_t dims[6];
    float *data;                /* whole */
    const hdf5io_part_t *parts; /* NULL: whole */
    int part_count;
} hdf5io_tensor_t;

/* How ranks agree. [exchange] is an all-gather as in boot.h. */
typedef struct hdf5io_votes {
    void *context;
    int rank, size;
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
    /* (optional) Called now and then while bytes move, so that a long
     * checkpoint is not taken for a stuck rank. Default: nothing. */
    void (*alive)(void *context);
} hdf5io_votes_t;

/* The numbers that make a resume exact; they go into the manifest. */
typedef struct hdf5io_progress {
    int64_t step;         /* steps done */
    int64_t updates;      /* of them, those that changed the parameters: in a
                             step without a target there is no update */
    int64_t epoch;        /* epoch in progress, from 0 */
    int64_t samples;      /* of that epoch, consumed by all ranks together */
    int64_t epoch_step;   /* steps of that epoch done */
    int64_t data_samples; /* in the data that epochs go over; 0: not known */
    uint64_t seed;
    double loss_sum; /* of that epoch so far (reported means stay exact) */
    int64_t loss_count;
    int64_t correct;
    double best; /* best validation accuracy so far, -1: none */
    /* What a schedule that watches a metric has seen of it. */
    struct {
        double best;
        int64_t step; /* after which it saw the last value, 0: none */
        int64_t seen, bad, rest, cuts; /* as in optim_watch_t */
    } watch;
} hdf5io_progress_t;

/* What a shard of the data held when a checkpoint was written, or several that
 * follow each other in one mark. */
typedef struct hdf5io_mark {
    char *split; /* "train" */
    char *name;  /* of the file, the first of several */
    int shards;  /* this mark stands for; >= 1 */
    int64_t samples;
    uint64_t quick; /* of shapes and a sample of the bytes: hdf5io/digest.h */
    uint64_t full;  /* of all bytes, */
    bool whole;     /* if that was looked at */
} hdf5io_mark_t;

typedef struct hdf5io_checkpoint_config {
    const char *directory; /* RUNDIR/checkpoints */
    const hdf5io_votes_t *votes;
    h5mpi_t *mpi; /* not NULL: one shared file by MPI-IO */
    int keep;     /* newest checkpoints kept, >= 1 */
    uint64_t config_hash, model_hash, build_hash;
    bool model_strict; /* refuse another model_hash (ERR_CONFIG), where tensors
                          fit, too; else it is a warning */
    const char *config_text;    /* resolved run file, stored in the manifest */
    const hdf5io_mark_t *marks; /* of the data, for the manifest */
    int mark_count;
    const char *versions; /* more libraries and the machine, for the manifest:
                             "oneDNN 2.6.0, UCX 1.13.1"; NULL: none */
    const struct hdf5io_io *io; /* NULL: the system's; tests inject faults */
    /* Seconds for which storage may refuse to be read: what fails is opened and
     * read again, three times over these seconds (base/retry.h). */
    double retry_seconds;
} hdf5io_checkpoint_config_t;

typedef struct hdf5io_checkpoint_info {
    char path[4096];
    hdf5io_progress_t progress;
    int world_size;        /* of the writer */
    int64_t bytes_written; /* write only: by this rank */
} hdf5io_checkpoint_info_t;

/* Write and publish. Collective. On ERR_IO nothing was published and the
 * temporary directory is removed as far as possible; older checkpoints stay. */
err_code_t hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                                   const hdf5io_progress_t *progress,
                                   const hdf5io_tensor_t *tensors, int count,
                                   hdf5io_checkpoint_info_t *info, err_t *err);

/*
 * Find the newest checkpoint in the directory (of what an interrupted save has
 * left whole, too; nothing is changed) whose every byte verifies (rank 0
 * hashes, or all ranks share the work; a damaged one is logged as a warning and
 * the previous is tried), or exactly [path] if not NULL, and read [tensors]
 * from it. *found is false when the directory has no checkpoint at all. All
 * damaged: ERR_DATA that lists them and says --fresh starts anew. Another
 * model: ERR_CONFIG naming the first tensor that differs. Damaged is what is
 * absent, or has another size or hash; storage that cannot be read is not, so
 * no older checkpoint is taken for it: ERR_IO, or ERR_DATA that names the owner
 * where a permission is missing. Collective; every rank gets the same outcome.
 */
err_code_t hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                                  const char *path,
                                  const hdf5io_tensor_t *tensors, int count,
                                  bool *found, hdf5io_checkpoint_info_t *info,
                                  err_t *err);

/* Check every byte of one checkpoint: ERR_DATA says which file and how; ERR_IO:
 * storage could not be read. Local. */
err_code_t hdf5io_checkpoint_verify(const char *path,
                                    hdf5io_checkpoint_info_t *info, err_t *err);

/* Paths of the checkpoints in [directory], newest first, with a whole one that
 * an interrupted save has left under a temporary name, if it is newer than all
 * others; the caller frees each and the list. Local. */
err_code_t hdf5io_checkpoint_list(const char *directory, char ***paths,
                                  int *count, err_t *err);

/* The checkpoint [path] in [directory], as reading has found it, is used: if it
 * has a temporary name, as an interrupted save has left it, it gets its own. A
 * path of another directory is left alone. Local; for the one process that may
 * write in [directory]. Writing does the same. */
err_code_t hdf5io_checkpoint_adopt(const char *directory, const char *path,
                                   err_t *err);

/* A run goes on from the checkpoint [path], of step [step]. Those in
 * [directory] that it leaves behind are renamed to superseded-*, lest a later
 * life takes them for its own: newer ones, or, if [path] is not of this
 * directory (*elsewhere), all. Local. */
err_code_t hdf5io_checkpoint_supersede(const char *directory, const char *path,
                                       int64_t step, bool *elsewhere,
                                       err_t *err);

#endif
