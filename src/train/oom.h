/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * oom: tells a rank that the kernel killed for lack of memory from other
 * deaths. Only a rank on the same node can see that, in the counters of their
 * cgroup. It writes the file RUNDIR/oom, for the rank that writes exit.json,
 * which may be on another node.
 */
#ifndef CDDP_TRAIN_OOM_H
#define CDDP_TRAIN_OOM_H

#include "base/err.h"
#include "slurm/job.h"

#define TRAIN_OOM_CAUSE_MAX 160

typedef struct train_oom {
    const char *dir; /* run directory */
    const slurm_job_t *job;
    const char *root; /* see slurm/step_memory.h; "" except in tests */
    int64_t before;   /* kills before this life; -1: unknown */
    /* "": no rank of this node was killed for lack of memory */
    char cause[TRAIN_OOM_CAUSE_MAX];
} train_oom_t;

/* Count the kills so far. [dir] and [job] must outlive the object. */
train_oom_t train_oom_begin(const char *dir, const slurm_job_t *job,
                            const char *root);

/* To be called if a rank of this node has died, which ends the run: [err] has
 * the code ERR_PEER. If the kernel has killed a process of this step since
 * train_oom_begin, [err] becomes ERR_MEMORY with the same culprit, oom->cause
 * is set, and the file is written. Returns err->code. */
err_code_t train_oom_look(train_oom_t *oom, err_t *err);

/* Has a rank written the file in this life? Then *out is its error, and
 * [cause] the cause. */
bool train_oom_found(const train_oom_t *oom, err_t *out,
                     char cause[TRAIN_OOM_CAUSE_MAX]);

#endif
