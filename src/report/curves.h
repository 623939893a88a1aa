/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* curves: what metrics.jsonl holds, in bounded memory: each number of a row as
 * a curve over the steps, what each rank needed, and the rows of events. Thread
 * rule: one thread. */
#ifndef CDDP_REPORT_CURVES_H
#define CDDP_REPORT_CURVES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "report/bins.h"
#include "report/loads.h"
#include "report/row.h"

/* Curves and events beyond these are left out. */
#define REPORT_CURVES_MAX 256
#define REPORT_EVENTS_MAX 2000

typedef struct report_curve {
    char *name; /* key of the row; "valid/KEY" for evaluations,
                   "checkpoint/KEY" for checkpoints; may hold any bytes */
    report_bins_t bins;
} report_curve_t;

typedef struct report_curves {
    report_curve_t *curves[REPORT_CURVES_MAX];
    int count;
    int order[REPORT_FIELDS_MAX]; /* index + 1 of the curve of field i in the
                                     row of a step before; 0: not known */
    int64_t rows;
    int64_t left_out; /* numbers and events beyond the limits above */
    int64_t step;     /* the largest one; -1: none */
    char begun[32];   /* "time" of the first and of the last row; "": none */
    char time[32];
    double loss, speed; /* of the last step: loss, samples per second; NAN */
    /* The best evaluation: the highest accuracy or, where there is none, the
     * lowest loss. */
    double best; /* NAN: none */
    int64_t best_step;
    bool best_is_accuracy;
    report_loads_t *loads; /* rows of the event "ranks"; NULL: none */
    /* rows of all other events (resume, and those of later versions): objects
     * with their numbers and texts */
    json_t *events;
} report_curves_t;

err_code_t report_curves_open(report_curves_t **out, err_t *err);

/* Add a row. ERR_MEMORY. */
err_code_t report_curves_add(report_curves_t *curves, const report_row_t *row,
                             err_t *err);

/* The curve called [name]; NULL: there is none. */
const report_curve_t *report_curves_find(const report_curves_t *curves,
                                         const char *name);

void report_curves_close(report_curves_t *curves); /* NULL allowed */

/* [text] as a JSON string, safe for people as by str_visible_dup; NULL: out of
 * memory. */
json_t *report_json_text(const char *text);

#endif
