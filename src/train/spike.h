/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spike: is a loss far above the losses of the steps before? The losses are a
 * part of the run's progress, the oldest first, so a resumed run judges as one
 * that was never interrupted. They are summed in that order, so equal losses
 * give equal scores, bit for bit. Nothing is allocated.
 */
#ifndef CDDP_TRAIN_SPIKE_H
#define CDDP_TRAIN_SPIKE_H

#include "hdf5io/checkpoint.h"

/* Losses that must be known before one is judged. */
#define TRAIN_SPIKE_LEAST 20

/* Return by how many standard deviations [loss] is above the mean of the losses
 * of [progress]; negative: it is below. 0 if too few losses are known. A
 * standard deviation below 1e-6 of the mean is taken as 1e-6 of the mean, so
 * that rounding is no spike. */
double train_spike_score(const hdf5io_progress_t *progress, double loss);

/* Add a finite [loss]; the oldest of HDF5IO_LOSSES_MAX losses is dropped. */
void train_spike_add(hdf5io_progress_t *progress, double loss);

#endif
