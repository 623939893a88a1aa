/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spent: what the time of a run was spent on. Each interval between two marks
 * counts as one kind, so the kinds sum to the wall time. Pure: the caller says
 * what time it is. Instants are those of base/clock.h, durations are in
 * seconds.
 */
#ifndef CDDP_OBS_SPENT_H
#define CDDP_OBS_SPENT_H

#include <stddef.h>

/* kind, its key in files, its name in the printed table */
#define OBS_SPENT_MAP(X)                                   \
    X(START, "start_up", "start-up")                       \
    X(DATA, "data", "waiting for data")                    \
    X(FORWARD, "forward", "forward")                       \
    X(BACKWARD, "backward", "backward")                    \
    X(COMM, "exposed_comm", "exposed communication")       \
    X(UPDATE, "update", "update") /* the rest of a step */ \
    X(EVAL, "evaluation", "evaluation")                    \
    X(SAVE, "checkpoints", "checkpoints")                  \
    X(LOST, "lost", "lost to restarts")                    \
    X(OTHER, "other", "other")

typedef enum obs_spent_kind {
#define OBS_SPENT_ENUM(name, key, text) OBS_SPENT_##name,
    OBS_SPENT_MAP(OBS_SPENT_ENUM)
#undef OBS_SPENT_ENUM
        OBS_SPENT_KINDS
} obs_spent_kind_t;

typedef struct obs_spent {
    double seconds[OBS_SPENT_KINDS];
    double mark; /* instant up to which all time is counted */
    /* Wall-clock time (seconds since 1970) of [mark]; only set in what is
     * written to a file and read from it. */
    double wall;
} obs_spent_t;

/* The key of a kind in files. Static text. */
const char *obs_spent_key(obs_spent_kind_t kind);

/* Count the time since the last mark as [kind]. */
void obs_spent_mark(obs_spent_t *spent, obs_spent_kind_t kind, double now);

/* Measured parts of a step; what is left of it is the update. */
typedef struct obs_spent_step {
    double data, forward, backward, comm;
} obs_spent_step_t;

/* Count the time since the last mark as a step of these parts. If they sum to
 * more (on a device, a wait may be of the step before), all are scaled. */
void obs_spent_step(obs_spent_t *spent, const obs_spent_step_t *step,
                    double now);

/* Continue in [spent] what an earlier start of the run had [before]. The time
 * from then to this start, which began at the wall-clock time [started], is
 * lost to restarts, unless the run was [complete]: then nobody waited. */
void obs_spent_continue(obs_spent_t *spent, const obs_spent_t *before,
                        double started, int complete);

double obs_spent_total(const obs_spent_t *spent);

/* Write a table, a line for each kind with any time and for the total, to [out]
 * of [room] bytes; returns [out]. The text ends with a newline. */
#define OBS_SPENT_TABLE 1024
char *obs_spent_format(const obs_spent_t *spent, char *out, size_t room);

/* Write a duration as "45 s", "12 min", "3 h 05 min" or "2 d 04 h" to [out] of
 * [room] bytes; returns [out]. Not a number, or no end: "?". */
char *obs_duration_format(double seconds, char *out, size_t room);

#endif
