/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_best: RUNDIR/checkpoints/best.json names the checkpoint of the
 * best evaluation (docs/FORMATS.md). That checkpoint stays where it is, under
 * its own name, until another one is better. Local; only rank 0 writes it.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_BEST_H
#define CDDP_HDF5IO_CHECKPOINT_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct hdf5io_io;

typedef struct hdf5io_best {
    char metric[32]; /* "valid_loss" */
    double value;
    int64_t step; /* -1: there is none */
} hdf5io_best_t;

/* Read best.json. out->step is -1 if there is no such file, or if its
 * checkpoint does not exist: a run that goes back to an earlier step, and is
 * killed then, may leave such a file. Failed reads are repeated. After ERR_IO,
 * or ERR_DATA (a permission is missing), out->step is -1, too, but there may be
 * a best checkpoint. */
err_code_t hdf5io_best_read(const struct hdf5io_io *io, const char *directory,
                            hdf5io_best_t *out, err_t *err);

/* As hdf5io_best_read, but sets *out even if the checkpoint does not exist. */
err_code_t hdf5io_best_named(const struct hdf5io_io *io, const char *directory,
                             hdf5io_best_t *out, err_t *err);

/* Write it, durably and whole. ERR_IO. */
err_code_t hdf5io_best_write(const char *directory, const hdf5io_best_t *best,
                             err_t *err);

/* Remove best.json if its checkpoint has a later step than [step], or does not
 * exist: the run has gone back to an earlier step. Call this before a
 * checkpoint of [step] gets its name: otherwise this checkpoint, or a later
 * one, could get the name that best.json has, and would be taken for the best
 * one. If the file cannot be read, it stays. A failure to remove it is logged.
 */
void hdf5io_best_tidy(const struct hdf5io_io *io, const char *directory,
                      int64_t step);

/* Remove best.json, as its checkpoint no longer belongs to this line of the
 * run. *dropped is set if there was such a file. ERR_IO. */
err_code_t hdf5io_best_drop(const char *directory, bool *dropped, err_t *err);

#endif
