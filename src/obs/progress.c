/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room)
{
    char valid[48] = "", accuracy[48] = "";
    char values[OBS_VALUES_MAX * 96] = "";
    size_t at = 0;

    if (!isnan(epoch->valid_loss))
        snprintf(valid, sizeof valid, "  valid loss %.4g", epoch->valid_loss);
    if (!isnan(epoch->accuracy))
        snprintf(accuracy, sizeof accuracy, "  accuracy %.2f %%",
                 100 * epoch->accuracy);
    for (int i = 0; i < epoch->value_count && at < sizeof values; i++)
        at += (size_t)snprintf(values + at, sizeof values - at, "  %s %.4g",
                               epoch->values[i].name, epoch->values[i].value);
    snprintf(out, room,
             "epoch %" PRId64 "/%" PRId64 "  step %" PRId64
             "  loss %.4g%s%s%s  %.1f s",
             epoch->epoch, epoch->epochs, epoch->step, epoch->loss, valid,
             accuracy, values, epoch->seconds);
    return out;
}

/* A line that cannot be printed, or that nobody takes, is lost: the run is
 * worth more. */
void obs_progress_epoch(const obs_epoch_t *epoch)
{
    char line[256 + OBS_VALUES_MAX * 96];

    if (!file_takes_line(STDOUT_FILENO))
        return;
    printf("%s\n", obs_epoch_format(epoch, line, sizeof line));
    fflush(stdout);
}
