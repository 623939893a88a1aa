/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * owner: the text in RUNDIR/lock, which says who uses a run directory. On a
 * file system without locks, a second run can learn of the first only by it.
 */
#ifndef CDDP_TRAIN_OWNER_H
#define CDDP_TRAIN_OWNER_H

#include "slurm/job.h"

/* The text of this process, a task of [job]. The first line is for people:
 * "Slurm step 12.0 on host n1, process 123". The second is read by
 * train_owner_look. The caller frees it. */
char *train_owner_text(const slurm_job_t *job);

typedef enum train_owner_state {
    TRAIN_OWNER_GONE,
    TRAIN_OWNER_ALIVE,
    TRAIN_OWNER_UNKNOWN /* on another host, and no step of this Slurm */
} train_owner_state_t;

/* Does the process that wrote [text] still run? On this host, the process is
 * looked for; the step of another host is asked for by `squeue`. [mine] is the
 * text of this process. Blocks for at most SLURM_ASK_TIMEOUT seconds. */
train_owner_state_t train_owner_look(const char *text, const char *mine);

#endif
