/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/watch.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "obs/progress.h"
#include "obs/terminal.h"
#include "report/history.h"
#include "report/plot.h"
#include "report/rows.h"
#include "report/run.h"

#define TERMINAL_BEGIN "\033[H\033[J" /* goes to the top, erases all */
#define LINES_USUAL 24
#define LINES_LEAST 10
#define COLUMNS_MOST 120

typedef struct watch {
    const char *dir;
    report_rows_t *rows; /* NULL: no metrics.jsonl yet */
    report_curves_t *curves;
    report_history_t history;
    report_state_t state;
    char *shown; /* the line that was shown last */
} watch_t;

/* ---- reading ------------------------------------------------------------- */

/* Forget all rows: they are read again. */
static err_code_t rows_forget(watch_t *watch, err_t *err)
{
    report_rows_close(watch->rows);
    report_curves_close(watch->curves);
    watch->rows = NULL;
    watch->curves = NULL;
    return report_curves_open(&watch->curves, err);
}

static err_code_t rows_read(watch_t *watch, err_t *err)
{
    report_row_t row;
    bool got = true, missing = false;
    err_code_t rc = ERR_OK;

    if (watch->rows != NULL && report_rows_stale(watch->rows))
        rc = rows_forget(watch, err);
    if (rc == ERR_OK && watch->rows == NULL) {
        rc = report_rows_open(watch->dir, &watch->rows, &missing, err);
        if (missing)
            return ERR_OK;
    }
    while (rc == ERR_OK && got) {
        rc = report_rows_next(watch->rows, &row, &got, err);
        if (rc == ERR_OK && got)
            rc = report_curves_add(watch->curves, &row, err);
    }
    return rc;
}

static err_code_t history_read(watch_t *watch, err_t *err)
{
    err_code_t rc;

    report_history_free(&watch->history);
    rc = report_history_read(watch->dir, &watch->history, err);
    if (rc == ERR_OK)
        watch->state = report_state(watch->dir, &watch->history);
    return rc;
}

/* ---- showing ------------------------------------------------------------- */

static char *line_make(const watch_t *watch)
{
    const report_curves_t *curves = watch->curves;
    str_buf_t line = {0};
    char state[64], speed[32];

    str_buf_add(&line, "%s: %s, step %" PRId64, watch->dir,
                report_state_text(watch->state, watch->history.status, state,
                                  sizeof state),
                curves->step < 0 ? 0 : curves->step);
    if (isfinite(curves->loss))
        str_buf_add(&line, ", loss %.5g", curves->loss);
    if (isfinite(curves->speed))
        str_buf_add(&line, ", %s samples/s",
                    obs_speed_format(curves->speed, speed, sizeof speed));
    if (isfinite(curves->best))
        str_buf_add(&line, ", best %s %.5g at step %" PRId64,
                    curves->best_is_accuracy ? "accuracy" : "loss",
                    curves->best, curves->best_step);
    if (curves->time[0] != '\0')
        str_buf_add(&line, ", %s", curves->time);
    return line.text;
}

static report_plot_size_t size_now(bool terminal)
{
    report_plot_size_t size = {obs_terminal_width(STDOUT_FILENO), LINES_USUAL,
                               terminal};
    struct winsize window;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0)
        size.lines = window.ws_row;
    size.lines -= 3; /* the line above, which may be folded, and the cursor's */
    if (size.lines < LINES_LEAST)
        size.lines = LINES_LEAST;
    if (size.columns > COLUMNS_MOST)
        size.columns = COLUMNS_MOST;
    return size;
}

/* Show what has changed; with [last], the plot in any case. */
static err_code_t show(watch_t *watch, bool last, err_t *err)
{
    const bool terminal = obs_terminal_is(STDOUT_FILENO);
    char *line = line_make(watch);
    const bool news = watch->shown == NULL || strcmp(line, watch->shown) != 0;
    err_code_t rc = ERR_OK;

    free(watch->shown);
    watch->shown = line;
    if (news && terminal)
        fputs(TERMINAL_BEGIN, stdout);
    if (news)
        str_print("%s\n", line);
    if ((news && terminal) || (last && !terminal))
        rc = report_plot_print(watch->curves, size_now(terminal), err);
    if (rc == ERR_OK && fflush(stdout) != 0)
        rc = err_set(err, ERR_IO, "cannot write to standard output");
    return rc;
}

/* ---- the loop ------------------------------------------------------------ */

static bool is_over(report_state_t state)
{
    return state == REPORT_STATE_COMPLETE || state == REPORT_STATE_ENDED;
}

static void pause_for(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)(1e9 * (seconds - floor(seconds)))};

    ppoll(NULL, 0, &time, NULL);
}

err_code_t report_watch(const char *dir, double seconds, err_t *err)
{
    watch_t watch = {.dir = dir};
    err_code_t rc = report_run_is(dir) ? ERR_OK : report_run_refuse(dir, err);
    bool over = false;

    if (rc == ERR_OK)
        rc = report_curves_open(&watch.curves, err);
    while (rc == ERR_OK && !over) {
        /* The state first: so the rows of a run that has ended are complete. */
        rc = history_read(&watch, err);
        if (rc == ERR_OK)
            rc = rows_read(&watch, err);
        over = is_over(watch.state);
        if (rc == ERR_OK)
            rc = show(&watch, over, err);
        if (rc == ERR_OK && !over)
            pause_for(seconds);
    }
    report_rows_close(watch.rows);
    report_curves_close(watch.curves);
    report_history_free(&watch.history);
    free(watch.shown);
    return rc;
}
