/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * progress: lines on standard output for people who watch the job. On a
 * terminal, the last line shows where the run is, and is drawn again and again.
 * Otherwise such a line is printed at times.
 *
 * All lines of a run together have at most OBS_PROGRESS_WEEK bytes a week; what
 * is more is left out, which is said once. A line that cannot be printed, or
 * that nobody reads, is dropped, too; file_takes_line says how long a call
 * waits for the reader.
 *
 * Instants are those of base/clock.h. Thread rule: one thread.
 */
#ifndef CDDP_OBS_PROGRESS_H
#define CDDP_OBS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obs/metrics.h"

#define OBS_PROGRESS_WEEK 2e6

/* Seconds from the first step to the first line of progress, and from one
 * drawing on a terminal to the next. */
#define OBS_PROGRESS_FIRST 10.0
#define OBS_PROGRESS_DRAW 0.5

typedef struct obs_progress obs_progress_t;

/* Begin at the instant [now]. Standard output decides whether lines are drawn
 * or printed; printed lines come every [every] seconds. ERR_MEMORY. */
err_code_t obs_progress_open(double every, double now, obs_progress_t **out,
                             err_t *err);
void obs_progress_close(obs_progress_t *progress); /* NULL allowed */

/* Where the run is. */
typedef struct obs_place {
    /* number of the epoch in progress, from 1; number of epochs of the run */
    int64_t epoch, epochs;
    int64_t epoch_step, epoch_steps; /* steps done in the epoch, of so many */
    int64_t step;                    /* number of updates done */
    double loss;                     /* of the newest step */
    /* sums over this start of the run: samples, and seconds that steps have
     * waited for communication */
    double samples, exposed_s;
    double left;  /* seconds until the job ends; INFINITY: no end is known */
    double saved; /* instant of the newest checkpoint; NAN: there is none */
} obs_place_t;

/* To be called after a step: is it time to call obs_progress_step? [progress]
 * NULL: never. Cheap. */
bool obs_progress_due(obs_progress_t *progress, double now);

/* Draw or print where the run is. Rates are those since the last call; the
 * remaining time follows from all steps since the first call, with whatever
 * came between them. */
void obs_progress_step(obs_progress_t *progress, const obs_place_t *place,
                       double now);

/* Print a line about an event. The format has no newline. [progress] NULL:
 * nothing is printed. */
void obs_progress_say(obs_progress_t *progress, double now, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

/* Print text of whole lines, whatever its size. */
void obs_progress_text(obs_progress_t *progress, const char *text);

/* Format samples per second as "8.25" or "51470" into [out] of [room] bytes:
 * speeds below 1000 are rounded to four significant digits, others to a whole
 * number, which has no exponent. Returns [out]. */
char *obs_speed_format(double speed, char *out, size_t room);

typedef struct obs_epoch {
    /* number of the finished epoch, from 1; number of epochs of the run */
    int64_t epoch, epochs;
    int64_t step;
    double loss; /* mean loss over the training samples of the epoch */
    /* NaN: not evaluated, or accuracy of a model that is no classifier */
    double valid_loss, accuracy;
    const obs_value_t *values; /* further numbers, printed after accuracy */
    int value_count;
    double seconds; /* seconds since the run began */
} obs_epoch_t;

/* Print one line: "epoch 3/5  step 235  loss 0.0612  valid loss 0.0588
 * accuracy 97.90 %  12.3 s". [progress] NULL: nothing is printed. */
void obs_progress_epoch(obs_progress_t *progress, const obs_epoch_t *epoch,
                        double now);

/* Format the line of obs_progress_epoch, without newline, into [out] of [room]
 * bytes; returns [out]. NaN is left out. The line must fit into one write to a
 * pipe, so after too many values it ends with "..." behind a whole value. */
char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room);

#endif
