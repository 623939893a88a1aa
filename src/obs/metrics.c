/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Writes rows to metrics.jsonl. A row is composed in memory (on the stack,
 * unless it has an object) and appended to the file by one write. At a resume
 * only the step of each row is parsed, since the file may be long.
 */
#include "obs/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "base/str.h"

#define METRICS_LINE_MAX (1536 + OBS_VALUES_MAX * 96)

/* Keys of a step's row in their order, each with the number of significant
 * digits. 0: as many digits as are needed to read the same bits back. */
#define METRICS_STEP_MAP(X) \
    X(loss, 0)              \
    X(lr, 0)                \
    X(step_s, 6)            \
    X(data_s, 6)            \
    X(forward_s, 6)         \
    X(backward_s, 6)        \
    X(comm_s, 6)            \
    X(comm_exposed_s, 6)    \
    X(comm_bytes, 0)        \
    X(samples_per_s, 6)     \
    X(grad_norm, 0)         \
    X(read_bytes, 0)        \
    X(decode_s, 6)          \
    X(retries, 0)           \
    X(data_wait_s, 6)

struct obs_metrics {
    int fd;
    int64_t last_eval; /* step of the last evaluation in the file, or -1 */
    bool warned;
    /* no more rows: the file was removed, or ends in part of a row */
    bool lost;
    char *path;
};

typedef struct metrics_line {
    char *text; /* the caller's */
    size_t room, length;
} metrics_line_t;

/* An empty line on the stack, long enough for a row with OBS_VALUES_MAX
 * numbers. */
