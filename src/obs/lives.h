/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lives: RUNDIR/lives.jsonl, the history of a run over all starts. Each event
 * is a line with one JSON object (docs/FORMATS.md). Lines are only appended,
 * and each is on the disk before the call returns.
 *
 * Several processes may append: the ranks of a step, and cddp-srun, which
 * started the step.
 */
#ifndef CDDP_OBS_LIVES_H
#define CDDP_OBS_LIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "obs/spent.h"

/* event, its name in the file */
#define OBS_LIVES_MAP(X)        \
    X(BEGIN, "begin")           \
    X(RESUMED, "resumed")       \
    X(WEIGHTS, "weights")       \
    X(FIRST_STEP, "first_step") \
    X(CHECKPOINT, "checkpoint") \
    X(SIGNAL, "signal")         \
    X(ROLLBACK, "rollback")     \
    X(FAULT, "fault")           \
    X(END, "end")               \
    X(REQUEUE, "requeue")       \
    X(KILL_WAIT, "kill_wait")   \
    X(OTHER, "other") /* read: of a later version */

typedef enum obs_lives_event {
#define OBS_LIVES_ENUM(name, text) OBS_LIVES_##name,
    OBS_LIVES_MAP(OBS_LIVES_ENUM)
#undef OBS_LIVES_ENUM
} obs_lives_event_t;

/* The start that writes. Strings may be "" (outside Slurm), never NULL. */
typedef struct obs_lives_start {
    const char *job, *step_id, *nodes;
    int restart; /* number of requeues of the job before this start */
    int attempt; /* number of this start within the job, from 1 */
} obs_lives_start_t;

/* One line. */
typedef struct obs_lives_line {
    obs_lives_event_t event;
    int64_t step;       /* training step; -1: before the first */
    double seconds;     /* duration: of the write, or from the start of the
                           process to the first step; NAN: none */
    double bytes;       /* size of a checkpoint; NAN: none */
    int status;         /* END, REQUEUE: exit status of the step; otherwise
                           -1 */
    int culprit;        /* FAULT: rank; -1: unknown, or none */
    const char *host;   /* FAULT: host of the culprit; NULL: unknown */
    const char *detail; /* a sentence, a path, the name of a signal; NULL: none
                         */
    const obs_spent_t *spent; /* BEGIN, CHECKPOINT, END: what the time of the
                                 run was spent on so far; NULL: not known */
} obs_lives_line_t;

/* A line with no values besides these two. */
obs_lives_line_t obs_lives_line(obs_lives_event_t event, int64_t step);

/* Append a line to [run_dir]/lives.jsonl by one write, and fsync it. If a write
 * was cut off before (a crash, a full disk), the line begins on a new line.
 * ERR_IO, ERR_DATA (no regular file), ERR_MEMORY. */
err_code_t obs_lives_append(const char *run_dir, const obs_lives_start_t *start,
                            const obs_lives_line_t *line, err_t *err);

/* A line as it was read. Strings are valid during the visit only, and "" where
 * the line has none. */
typedef struct obs_lives_read {
    obs_lives_start_t start;
    obs_lives_line_t line;
    const char *time; /* wall-clock time, as clock_format writes it */
} obs_lives_read_t;

/* Call [visit] for each whole line of [run_dir]/lives.jsonl, in their order.
 * Lines that are not such an object are left out; *skipped (NULL allowed) is
 * their number. A missing file has no lines. ERR_IO, ERR_DATA (no regular
 * file). */
typedef void obs_lives_visit_fn(void *context, const obs_lives_read_t *read);
err_code_t obs_lives_read(const char *run_dir, obs_lives_visit_fn *visit,
                          void *context, int *skipped, err_t *err);

#endif
