/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_dir: names in RUNDIR/checkpoints and their meaning:
 *   step-%010d                  a published checkpoint
 *   .tmp-step-%010d-NONCE       being written, or debris of a dead run
 *   .trash-step-%010d-NONCE     being replaced or deleted, or debris
 *   superseded-step-%010d-NONCE of an abandoned line of the run; kept
 * "Debris" is what an interrupted save left behind. All calls are local; only
 * rank 0 makes them.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_DIR_H
#define CDDP_HDF5IO_CHECKPOINT_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_io.h"

/* Parse the directory name of a published checkpoint; false: another name. */
bool hdf5io_dir_step(const char *name, int64_t *step);

/* Path DIRECTORY/[prefix]step-%010d[-NONCE]; without nonce if [nonce] is 0. The
 * caller frees it. */
char *hdf5io_dir_path(const char *directory, const char *prefix, int64_t step,
                      uint64_t nonce);

/* A random number that is never 0, so that names of different runs differ. */
uint64_t hdf5io_dir_nonce(void);

typedef enum hdf5io_kind {
    HDF5IO_PUBLISHED,
    HDF5IO_TMP,
    HDF5IO_TRASH,
    HDF5IO_SUPERSEDED
} hdf5io_kind_t;

typedef struct hdf5io_entry {
    int64_t step;
    hdf5io_kind_t kind;
    uint64_t nonce; /* 0 if published */
    bool later;     /* candidates: debris that a later version wrote */
    char name[80];  /* file name, without directory */
} hdf5io_entry_t;

/* Path of the entry with this kind, step and nonce. The caller frees it. */
char *hdf5io_dir_entry(const char *directory, hdf5io_kind_t kind, int64_t step,
                       uint64_t nonce);

/* List published checkpoints and debris, newest first; entries of one step are
 * sorted by kind. The caller frees the list. A directory that does not exist
 * gives an empty list. Failed reads are repeated. */
err_code_t hdf5io_dir_list(const hdf5io_io_t *io, const char *directory,
                           hdf5io_entry_t **entries, int *count, err_t *err);

/* As hdf5io_dir_list, with superseded checkpoints, too. */
err_code_t hdf5io_dir_list_all(const hdf5io_io_t *io, const char *directory,
                               hdf5io_entry_t **entries, int *count,
                               err_t *err);

/* List the steps of published checkpoints, newest first. The caller frees the
 * list. A directory that does not exist gives an empty list. Failed reads are
 * repeated. */
err_code_t hdf5io_dir_steps(const hdf5io_io_t *io, const char *directory,
                            int64_t **steps, int *count, err_t *err);

/*
 * List the checkpoints that may be read, newest first: the published ones and,
 * before them, intact debris of a later step. Such debris exists if a run died
 * while renaming. Every byte of debris is verified before it is listed. Debris
 * that a later version of cddp wrote cannot be verified. It is listed all the
 * same, so that no run goes on from an older checkpoint. Changes no file. The
 * caller frees the list. ERR_IO if debris cannot be read.
 */
err_code_t hdf5io_dir_candidates(const hdf5io_io_t *io, const char *directory,
                                 hdf5io_entry_t **entries, int *count,
                                 err_t *err);

/* fsync the regular files in the directory [path], then [path]. ERR_IO. */
err_code_t hdf5io_dir_sync(const hdf5io_io_t *io, const char *path, err_t *err);

/* Rename intact debris among the candidates to its final name. Damaged debris
 * is left as it is. ERR_IO if debris cannot be read or renamed; ERR_CONFIG if a
 * later version of cddp wrote it. */
err_code_t hdf5io_dir_adopt(const hdf5io_io_t *io, const char *directory,
                            err_t *err);

/* Remove .tmp- and .trash- debris of dead runs; with [later], leave what
 * hdf5io_sweep deletes. A failure is logged. */
void hdf5io_dir_clean(const hdf5io_io_t *io, const char *directory, bool later);

/* Rename the finished directory [tmp] to the name of step [step], durably. An
 * older directory of this name is deleted. On failure the older directory keeps
 * the name, or, if there was none, the name is free. */
err_code_t hdf5io_dir_publish(const hdf5io_io_t *io, const char *directory,
                              const char *tmp, int64_t step, uint64_t nonce,
                              err_t *err);

/* Which checkpoints stay after that of [step] was published. */
typedef struct hdf5io_retire {
    int64_t step;
    int keep;      /* the newest ones up to [step] */
    int64_t every; /* and those of multiples of this; 0: none */
    /* and that of best.json */
    uint64_t nonce;
    bool later; /* the others are left to hdf5io_sweep */
} hdf5io_retire_t;

/* Rename the checkpoints after [step] to superseded-*, durably: the run was
 * resumed before them, or started anew. best.json is removed if it names one of
 * these checkpoints, or one that does not exist. ERR_IO: some may not be
 * renamed. */
err_code_t hdf5io_dir_supersede(const hdf5io_io_t *io, const char *directory,
                                int64_t step, uint64_t nonce, err_t *err);

/* Delete the checkpoints up to retire->step that do not stay. If best.json
 * cannot be read, nothing is deleted. Failures are logged. */
void hdf5io_dir_retire(const hdf5io_io_t *io, const char *directory,
                       const hdf5io_retire_t *retire);

#endif
