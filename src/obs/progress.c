/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/progress.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "base/str.h"
#include "obs/spent.h"
#include "obs/terminal.h"

/* Maximum bytes of a line: as many as a pipe accepts in one write. Of a longer
 * line, only a part might be written at once; the rest would block the run. */
#define LINE_ROOM PIPE_BUF
#define VALUES_ROOM (LINE_ROOM - 256)

/* Write as many values as fit to [out]; metrics.jsonl has all of them. */
static void values_format(const obs_epoch_t *epoch, char out[VALUES_ROOM])
{
    static const char cut[] = "  ...";
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < epoch->value_count; i++) {
        char value[96];
        const size_t length =
            (size_t)snprintf(value, sizeof value, "  %s %.4g",
                             epoch->values[i].name, epoch->values[i].value);

        if (at + length + sizeof cut > VALUES_ROOM) {
            memcpy(out + at, cut, sizeof cut);
            return;
        }
        memcpy(out + at, value, length + 1);
        at += length;
    }
}

char *obs_epoch_format(const obs_epoch_t *epoch, char *out, size_t room)
{
    char valid[48] = "", accuracy[48] = "", values[VALUES_ROOM];

    if (!isnan(epoch->valid_loss))
        snprintf(valid, sizeof valid, "  valid loss %.4g", epoch->valid_loss);
    if (!isnan(epoch->accuracy))
        snprintf(accuracy, sizeof accuracy, "  accuracy %.2f %%",
                 100 * epoch->accuracy);
    values_format(epoch, values);
    snprintf(out, room,
             "epoch %" PRId64 "/%" PRId64 "  step %" PRId64
             "  loss %.4g%s%s%s  %.1f s",
             epoch->epoch, epoch->epochs, epoch->step, epoch->loss, valid,
             accuracy, values, epoch->seconds);
    return out;
}

/* ---- how much may be printed --------------------------------------------- */

/* Bytes that may be printed at once; further ones at a constant rate, so that a
 * week has OBS_PROGRESS_WEEK bytes. */
#define BURST (OBS_PROGRESS_WEEK / 8)
#define RATE ((OBS_PROGRESS_WEEK - BURST) / (7 * 86400.0))

struct obs_progress {
    double every;  /* seconds between printed lines */
    bool terminal; /* the last line is drawn */
    bool drawn;    /* it is there now */
    double opened; /* instants: of open; of the next line (0: no step yet) */
    double due;
    double printed; /* bytes so far */
    bool full;      /* it was said that lines are left out */
    /* At the first call of obs_progress_step, and at the last one. */
    double first_at, last_at;
    int64_t first_step;
    double samples, exposed_s;
};

err_code_t obs_progress_open(double every, double now, obs_progress_t **out,
                             err_t *err)
{
    err_code_t rc = mem_new(obs_progress_t, 1, "progress", out, err);

    if (rc != ERR_OK)
        return rc;
    (*out)->every = every;
    (*out)->opened = now;
    (*out)->terminal = obs_terminal_is(STDOUT_FILENO);
    log_redraw_set((*out)->terminal && obs_terminal_is(STDERR_FILENO));
    return ERR_OK;
}

/* Erase the drawn line. */
static void erase(obs_progress_t *progress)
{
    if (progress->drawn)
        fputs(OBS_TERMINAL_ERASE, stdout);
    progress->drawn = false;
}

void obs_progress_close(obs_progress_t *progress)
{
    if (progress == NULL)
        return;
    if (progress->drawn && file_takes_line(STDOUT_FILENO)) {
        erase(progress);
        fflush(stdout);
    }
    log_redraw_set(false);
    mem_free(progress);
}

/* May [bytes] more be printed at [now]? A terminal keeps no log. */
static bool affords(obs_progress_t *progress, size_t bytes, double now)
{
    const double room =
        BURST + RATE * (now - progress->opened) - progress->printed;

    return progress->terminal || (double)bytes <= room;
}

static void line_put(obs_progress_t *progress, const char *line)
{
    if (!file_takes_line(STDOUT_FILENO))
        return;
    erase(progress);
    str_print("%s\n", line);
    fflush(stdout);
    progress->printed += (double)strlen(line) + 1;
}

/* Print [line], or, once, that lines are left out. */
static void line_print(obs_progress_t *progress, const char *line, double now)
{
    static const char full[] =
        "lines are left out from here on, so that the log of a week stays "
        "below 2 MB; metrics.jsonl has all numbers";

    if (affords(progress, strlen(line) + sizeof full, now)) {
        line_put(progress, line);
    } else if (!progress->full) {
        progress->full = true;
        line_put(progress, full);
    }
}

