/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_dir: the names in RUNDIR/checkpoints and what they mean:
 *   step-%010d                  a published checkpoint
 *   .tmp-step-%010d-NONCE       being written, or debris of a dead run
 *   .trash-step-%010d-NONCE     being replaced or deleted, or debris
 *   superseded-step-%010d-NONCE of an abandoned line of the run; kept
 * All calls are local; rank 0 makes them.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_DIR_H
#define CDDP_HDF5IO_CHECKPOINT_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_io.h"

/* The step of a published checkpoint's directory name, false: another name. */
bool hdf5io_dir_step(const char *name, int64_t *step);

/* Path of DIRECTORY/[prefix]step-%010d[-NONCE] (no nonce: 0); free() it. */
char *hdf5io_dir_path(const char *directory, const char *prefix, int64_t step,
                      uint64_t nonce);

/* A number that no dead run has used; never 0. */
uint64_t hdf5io_dir_nonce(void);

typedef enum hdf5io_kind {
    HDF5IO_PUBLISHED,
    HDF5IO_TMP,
    HDF5IO_TRASH
} hdf5io_kind_t;

typedef struct hdf5io_entry {
    int64_t step;
    hdf5io_kind_t kind;
    uint64_t nonce; /* of debris; published: 0 */
    char name[80];  /* in the directory */
} hdf5io_entry_t;

/* Path of the checkpoint or debris of these three; free() it. */
char *hdf5io_dir_entry(const char *directory, hdf5io_kind_t kind, int64_t step,
                       uint64_t nonce);

/* Published checkpoints and debris, newest first, and of one step in the order
 * of the kinds; free() the list. A directory that is not there has none.
 * Storage that refuses is tried again. */
err_code_t hdf5io_dir_list(const hdf5io_io_t *io, const char *directory,
                           hdf5io_entry_t **entries, int *count, err_t *err);

/* Steps of the published checkpoints, newest first; free() the list. A
 * directory that is not there has none. Storage that refuses is tried again. */
err_code_t hdf5io_dir_steps(const hdf5io_io_t *io, const char *directory,
                            int64_t **steps, int *count, err_t *err);

/*
 * What may be read, newest first; free() the list: published checkpoints, and
 * before them debris that is a whole checkpoint of a later step than they are,
 * if there is any: a run that died while it gave or exchanged names has left
 * it. Of that every byte is verified first. Changes nothing. ERR_IO if debris
 * cannot be read.
 */
err_code_t hdf5io_dir_candidates(const hdf5io_io_t *io, const char *directory,
                                 hdf5io_entry_t **entries, int *count,
                                 err_t *err);

/* Debris among the candidates gets its name. Damaged debris stays as it is;
 * ERR_IO if it cannot be read or renamed. */
err_code_t hdf5io_dir_adopt(const hdf5io_io_t *io, const char *directory,
                            err_t *err);

/* Remove .tmp- and .trash- debris of dead runs; what cannot be removed is
 * logged. */
void hdf5io_dir_clean(const hdf5io_io_t *io, const char *directory);

/* Give the finished directory [tmp] the name of step [step], durably; an older
 * one of that name is deleted. On failure the name is as before, or free. */
err_code_t hdf5io_dir_publish(const hdf5io_io_t *io, const char *directory,
                              const char *tmp, int64_t step, uint64_t nonce,
                              err_t *err);

/* After step [step] was published: keep the [keep] newest up to it, delete
 * older ones; rename newer ones, which a run that went back to an older
 * checkpoint has left behind, out of the way. Failures are logged. */
void hdf5io_dir_retire(const hdf5io_io_t *io, const char *directory,
                       int64_t step, int keep, uint64_t nonce);

#endif
