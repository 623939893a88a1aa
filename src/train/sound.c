/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/sound.h"

#include "train/finite.h"
#include "train/inputs.h"

/* Number of tensors from the first one that is not finite in this rank's share
 * to the end; 0: all are finite. */
static int bad_left(const train_kept_t *kept)
{
    const int runs = hdf5io_share_runs(kept->share);
    int left = 0;

    for (int i = 0; i < runs && left == 0; i++) {
        const hdf5io_run_t run = hdf5io_share_run(kept->share, i);

        if (!train_all_finite(run.data, run.count))
            left = kept->count - run.tensor;
    }
    return left;
}

err_code_t train_sound(comm_group_t *group, const train_kept_t *kept,
                       int64_t step, int64_t saved_step, err_t *err)
{
    double left = bad_left(kept);
    err_code_t rc =
        comm_allreduce(group, &left, 1, COMM_FLOAT64, COMM_MAX, err);

    if (rc != ERR_OK || left == 0)
        return rc;
    return train_diverged(kept->tensors[kept->count - (int)left].name,
                          "nan or infinite", step, saved_step, err);
}
