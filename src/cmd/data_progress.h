/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_progress: now and then a line on standard error that says how far a
 * command of cddp-data is, and how long it will take. */
#ifndef CDDP_CMD_DATA_PROGRESS_H
#define CDDP_CMD_DATA_PROGRESS_H

#include <stdint.h>

#include "base/str.h"

typedef struct cmd_progress {
    const char *name; /* what is written: "train" */
    int64_t rows;     /* samples in all */
    double start, next;
} cmd_progress_t;

/* The first line follows after 10 seconds. */
void cmd_progress_begin(cmd_progress_t *progress, const char *name,
                        int64_t rows);

/* [context] is the progress: [done] of its samples are written. Prints a line
 * if the last one is 10 seconds old. */
void cmd_progress_tell(void *context, int64_t done);

/* Append the line for [done] samples after [seconds], without its end. */
void cmd_progress_line(const cmd_progress_t *progress, int64_t done,
                       double seconds, str_buf_t *out);

#endif
