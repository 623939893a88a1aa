/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/progress.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

/* Maximum bytes of a line: as many as a pipe accepts in one write. Of a longer
 * line, only a part might be written at once; the rest would block the run. */
#define LINE_ROOM PIPE_BUF
#define VALUES_ROOM (LINE_ROOM - 256)

/* Write as many values as fit to [out]; metrics.jsonl has all of them. */
static void values_format(const obs_epoch_t *epoch, char out[VALUES_ROOM])
{
    static const char cut[] = "  ...";
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < epoch->value_count; i++) {
        char value[96];
        const size_t length =
            (size_t)snprintf(value, sizeof value, "  %s %.4g",
                             epoch->values[i].name, epoch->values[i].value);

        if (at + length + sizeof cut > VALUES_ROOM) {
            memcpy(out + at, cut, sizeof cut);
            return;
        }
        memcpy(out + at, value, length + 1);
        at += length;
    }
}

char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room)
{
    char valid[48] = "", accuracy[48] = "", values[VALUES_ROOM];

    if (!isnan(epoch->valid_loss))
        snprintf(valid, sizeof valid, "  valid loss %.4g", epoch->valid_loss);
    if (!isnan(epoch->accuracy))
        snprintf(accuracy, sizeof accuracy, "  accuracy %.2f %%",
                 100 * epoch->accuracy);
    values_format(epoch, values);
    snprintf(out, room,
             "epoch %" PRId64 "/%" PRId64 "  step %" PRId64
             "  loss %.4g%s%s%s  %.1f s",
             epoch->epoch, epoch->epochs, epoch->step, epoch->loss, valid,
             accuracy, values, epoch->seconds);
    return out;
}

/* A line that cannot be printed, or that nobody reads, is dropped, and the run
 * continues. */
void obs_progress_epoch(const obs_epoch_t *epoch)
{
    char line[LINE_ROOM]; /* the newline takes the place of the NUL */

    if (!file_takes_line(STDOUT_FILENO))
        return;
    str_print("%s\n", obs_epoch_format(epoch, line, sizeof line));
    fflush(stdout);
}
