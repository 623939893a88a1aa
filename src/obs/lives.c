/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/lives.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

static const char *const event_names[] = {
#define NAME(name, text) [OBS_LIVES_##name] = (text),
    OBS_LIVES_MAP(NAME)
#undef NAME
};

obs_lives_line_t obs_lives_line(obs_lives_event_t event, int64_t step)
{
    return (obs_lives_line_t){.event = event,
                              .step = step,
                              .seconds = NAN,
                              .bytes = NAN,
                              .status = -1,
                              .culprit = -1};
}

static char *path_of(const char *run_dir)
{
    return str_printf("%s/lives.jsonl", run_dir);
}

/* ---- writing ------------------------------------------------------------- */

/* [text] as a JSON string; bytes that are not UTF-8 make it null. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);

    return value != NULL ? value : json_null();
}

/* Make the JSON object "spent"; NULL: out of memory. The wall-clock time is in
 * whole milliseconds, since real numbers are written with six digits. */
static json_t *spent_json(const obs_spent_t *spent)
{
    json_t *object = json_object();
    int bad = json_object_set_new(
        object, "until_ms", json_integer((json_int_t)(1e3 * spent->wall)));

    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++)
        bad |=
            json_object_set_new(object, obs_spent_key((obs_spent_kind_t)kind),
                                json_real(spent->seconds[kind]));
    if (bad == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* Make the JSON object of a line: keys without a value are left out. NULL: out
 * of memory. */
static json_t *line_json(const obs_lives_start_t *start,
                         const obs_lives_line_t *line)
{
    json_t *object = json_object();
    char time[32];
    int bad = object == NULL;

    clock_format(clock_wall(), time, sizeof time);
    /* json_object_set_new fails on a NULL object or value. */
#define SET(key, value) bad |= json_object_set_new(object, key, value)
    SET("event", json_string(event_names[line->event]));
    SET("time", json_string(time));
    SET("job", text_json(start->job));
    SET("step_id", text_json(start->step_id));
    SET("restart", json_integer(start->restart));
    SET("attempt", json_integer(start->attempt));
    SET("nodes", text_json(start->nodes));
    SET("step", json_integer(line->step));
    if (isfinite(line->seconds))
        SET("seconds", json_real(line->seconds));
    if (isfinite(line->bytes))
        SET("bytes", json_integer((json_int_t)line->bytes));
    if (line->status >= 0)
        SET("status", json_integer(line->status));
    if (line->culprit >= 0)
        SET("culprit", json_integer(line->culprit));
    if (line->host != NULL && line->host[0] != '\0')
        SET("host", text_json(line->host));
    if (line->detail != NULL && line->detail[0] != '\0')
        SET("detail", text_json(line->detail));
    if (line->spent != NULL)
        SET("spent", spent_json(line->spent));
#undef SET
    if (!bad)
        return object;
    json_decref(object);
    return NULL;
}

/* Return whether the last line of the file has no end: the write of it was cut
 * off. */
static bool ends_in_part(int fd)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    char last = '\n';

    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

static err_code_t text_append(const char *path, const char *text, err_t *err)
{
    const size_t length = strlen(text);
    ssize_t wrote;
    int fd = -1;
    err_code_t rc;

    rc = file_open_regular(path, O_RDWR | O_APPEND | O_CREAT, FILE_OWN, &fd,
                           err);
    if (rc != ERR_OK)
        return rc;
    /* [text] begins with a newline, which only a cut-off line needs. */
    const size_t skip = ends_in_part(fd) ? 0 : 1;
    do
        wrote = write(fd, text + skip, length - skip);
    while (wrote < 0 && errno == EINTR);
    if (wrote >= 0 && (size_t)wrote < length - skip) {
        errno = ENOSPC;
        wrote = -1;
    }
    if (wrote < 0 || fsync(fd) != 0)
        rc = err_set(err, ERR_IO, "cannot append to %s: %s", path,
                     strerror(errno));
    close(fd);
    return rc;
}

err_code_t obs_lives_append(const char *run_dir, const obs_lives_start_t *start,
                            const obs_lives_line_t *line, err_t *err)
{
    char *path = path_of(run_dir), *body = NULL, *text = NULL;
    json_t *object = line_json(start, line);
    err_code_t rc;

    if (object != NULL)
        body = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER |
                                      JSON_REAL_PRECISION(6));
    if (body == NULL) {
        rc = err_set(err, ERR_MEMORY, "out of memory for a line of %s", path);
    } else {
        text = str_printf("\n%s\n", body);
        rc = text_append(path, text, err);
    }
    free(text);
    free(body);
    json_decref(object);
    free(path);
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : text;
}

static int int_at(const json_t *object, const char *key, int missing)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? (int)json_integer_value(value) : missing;
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static obs_lives_event_t event_at(const json_t *object)
{
    const char *name = text_at(object, "event");
    obs_lives_event_t event = OBS_LIVES_BEGIN;

    while (event < OBS_LIVES_OTHER && strcmp(event_names[event], name) != 0)
        event++;
    return event;
}

/* Read the object "spent" to [out]; false: there is none, or one of its numbers
 * is missing. */
static bool spent_at(const json_t *line, obs_spent_t *out)
{
    const json_t *object = json_object_get(line, "spent");
    double sum;

    *out = (obs_spent_t){.wall = 1e-3 * number_at(object, "until_ms")};
    sum = out->wall;
    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++) {
        out->seconds[kind] =
            number_at(object, obs_spent_key((obs_spent_kind_t)kind));
        sum += out->seconds[kind];
    }
    return isfinite(sum);
}

static void line_visit(const json_t *object, obs_lives_visit_fn *visit,
                       void *context)
{
    const json_t *step = json_object_get(object, "step");
    obs_spent_t spent;
    const obs_lives_read_t read = {
        .start = {.job = text_at(object, "job"),
                  .step_id = text_at(object, "step_id"),
                  .nodes = text_at(object, "nodes"),
                  .restart = int_at(object, "restart", 0),
                  .attempt = int_at(object, "attempt", 1)},
        .line = {.event = event_at(object),
                 .step = json_is_integer(step) ? json_integer_value(step) : -1,
                 .seconds = number_at(object, "seconds"),
                 .bytes = number_at(object, "bytes"),
                 .status = int_at(object, "status", -1),
                 .culprit = int_at(object, "culprit", -1),
                 .host = text_at(object, "host"),
                 .detail = text_at(object, "detail"),
                 .spent = spent_at(object, &spent) ? &spent : NULL},
        .time = text_at(object, "time")};

    visit(context, &read);
}

err_code_t obs_lives_read(const char *run_dir, obs_lives_visit_fn *visit,
                          void *context, int *skipped, err_t *err)
{
    char *path = path_of(run_dir), *text = NULL, *next;
    int bad = 0;
    err_code_t rc = ERR_OK;

    if (access(path, F_OK) == 0 || errno != ENOENT)
        rc = file_read_own(path, &text, NULL, err);
    for (next = text; rc == ERR_OK && next != NULL && *next != '\0';) {
        char *line = strsep(&next, "\n");
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

        if (json_is_object(object))
            line_visit(object, visit, context);
        else
            bad += line[0] != '\0';
        json_decref(object);
    }
    if (rc == ERR_OK && skipped != NULL)
        *skipped = bad;
    free(text);
    free(path);
    return rc;
}
