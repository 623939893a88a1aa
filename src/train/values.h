/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * values: looks at every number of a dataset before training begins, so that a
 * bad one is found in minutes and not in the step that first uses it. Ranks
 * divide the samples among themselves.
 */
#ifndef CDDP_TRAIN_VALUES_H
#define CDDP_TRAIN_VALUES_H

#include <stdbool.h>

#include "hdf5io/dataset.h"

typedef struct train_values {
    const char *what; /* "data.train", for messages */
    int rank, size;   /* this rank looks at part [rank] of [size] */
    bool inputs;      /* at inputs, too, not only at targets */
    /* NULL or called after each read. */
    void (*alive)(void *context);
    void *context;
} train_values_t;

/*
 * Read this rank's part of the samples. Images that are cropped are read as a
 * whole. ERR_DATA names file, dataset, row and value of the first number that
 * training cannot take: a class or token out of range, probabilities that do
 * not sum to 1, a nan or an inf; otherwise the errors of
 * hdf5io_dataset_read_fields. Ranks without such a number get ERR_OK, so a vote
 * has to follow. Blocks while data is read; collective if reads are (MPI-IO),
 * else local.
 */
err_code_t train_values_check(const train_values_t *values,
                              hdf5io_dataset_t *dataset, err_t *err);

#endif
