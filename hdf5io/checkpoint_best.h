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

typedef struct hdf5io_best {
    char metric[32]; /* "valid_loss" */
    double value;
    int64_t step;
} hdf5io_best_t;

/* Read it. False: there is none, or it cannot be read. */
bool hdf5io_best_read(const char *directory, hdf5io_best_t *out);

/* Write it, durably and whole. ERR_IO. */
err_code_t hdf5io_best_write(const char *directory, const hdf5io_best_t *best,
                             err_t *err);

#endif