/* ---- lines --------------------------------------------------------------- */

void obs_progress_say(obs_progress_t *progress, double now, const char *format,
                      ...)
{
    char line[512];
    va_list args;

    if (progress == NULL)
        return;
    va_start(args, format);
    numeric_vprint(line, sizeof line, format, args);
    va_end(args);
    line_print(progress, line, now);
}

void obs_progress_text(obs_progress_t *progress, const char *text)
{
    if (progress == NULL || !file_takes_line(STDOUT_FILENO))
        return;
    erase(progress);
    str_print("%s", text);
    fflush(stdout);
}

void obs_progress_epoch(obs_progress_t *progress, const obs_epoch_t *epoch,
                        double now)
{
    char line[LINE_ROOM]; /* the newline takes the place of the NUL */

    if (progress != NULL)
        line_print(progress, obs_epoch_format(epoch, line, sizeof line), now);
}

/* ---- where the run is ---------------------------------------------------- */

bool obs_progress_due(obs_progress_t *progress, double now)
{
    if (progress == NULL)
        return false;
    if (progress->due == 0)
        progress->due = now + (progress->terminal
                                   ? 0
                                   : fmin(OBS_PROGRESS_FIRST, progress->every));
    return now >= progress->due || progress->first_at == 0;
}

/* Seconds that the rest of the run will take, at the pace so far. */
static double rest(const obs_progress_t *progress, const obs_place_t *place,
                   double now)
{
    const double done = (double)(place->step - progress->first_step);
    const double steps =
        (double)((place->epochs - place->epoch + 1) * place->epoch_steps -
                 place->epoch_step);

    return done > 0 ? steps * (now - progress->first_at) / done : NAN;
}

char *obs_speed_format(double speed, char *out, size_t room)
{
    numeric_print(out, room, speed < 1000 ? "%.4g" : "%.0f", speed);
    return out;
}

/* Format the line: "step 1200 of 48000  epoch 2/80, 50 %  loss 0.123  ETA 62
 * min 5120 samples/s  comm 3 %  45 min left  saved 3 min ago". */
static void place_format(const obs_progress_t *progress,
                         const obs_place_t *place, double now, char *out,
                         size_t room)
{
    const double took = now - progress->last_at;
    const double speed =
        took > 0 ? (place->samples - progress->samples) / took : 0;
    char eta[32], left[48] = "", saved[48] = "", time[32], rate[32];

    if (isfinite(place->left))
        snprintf(left, sizeof left, "  %s left",
                 obs_duration_format(fmax(0, place->left), time, sizeof time));
    if (isfinite(place->saved))
        snprintf(saved, sizeof saved, "  saved %s ago",
                 obs_duration_format(fmax(0, now - place->saved), time,
                                     sizeof time));
    numeric_print(
        out, room,
        "step %" PRId64 " of %" PRId64 "  epoch %" PRId64 "/%" PRId64
        ", %.0f %%  loss %.4g  ETA %s  %s samples/s  comm %.0f %%%s%s",
        place->step, place->epochs * place->epoch_steps, place->epoch,
        place->epochs,
        floor(100.0 * (double)place->epoch_step / (double)place->epoch_steps),
        place->loss,
        obs_duration_format(rest(progress, place, now), eta, sizeof eta),
        obs_speed_format(speed, rate, sizeof rate),
        took > 0 ? 100 * (place->exposed_s - progress->exposed_s) / took : 0,
        left, saved);
}

/* Draw [line], cut to the width of the terminal. */
static void line_draw(obs_progress_t *progress, char *line)
{
    if (!file_takes(STDOUT_FILENO, 0))
        return;
    obs_terminal_cut(line, obs_terminal_width(STDOUT_FILENO));
    printf(OBS_TERMINAL_ERASE "%s\r", line);
    fflush(stdout);
    progress->drawn = true;
}

void obs_progress_step(obs_progress_t *progress, const obs_place_t *place,
                       double now)
{
    char line[512];

    if (progress->first_at == 0) {
        progress->first_at = now;
        progress->first_step = place->step;
    } else {
        place_format(progress, place, now, line, sizeof line);
        if (progress->terminal)
            line_draw(progress, line);
        else
            line_print(progress, line, now);
        progress->due =
            now + (progress->terminal ? OBS_PROGRESS_DRAW : progress->every);
    }
    progress->last_at = now;
    progress->samples = place->samples;
    progress->exposed_s = place->exposed_s;
}
