/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What cddp-srun reads from RUNDIR/lives.jsonl: has the run made progress? */
#ifndef CDDP_CMD_SRUN_HISTORY_H
#define CDDP_CMD_SRUN_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "obs/lives.h"
#include "slurm/supervise.h"

typedef struct srun_history {
    int64_t checkpoint; /* step of the newest checkpoint; -1: none */
    /* Starts of this job in a row, with the newest one, that wrote no newer
     * checkpoint. */
    int fruitless;
    /* How the last of them ended, the newest last; "" if nobody knows. */
    char causes[SLURM_FRUITLESS_MOST][256];
    /* The job was requeued because of a 74, and no newer checkpoint has been
     * written since. */
    bool io_requeued;
    bool ended;                  /* the newest start has an END line */
    double first_step_s, save_s; /* maximum over all starts; 0: none */
    /* The start whose lines are being read. */
    char job[32];
    int restart, attempt;
} srun_history_t;

/* Read the history of [run_dir], as it is after the start [now] of this job.
 * [now] has ended, and counts even if it wrote no line. [now] NULL: no start
 * has ended. ERR_IO, ERR_DATA. */
err_code_t srun_history_read(const char *run_dir, const obs_lives_start_t *now,
                             srun_history_t *out, err_t *err);

#endif
