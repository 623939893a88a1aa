/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_progress.h"

#include <stdio.h>

#include "base/clock.h"

#define EVERY 10.0 /* seconds */

void cmd_progress_begin(cmd_progress_t *progress, const char *name,
                        int64_t rows)
{
    const double now = clock_now();

    *progress = (cmd_progress_t){
        .name = name, .rows = rows, .start = now, .next = now + EVERY};
}

/* Append a duration: "42 s", "7 min", "3.5 h". */
static void duration_add(double seconds, str_buf_t *out)
{
    if (seconds < 100)
        str_buf_add(out, "%.0f s", seconds);
    else if (seconds < 6000)
        str_buf_add(out, "%.0f min", seconds / 60);
    else
        str_buf_add(out, "%.1f h", seconds / 3600);
}

void cmd_progress_line(const cmd_progress_t *progress, int64_t done,
                       double seconds, str_buf_t *out)
{
    char some[32], all[32];

    str_buf_add(out, "cddp-data: %s: %s of %s samples (%d %%)", progress->name,
                str_count((uint64_t)done, some, sizeof some),
                str_count((uint64_t)progress->rows, all, sizeof all),
                (int)(100 * (double)done / (double)progress->rows));
    if (done == 0)
        return;
    str_buf_add(out, ", about ");
    duration_add(seconds * (double)(progress->rows - done) / (double)done, out);
    str_buf_add(out, " left");
}

void cmd_progress_tell(void *context, int64_t done)
{
    cmd_progress_t *progress = context;
    const double now = clock_now();
    str_buf_t line = {0};

    if (now < progress->next)
        return;
    progress->next = now + EVERY;
    cmd_progress_line(progress, done, now - progress->start, &line);
    fprintf(stderr, "%s\n", line.text);
    str_buf_free(&line);
}
