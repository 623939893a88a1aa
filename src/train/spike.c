/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/spike.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

#define LEAST_PART 1e-6 /* least standard deviation, as a part of the mean */

double train_spike_score(const hdf5io_progress_t *progress, double loss)
{
    const int64_t count = progress->loss_recent;
    double mean = 0, squares = 0, deviation;

    if (count < TRAIN_SPIKE_LEAST)
        return 0;
    for (int64_t i = 0; i < count; i++)
        mean += progress->losses[i];
    mean /= (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (progress->losses[i] - mean) * (progress->losses[i] - mean);
    deviation = fmax(sqrt(squares / (double)count), LEAST_PART * fabs(mean));
    if (deviation > 0)
        return (loss - mean) / deviation;
    return loss > mean ? INFINITY : 0;
}

void train_spike_add(hdf5io_progress_t *progress, double loss)
{
    double *losses = progress->losses;

    check(isfinite(loss), "a loss of %g", loss);
    if (progress->loss_recent == HDF5IO_LOSSES_MAX)
        memmove(losses, losses + 1,
                (size_t)--progress->loss_recent * sizeof *losses);
    losses[progress->loss_recent++] = loss;
}
