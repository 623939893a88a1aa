/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * schedule: the learning rate as a function of the number of the step, and
 * schedules that watch a metric. Computed by the host. Thread rule: several
 * threads may use a schedule.
 */
#ifndef CDDP_OPTIM_SCHEDULE_H
#define CDDP_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/tree.h"

typedef struct optim_schedule optim_schedule_t;

/* The length of a run, in updates. */
typedef struct optim_span {
    int64_t steps;       /* updates of the whole run */
    int64_t epoch_steps; /* updates of an epoch, >= 1 */
} optim_span_t;

/* Open from the run file's `schedule` value: "constant" (also if absent),
 * {cosine: {warmup_steps: 100}}, ... ERR_CONFIG with file:line:column. */
err_code_t optim_schedule_open(const tree_t *schedule, const optim_span_t *span,
                               optim_schedule_t **out, err_t *err);
void optim_schedule_close(optim_schedule_t *schedule); /* NULL allowed */

/* Learning rate of update [step] (from 0) for the base rate [lr]. Pure. */
double optim_schedule_lr(const optim_schedule_t *schedule, double lr,
                         int64_t step);

/* The state of a schedule that watches a metric; all zeros before the first
 * value. Checkpoints store it. */
typedef struct optim_watch {
    double best;
    int64_t seen; /* 1 if [best] is set, else 0 */
    int64_t bad;  /* number of values in a row without improvement */
    int64_t rest; /* number of next values that will not be counted in [bad] */
    int64_t cuts; /* number of cuts of the learning rate so far */
} optim_watch_t;

/* The metric that the schedule watches ("loss", "accuracy"); NULL: none. */
const char *optim_schedule_metric(const optim_schedule_t *schedule);

/* Pass the new [value] of the metric (NaN: no improvement) to a schedule that
 * watches it. Returns whether the learning rate is cut now. */
bool optim_schedule_watch(const optim_schedule_t *schedule, double value,
                          optim_watch_t *watch);

/* Learning rate after the cuts so far; [lr] is from optim_schedule_lr. Pure. */
double optim_schedule_cut(const optim_schedule_t *schedule,
                          const optim_watch_t *watch, double lr);

/* The option table of the schedule [name]; NULL: there is none. */
const opt_row_t *optim_schedule_option_rows(const char *name);

#endif
