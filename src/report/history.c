/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/history.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "obs/lives.h"
#include "report/curves.h"

#define SAVES_MAX 2000
#define EVENTS_MAX 20000

static const char *const event_names[] = {
#define NAME(name, text) [OBS_LIVES_##name] = (text),
    OBS_LIVES_MAP(NAME)
#undef NAME
};

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Add the checkpoint of [line]. If there are too many, each second one goes. */
static int save_add(report_history_t *history, const obs_lives_read_t *read)
{
    int bad = 0;

    if (history->save_count++ % history->stride != 0)
        return 0;
    bad = json_array_append_new(
        history->saves,
        json_pack("[o, I, o, o]", report_json_text(read->time),
                  (json_int_t)read->line.step, number_json(read->line.seconds),
                  number_json(read->line.bytes)));
    if (json_array_size(history->saves) <= SAVES_MAX)
        return bad;
    for (size_t i = 1; i < json_array_size(history->saves); i++)
        bad |= json_array_remove(history->saves, i);
    history->stride *= 2;
    return bad;
}

static int event_add(report_history_t *history, const obs_lives_read_t *read)
{
    const obs_lives_line_t *line = &read->line;
    json_t *object;
    int bad;

    if (json_array_size(history->events) >= EVENTS_MAX)
        return 0;
    object = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:i, s:i, s:I, s:i, s:i, s:o, s:o, s:o}",
        "event", event_names[line->event], "time", report_json_text(read->time),
        "job", report_json_text(read->start.job), "step_id",
        report_json_text(read->start.step_id), "nodes",
        report_json_text(read->start.nodes), "restart", read->start.restart,
        "attempt", read->start.attempt, "step", (json_int_t)line->step,
        "status", line->status, "culprit", line->culprit, "host",
        report_json_text(line->host), "detail", report_json_text(line->detail),
        "seconds", number_json(line->seconds));
    bad = json_array_append_new(history->events, object);
    return bad;
}

/* Keep the newest "spent". */
static int spent_take(report_history_t *history, const obs_spent_t *spent)
{
    int bad = 0;

    json_decref(history->spent);
    history->spent = json_object();
    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++)
        bad |= json_object_set_new(history->spent,
                                   obs_spent_key((obs_spent_kind_t)kind),
                                   json_real(spent->seconds[kind]));
    return bad;
}

static void line_take(void *context, const obs_lives_read_t *read)
{
    report_history_t *history = context;
    const obs_lives_line_t *line = &read->line;
    int bad = 0;

    snprintf(history->time, sizeof history->time, "%.31s", read->time);
    if (line->step > history->step)
        history->step = line->step;
    if (line->event == OBS_LIVES_BEGIN) {
        history->begun = true;
        history->status = -1;
    }
    if (line->event == OBS_LIVES_END || line->event == OBS_LIVES_REQUEUE)
        history->status = line->status;
    if (line->spent != NULL)
        bad |= spent_take(history, line->spent);
    bad |= line->event == OBS_LIVES_CHECKPOINT ? save_add(history, read)
                                               : event_add(history, read);
    history->failed |= bad != 0;
}

err_code_t report_history_read(const char *run_dir, report_history_t *out,
                               err_t *err)
{
    err_code_t rc;

    *out = (report_history_t){.events = json_array(),
                              .saves = json_array(),
                              .stride = 1,
                              .step = -1,
                              .status = -1};
    rc = obs_lives_read(run_dir, line_take, out, &out->skipped, err);
    if (rc == ERR_OK && out->failed)
        rc = err_set(err, ERR_MEMORY, "out of memory for %s/lives.jsonl",
                     run_dir);
    return rc;
}

void report_history_free(report_history_t *history)
{
    json_decref(history->events);
    json_decref(history->saves);
    json_decref(history->spent);
    *history = (report_history_t){0};
}

/* Does a process hold the lock of the run directory? -1: nobody can tell. */
static int lock_held(const char *run_dir)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path = str_printf("%s/lock", run_dir);
    int fd = -1, held = -1;

    if (file_open_regular(path, O_RDONLY, FILE_OWN, &fd, NULL) == ERR_OK) {
        if (fcntl(fd, F_OFD_GETLK, &whole) == 0)
            held = whole.l_type != F_UNLCK;
        close(fd);
    }
    free(path);
    return held;
}

report_state_t report_state(const char *run_dir,
                            const report_history_t *history)
{
    const int held = lock_held(run_dir);

    if (held == 1)
        return REPORT_STATE_RUNNING;
    if (history->status == 0)
        return REPORT_STATE_COMPLETE;
    if (history->status > 0)
        return err_code_requeue((err_code_t)history->status)
                   ? REPORT_STATE_WAITING
                   : REPORT_STATE_ENDED;
    return held == 0 && history->begun ? REPORT_STATE_INTERRUPTED
                                       : REPORT_STATE_UNKNOWN;
}

char *report_state_text(report_state_t state, int status, char *out,
                        size_t room)
{
    static const char *const words[] = {[REPORT_STATE_UNKNOWN] = "unknown",
                                        [REPORT_STATE_RUNNING] = "running",
                                        [REPORT_STATE_COMPLETE] = "complete",
                                        [REPORT_STATE_ENDED] = "ended",
                                        [REPORT_STATE_WAITING] = "waits",
                                        [REPORT_STATE_INTERRUPTED] =
                                            "interrupted"};

    if (state == REPORT_STATE_ENDED || state == REPORT_STATE_WAITING)
        snprintf(out, room, "%s (%d)", words[state], status);
    else
        snprintf(out, room, "%s", words[state]);
    return out;
}
