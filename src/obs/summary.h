/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* summary: RUNDIR/summary.json, the results of a run, published atomically. */
#ifndef CDDP_OBS_SUMMARY_H
#define CDDP_OBS_SUMMARY_H

#include <stdint.h>

#include "base/err.h"
#include "obs/metrics.h"
#include "obs/spent.h"

/* Contents of the file: the keys are the names of the fields. NaN becomes null.
 * status is written as a number, and its text under the key "status_text". */
typedef struct obs_summary {
    err_code_t status;
    int64_t step, epoch;   /* number of finished steps and epochs */
    double loss, accuracy; /* of the last validation; written exactly (%.17g) */
    const obs_value_t *values; /* further numbers, in an object "metrics" */
    int value_count;
    double bound;   /* best possible accuracy on this data */
    double seconds; /* seconds from main() to the end of the run */
    /* seconds from the start of the process to the end of the first step */
    double first_step_s;
    /* seconds from main() to the end of the first step */
    double main_to_step_s;
    /* wall-clock time (seconds since 1970) at the end of the first step; 0:
     * there was none */
    double first_step_at;
    /* part of the step time that was spent waiting for data, 0 to 1 */
    double data_share;
    /* peak resident memory of the process with the most, in 10^6 bytes */
    double peak_rss_mb;
    int world_size;
    /* an object "spent" with a number of seconds for each kind, summed over all
     * starts of the run, and their sum under the key "wall" */
    const obs_spent_t *spent;
    /* CPU time of all ranks in this start, divided by the time of their cores;
     * of a run that is not complete, of the rank that writes */
    double cpu_efficiency;
    /* memory that the ranks of a node may use together, in 10^6 bytes */
    double memory_limit_mb;
} obs_summary_t;

/* Write [directory]/summary.json. ERR_IO. */
err_code_t obs_summary_write(const char *directory,
                             const obs_summary_t *summary, err_t *err);

#endif
