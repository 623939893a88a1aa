/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * metrics: RUNDIR/metrics.jsonl. Each logged step, each evaluation, checkpoint
 * and resume is a row: one line with a JSON object (docs/FORMATS.md). A crash
 * loses at most the last row. A resumed run removes the rows after the step at
 * which it resumes, so each step has one row. Thread rule: one thread.
 */
#ifndef CDDP_OBS_METRICS_H
#define CDDP_OBS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct obs_metrics obs_metrics_t;

/* One training step; the keys of its row are the names of the fields, and
 * "time". */
typedef struct obs_step {
    int64_t step;    /* number of updates done, from 1 */
    int64_t epoch;   /* number of the epoch in progress, from 0 */
    int64_t samples; /* samples of the epoch that all ranks have consumed */
    double loss, lr;
    double step_s, data_s, forward_s, backward_s, comm_s, comm_exposed_s;
    double comm_bytes; /* bytes that rank 0 has reduced */
    double samples_per_s, grad_norm;
    /* Of the training data on rank 0, since the row before: bytes read from
     * files, seconds of decoding chunks, tries after storage refused, seconds
     * of waiting in the main thread. */
    double read_bytes, decode_s, retries, data_wait_s;
    const struct obs_value *values; /* further numbers of the row */
    int value_count;
} obs_step_t;

/* A further number of a row: its key (name) and its value. */
#define OBS_VALUES_MAX 112
typedef struct obs_value {
    char name[64];
    double value;
} obs_value_t;

/* One evaluation: a row with "event": "eval". An accuracy of NaN becomes null.
 * Each of [values] is written under its name after the accuracy. */
typedef struct obs_eval {
    int64_t step, epoch;
    double loss, accuracy;
    const obs_value_t *values;
    int value_count; /* at most OBS_VALUES_MAX */
} obs_eval_t;

/* A text of a row: its key (name), and the text. */
typedef struct obs_text {
    const char *name, *text;
} obs_text_t;

/* Another event at the boundary after [step]: a row with "event": [name], with
 * [texts] and [values]. [object] is a JSON object, which is written as it is,
 * with the key [object_name]. In a text, control characters become '?'. */
typedef struct obs_event {
    const char *name;
    int64_t step, epoch;
    const obs_text_t *texts;
    int text_count;
    const obs_value_t *values;
    int value_count;                  /* at most OBS_VALUES_MAX */
    const char *object_name, *object; /* NULL: none */
} obs_event_t;

/* Write the character [c] of a text to [out] as JSON wants it, with a NUL
 * behind it: quotes and backslashes get a backslash, control characters become
 * '?'. Returns [out]. */
const char *obs_text_escape(char c, char out[3]);

/* Open [path] to append rows. Existing rows with a step > [step] are removed
 * first (the file is replaced atomically). ERR_IO. */
err_code_t obs_metrics_open(const char *path, int64_t step, obs_metrics_t **out,
                            err_t *err);

/* Append a row, with the wall-clock time of the call. Allocates nothing, unless
 * the row has an object. If a row cannot be written (disk full, file removed),
 * a warning is logged once and the run continues. Numbers that are not finite
 * become null. An evaluation of a step that is already in the file is not
 * written again: false. */
void obs_metrics_step(obs_metrics_t *metrics, const obs_step_t *row);
bool obs_metrics_eval(obs_metrics_t *metrics, const obs_eval_t *row);
void obs_metrics_event(obs_metrics_t *metrics, const obs_event_t *row);

void obs_metrics_close(obs_metrics_t *metrics); /* NULL allowed */

#endif
