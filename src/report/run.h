/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* run: all that a report says about one run, read from its directory. */
#ifndef CDDP_REPORT_RUN_H
#define CDDP_REPORT_RUN_H

#include <jansson.h>

#include "base/err.h"
#include "report/curves.h"

typedef struct report_run {
    report_curves_t *curves;
    json_t *about; /* the rest, an object; page.js has its keys */
} report_run_t;

/*
 * Read the run in [dir]. What is missing, cut off or of a later version is
 * left out, and a note in about.notes says so. ERR_DATA: [dir] is no run
 * directory. ERR_IO: a file cannot be read. ERR_MEMORY. report_run_free frees
 * what is inside [out], also after an error.
 */
err_code_t report_run_read(const char *dir, report_run_t *out, err_t *err);
void report_run_free(report_run_t *run);

/* Is [dir] a run directory? Looks for the files that every run writes. */
bool report_run_is(const char *dir);

/* Put into the error that [dir] is no run directory. ERR_DATA. */
err_code_t report_run_refuse(const char *dir, err_t *err);

/* Read the object in [dir]/[name]; *out NULL: there is none, or it is no JSON
 * object; then *[note] says so (""; there is no such file), to be freed. */
json_t *report_json_read(const char *dir, const char *name, char **note);

#endif