#define METRICS_LINE(line)              \
    char line##_text[METRICS_LINE_MAX]; \
    metrics_line_t line = {.text = line##_text, .room = sizeof line##_text}

__attribute__((format(printf, 2, 3))) static void
metrics_add(metrics_line_t *line, const char *format, ...)
{
    size_t room = line->room - line->length;
    va_list args;
    int length;

    va_start(args, format);
    length = numeric_vprint(line->text + line->length, room, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < room)
        line->length += (size_t)length;
}

/* As many significant digits as are needed to read the same bits back. %g
 * leaves out zeros at the end, so with 15 digits 0.1 is written as 0.1, too. */
static int metrics_digits(double value)
{
    char text[32];
    int n;

    for (n = 15; n < 17; n++) {
        numeric_print(text, sizeof text, "%.*g", n, value);
        if (numeric_parse(text, NULL) == value)
            break;
    }
    return n;
}

static void metrics_add_real(metrics_line_t *line, const char *key,
                             double value, int digits)
{
    if (isfinite(value))
        metrics_add(line, ", \"%s\": %.*g", key,
                    digits == 0 ? metrics_digits(value) : digits, value);
    else
        metrics_add(line, ", \"%s\": null", key);
}

const char *obs_text_escape(char c, char out[3])
{
    const bool special = c == '"' || c == '\\';

    out[0] = '\\';
    out[special] = (unsigned char)c < ' ' ? '?' : c;
    out[special + 1] = '\0';
    return out;
}

static void metrics_add_text(metrics_line_t *line, const obs_text_t *text)
{
    char escaped[3];

    metrics_add(line, ", \"%s\": \"", text->name);
    for (const char *c = text->text; *c != '\0'; c++)
        metrics_add(line, "%s", obs_text_escape(*c, escaped));
    metrics_add(line, "\"");
}

/* The wall-clock time, with milliseconds: a step may be shorter than a second.
 */
static void metrics_add_time(metrics_line_t *line)
{
    const double now = clock_wall();
    char text[32];

    clock_format(now, text, sizeof text);
    text[strcspn(text, "Z")] = '\0';
    metrics_add(line, ", \"time\": \"%s.%03dZ\"", text,
                (int)(1000 * (now - floor(now))));
}

static void metrics_add_values(metrics_line_t *line, const obs_value_t *values,
                               int count)
{
    for (int i = 0; i < count; i++)
        metrics_add_real(line, values[i].name, values[i].value, 0);
}

/* Log the first failure to write; later ones are not logged. */
static void metrics_tell(obs_metrics_t *metrics)
{
    if (metrics->warned)
        return;
    metrics->warned = true;
    log_warn("obs", "cannot write %s: %s; rows that do not fit are left out",
             metrics->path, strerror(errno));
}

/* Remove a partly written row (the disk was full), since it would spoil the
 * next row. [whole] is the size of the file without it. */
static void metrics_undo(obs_metrics_t *metrics, off_t whole)
{
    if (ftruncate(metrics->fd, whole) == 0)
        return;
    log_warn("obs",
             "%s ends in half a row, which cannot be taken back (%s): further "
             "rows are lost",
             metrics->path, strerror(errno));
    metrics->lost = true;
}

/* Can a row be written? Sets [whole] to the size of the file. If the file was
 * removed, log that instead of writing to it. */
static bool metrics_there(obs_metrics_t *metrics, off_t *whole)
{
    struct stat file;

    if (fstat(metrics->fd, &file) != 0) {
        metrics_tell(metrics);
        return false;
    }
    *whole = file.st_size;
    if (file.st_nlink > 0)
        return true;
    log_warn("obs",
             "%s was removed while the run was writing it: further rows are "
             "lost; the next checkpoint tells whether the run directory is "
             "still there",
             metrics->path);
    metrics->lost = true;
    return false;
}

/* Complete and write the row. If the disk is full, the row is left out and the
 * run continues. */
static void metrics_write(obs_metrics_t *metrics, metrics_line_t *line)
{
    const char *at = line->text;
    off_t whole;
    ssize_t put;

    if (metrics->lost || !metrics_there(metrics, &whole))
        return;
    metrics_add(line, "}\n");
    while (line->length > 0) {
        put = write(metrics->fd, at, line->length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            break;
        at += put;
        line->length -= (size_t)put;
    }
    if (line->length == 0)
        return;
    metrics_tell(metrics);
    if (at != line->text)
        metrics_undo(metrics, whole);
}

void obs_metrics_step(obs_metrics_t *metrics, const obs_step_t *row)
{
    METRICS_LINE(line);

    metrics_add(&line,
                "{\"step\": %" PRId64 ", \"epoch\": %" PRId64
                ", \"samples\": %" PRId64,
                row->step, row->epoch, row->samples);
    metrics_add_time(&line);
#define METRICS_ADD(key, digits) \
    metrics_add_real(&line, #key, row->key, digits);
    METRICS_STEP_MAP(METRICS_ADD)
#undef METRICS_ADD
    metrics_add_values(&line, row->values, row->value_count);
    metrics_write(metrics, &line);
}

/* Begin the row of an event. */
static void metrics_add_event(metrics_line_t *line, const char *name,
                              int64_t step, int64_t epoch)
{
    metrics_add(
        line, "{\"event\": \"%s\", \"step\": %" PRId64 ", \"epoch\": %" PRId64,
        name, step, epoch);
    metrics_add_time(line);
}

bool obs_metrics_eval(obs_metrics_t *metrics, const obs_eval_t *row)
{
    METRICS_LINE(line);

    if (row->step <= metrics->last_eval)
        return false;
    metrics_add_event(&line, "eval", row->step, row->epoch);
    metrics_add_real(&line, "loss", row->loss, 0);
    metrics_add_real(&line, "accuracy", row->accuracy, 0);
    metrics_add_values(&line, row->values, row->value_count);
    metrics_write(metrics, &line);
    metrics->last_eval = row->step;
    return true;
}

/* Compose the row of an event in [line], and write it. */
static void metrics_put_event(obs_metrics_t *metrics, metrics_line_t *line,
                              const obs_event_t *row)
{
    metrics_add_event(line, row->name, row->step, row->epoch);
    for (int i = 0; i < row->text_count; i++)
        metrics_add_text(line, &row->texts[i]);
    metrics_add_values(line, row->values, row->value_count);
    if (row->object != NULL)
        metrics_add(line, ", \"%s\": %s", row->object_name, row->object);
    metrics_write(metrics, line);
}

void obs_metrics_event(obs_metrics_t *metrics, const obs_event_t *row)
{
    METRICS_LINE(line);
    char *text = NULL;
    err_t err = ERR_INIT;

    if (row->object != NULL) {
        line.room += strlen(row->object);
        if (mem_new(char, line.room, "a row of metrics.jsonl", &text, &err) !=
            ERR_OK) {
            log_warn("obs", "%s; a row is left out", err.text);
            return;
        }
        line.text = text;
    }
    metrics_put_event(metrics, &line, row);
    mem_free(text);
}

/* The step of a row, or -1 if it is not a whole row. */
static int64_t metrics_row_step(const char *row, size_t length)
{
    static const char key[] = "\"step\": ";
    const char *at = memmem(row, length, key, sizeof key - 1);

    if (at == NULL || row[0] != '{' || row[length - 1] != '}')
        return -1;
    return strtoll(at + sizeof key - 1, NULL, 10);
}

/* Remove rows after [step] from [text]; returns the new length in bytes.
 * *last_eval becomes the step of the last evaluation that is kept. */
static size_t metrics_keep(char *text, size_t bytes, int64_t step,
                           int64_t *last_eval)
{
    static const char eval[] = "{\"event\": \"eval\"";
    size_t kept = 0, from, length;
    const char *row, *end;
    int64_t at;

    for (from = 0; from < bytes; from += length + 1) {
        row = text + from;
        end = memchr(row, '\n', bytes - from);
        if (end == NULL)
            break; /* part of a row: the process that wrote it died */
        length = (size_t)(end - row);
        at = length == 0 ? -1 : metrics_row_step(row, length);
        if (at < 0 || at > step)
            continue;
        if (strncmp(row, eval, sizeof eval - 1) == 0)
            *last_eval = at;
        memmove(text + kept, row, length + 1);
        kept += length + 1;
    }
    return kept;
}

static err_code_t metrics_trim(const char *path, int64_t step,
                               int64_t *last_eval, err_t *err)
{
    err_code_t rc;
    size_t bytes, kept;
    char *text;

    /* nothing to trim: the caller removes all rows, or there is no file */
    if (step <= 0 || access(path, F_OK) != 0)
        return ERR_OK;
    rc = file_read_own(path, &text, &bytes, err);
    if (rc != ERR_OK)
        return rc;
    kept = metrics_keep(text, bytes, step, last_eval);
    if (kept < bytes)
        rc = file_publish(path, text, kept, err);
    free(text);
    return rc;
}

err_code_t obs_metrics_open(const char *path, int64_t step, obs_metrics_t **out,
                            err_t *err)
{
    obs_metrics_t *metrics = NULL;
    int flags = O_WRONLY | O_APPEND | O_CREAT;
    int64_t last_eval = -1;
    err_code_t rc;
    int fd;

    rc = metrics_trim(path, step, &last_eval, err);
    if (rc != ERR_OK)
        return rc;
    rc = file_open_regular(path, step <= 0 ? flags | O_TRUNC : flags, FILE_OWN,
                           &fd, err);
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(obs_metrics_t, 1, "the metrics file", &metrics, err);
    if (rc != ERR_OK) {
        close(fd);
        return rc;
    }
    *metrics = (obs_metrics_t){
        .fd = fd, .last_eval = last_eval, .path = str_dup(path)};
    *out = metrics;
    return ERR_OK;
}

void obs_metrics_close(obs_metrics_t *metrics)
{
    if (metrics == NULL)
        return;
    close(metrics->fd);
    free(metrics->path);
    mem_free(metrics);
}
