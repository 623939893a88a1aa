/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * deadline: when must a run leave, so that its last checkpoint is complete
 * before Slurm ends the job? Pure: the caller says what time it is, and what it
 * has measured. Instants are those of base/clock.h, durations are in seconds.
 */
#ifndef CDDP_TRAIN_DEADLINE_H
#define CDDP_TRAIN_DEADLINE_H

#include <stdbool.h>

#include "slurm/watch.h"

/* Seconds that are kept for what is not measured, such as the end of the ranks
 * and of the step. */
#define TRAIN_DEADLINE_MARGIN SLURM_WATCH_MARGIN

typedef struct train_deadline {
    slurm_limits_t limits;
    /* Seconds to keep for a checkpoint until one was measured, but at most half
     * of the time that the job had left when its end became known. */
    double reserve;
    double step_s, save_s; /* slowest step and checkpoint; 0: not measured */
    double local_s;        /* slowest local checkpoint, likewise */
    bool warned;           /* train_deadline_kill_wait has returned true, in
                              this life or in an earlier one of the job */
} train_deadline_t;

/* Nothing is known of the end, so there is no deadline. */
train_deadline_t train_deadline(double reserve);

/* At [now] the end of the job became known. */
void train_deadline_limits(train_deadline_t *deadline,
                           const slurm_limits_t *limits, double now);

/* A step, a checkpoint, or a local checkpoint took [seconds]. */
void train_deadline_step(train_deadline_t *deadline, double seconds);
void train_deadline_save(train_deadline_t *deadline, double seconds);
void train_deadline_local(train_deadline_t *deadline, double seconds);

/*
 * Return the instant from which the run must leave; INFINITY: never. A rank
 * asks when a step begins, and all ranks learn the answer when the step ends.
 * So there must be time for that step, and for another one if the answer is no:
 * the instant is 2 x step + 1.5 x save + 15 s before the end. While the run has
 * made no step in this life ([started] false), there is nothing to save: 15 s
 * before the end.
 */
double train_deadline_instant(const train_deadline_t *deadline, bool started);

/* Return how many more seconds a save may take that began [since] seconds ago:
 * a run that leaves waits for it, and then saves once more. [local]: the save
 * writes a local checkpoint; if none was measured yet, it may take as long as a
 * checkpoint. */
double train_deadline_rest(const train_deadline_t *deadline, double since,
                           bool local);

/* Return how many of [seconds] the run may spend, from [now] on, on work that
 * is not necessary. Time is reserved for the end of the run, and with [saves]
 * also for a checkpoint. */
double train_deadline_spare(const train_deadline_t *deadline, double seconds,
                            bool saves, double now);

/* [deadline] for a run that has received SIGTERM, at the earliest at [now]: if
 * KillWait is known, the run also ends KillWait after [now]. */
train_deadline_t train_deadline_after_term(const train_deadline_t *deadline,
                                           double now);

/* Return whether KillWait is shorter than 1.5 x the [seconds] that the
 * checkpoints took for which a run that leaves waits, so that Slurm may kill
 * the run while it writes one after SIGTERM. True only once. */
bool train_deadline_kill_wait(train_deadline_t *deadline, double seconds);

#endif
