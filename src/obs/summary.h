/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* summary: RUNDIR/summary.json, the results of a run, published atomically. */
#ifndef CDDP_OBS_SUMMARY_H
#define CDDP_OBS_SUMMARY_H

#include <stdint.h>

#include "base/err.h"
#include "obs/metrics.h"

/* The keys of the file are the names of the fields; NaN becomes null; status is
 * written as a number, with "status_text" beside it. */
typedef struct obs_summary {
    err_code_t status;
    int64_t step, epoch;       /* finished ones */
    double loss, accuracy;     /* validation; exact (%.17g) */
    const obs_value_t *values; /* further numbers, in an object "metrics" */
    int value_count;
    double bound;          /* best possible accuracy on this data */
    double seconds;        /* of this life of the run */
    double first_step_s;   /* from the process's start to its first step */
    double main_to_step_s; /* from main() to the end of the first step */
    double first_step_at;  /* wall clock (since 1970) of that end; 0: none */
    double data_share;     /* fraction of step time spent waiting for data */
    double peak_rss_mb;    /* 10^6 bytes, of the process with most memory */
    int world_size;
} obs_summary_t;

/* Write [directory]/summary.json. ERR_IO. */
err_code_t obs_summary_write(const char *directory,
                             const obs_summary_t *summary, err_t *err);

#endif
