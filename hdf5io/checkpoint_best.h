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

/* Read it. out->step is -1 if there is no such file, or if the checkpoint that
 * it names is not there: a run that went back, and was killed then, may leave
 * such a file. Failed reads are repeated; ERR_IO, or ERR_DATA without
 * permission: storage does not tell what is there, so out->step is -1, too, but
 * there may be one. */
err_code_t hdf5io_best_read(const struct hdf5io_io *io, const char *directory,
                            hdf5io_best_t *out, err_t *err);

/* Write it, durably and whole. ERR_IO. */
err_code_t hdf5io_best_write(const char *directory, const hdf5io_best_t *best,
                             err_t *err);

/* Remove it if its checkpoint is of a later step than [step], which is that of
 * a line that the run has left, or is not there. To be called before a
 * checkpoint of [step] gets its name: it could have the name of the one that
 * was left. A file that cannot be read stays; a failure to remove it is logged.
 */
void hdf5io_best_tidy(const struct hdf5io_io *io, const char *directory,
                      int64_t step);

/* Remove it, as its checkpoint is no more of this line of the run. *dropped is
 * set if there was one. ERR_IO. */
err_code_t hdf5io_best_drop(const char *directory, bool *dropped, err_t *err);

#endif
