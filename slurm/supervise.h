/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * supervise: what a supervisor of a job does after a step of training has
 * ended: end the job, requeue it, or start the step again within the same
 * allocation. Pure: asks nobody, starts nothing.
 */
#ifndef CDDP_SLURM_SUPERVISE_H
#define CDDP_SLURM_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts in a row that may end without a newer checkpoint. */
#define SLURM_FRUITLESS_MOST 3

/* How many starts in a row may fail because srun creates no step. FIRST: while
 * no step of this life of the job has run; the request is then probably wrong.
 * MOST: after a step has run; the controller is then probably away, or was just
 * restarted. With the waits of slurm_decide, FIRST is reached after a minute
 * and MOST after 23 minutes. BUSY: how many of them may fail, after a step has
 * run, because the nodes are busy; Slurm then probably believes that a step
 * still runs that has ended, and only a requeue frees the nodes. After FIRST
 * the job ends; after MOST and BUSY it is requeued. */
#define SLURM_UNLAUNCHED_FIRST 10
#define SLURM_UNLAUNCHED_MOST 60
#define SLURM_UNLAUNCHED_BUSY 10

/*
 * The status of a step. srun returns the highest status of its tasks, so the
 * 137 of a killed rank hides the 76 of the others: if the step left a record
 * (recorded >= 0), its status counts. Without a record, a death by a signal
 * (>= 128) and any status that is none of cddp's count as a failed peer (76),
 * except 126 and 127: the program cannot be run.
 */
int slurm_step_status(int srun_status, int recorded);

/* Is [text] the message of an IO error that waiting does not mend: no space
 * left, quota exceeded, or a read-only file system? */
bool slurm_io_is_final(const char *text);

/* What the decision depends on. */
typedef struct slurm_ended {
    int status;          /* of the step: slurm_step_status */
    bool ended_by_slurm; /* Slurm is ending the job: time limit, scancel */
    bool job_gone;       /* Slurm has ended the job before this start */
    /* Number of starts in a row, including this one, for which srun created no
     * step. 0: this start has run. Otherwise the members below are as they were
     * before this start. */
    int unlaunched;
    int busy;         /* those of them for which the nodes were busy */
    bool launched;    /* a step of this life of the job has run */
    bool io_final;    /* slurm_io_is_final */
    int io_failures;  /* steps in a row that ended with 74, with this one */
    bool io_requeued; /* the job was requeued because of a 74, and no newer
                         checkpoint has been written since */
    int fruitless;    /* starts in a row, over requeues, that have ended
                         without a newer checkpoint, with this one */
    double left;      /* seconds that the job has left; INFINITY: no limit */
    double needed;    /* seconds below which a restart is not worth it */
} slurm_ended_t;

typedef enum slurm_action {
    SLURM_END,     /* end with [status] */
    SLURM_REQUEUE, /* requeue the job, and end with 75 */
    SLURM_RESTART  /* start the step again after [wait] seconds */
} slurm_action_t;

typedef struct slurm_verdict {
    slurm_action_t action;
    int status;
    double wait;
    const char *why; /* static text: "the time limit is near" */
} slurm_verdict_t;

/* Decide. docs/ADMIN.md has the table. */
slurm_verdict_t slurm_decide(const slurm_ended_t *ended);

#endif
