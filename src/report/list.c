/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/list.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/history.h"
#include "report/rows.h"
#include "report/run.h"

#define LINE "%-12s %12s  %-24s  %-24s  %s\n"

/* Read the events and the last row of the run in [dir]. */
static err_code_t events_read(const char *dir, report_curves_t *curves,
                              err_t *err)
{
    report_rows_t *rows = NULL;
    report_row_t row;
    bool got = true, missing = false;
    err_code_t rc = report_rows_open(dir, &rows, &missing, err);

    if (missing)
        return ERR_OK;
    while (rc == ERR_OK && got) {
        rc = report_rows_next_event(rows, &row, &got, err);
        if (rc == ERR_OK && got)
            rc = report_curves_add(curves, &row, err);
    }
    report_rows_close(rows);
    return rc;
}

static void line_print(const char *dir, const report_curves_t *curves,
                       const report_history_t *history, str_buf_t *out)
{
    const int64_t step =
        curves->step > history->step ? curves->step : history->step;
    const char *time =
        strcmp(curves->time, history->time) > 0 ? curves->time : history->time;
    char state[64], best[64] = "-", steps[32] = "-";

    if (step >= 0)
        snprintf(steps, sizeof steps, "%" PRId64, step);
    if (isfinite(curves->best))
        snprintf(best, sizeof best, "%s %.5g",
                 curves->best_is_accuracy ? "accuracy" : "loss", curves->best);
    str_buf_add(out, LINE,
                report_state_text(report_state(dir, history), history->status,
                                  state, sizeof state),
                steps, best, time[0] != '\0' ? time : "-", dir);
}

/* Append the line of the run in [dir]. ERR_MEMORY; other errors are in the
 * line. */
static err_code_t run_print(const char *dir, str_buf_t *out, err_t *err)
{
    report_curves_t *curves = NULL;
    report_history_t history = {.events = NULL};
    err_t fault = ERR_INIT;
    err_code_t rc = report_curves_open(&curves, &fault);

    if (rc == ERR_OK)
        rc = report_history_read(dir, &history, &fault);
    if (rc == ERR_OK)
        rc = events_read(dir, curves, &fault);
    if (rc == ERR_OK)
        line_print(dir, curves, &history, out);
    else if (rc == ERR_MEMORY)
        err_copy(err, &fault);
    else
        str_buf_add(out, LINE "    %s\n", "unreadable", "-", "-", "-", dir,
                    fault.text);
    report_history_free(&history);
    report_curves_close(curves);
    return rc == ERR_MEMORY ? rc : ERR_OK;
}

/* Append the runs directly below [dir]. */
static err_code_t below_print(const char *dir, int *found, str_buf_t *out,
                              err_t *err)
{
    struct dirent **entries = NULL;
    const int count = scandir(dir, &entries, NULL, alphasort);
    err_code_t rc = count < 0 ? report_run_refuse(dir, err) : ERR_OK;

    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *path = str_printf("%s/%s", dir, name);
        struct stat kind;

        if (rc == ERR_OK && name[0] != '.' && lstat(path, &kind) == 0 &&
            S_ISDIR(kind.st_mode) && report_run_is(path)) {
            rc = run_print(path, out, err);
            ++*found;
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

err_code_t report_list(char *const *dirs, int count, str_buf_t *out, err_t *err)
{
    err_code_t rc = ERR_OK;
    int found = 0;

    str_buf_add(out, LINE, "STATE", "STEP", "BEST", "LAST SIGN OF LIFE", "RUN");
    for (int i = 0; rc == ERR_OK && i < count; i++) {
        if (report_run_is(dirs[i])) {
            rc = run_print(dirs[i], out, err);
            found++;
        } else {
            rc = below_print(dirs[i], &found, out, err);
        }
    }
    if (rc == ERR_OK && found == 0)
        rc = err_set(err, ERR_DATA,
                     "no run directory (with metrics.jsonl, lives.jsonl or "
                     "config.yaml) is %s or directly below",
                     dirs[0]);
    return rc;
}
