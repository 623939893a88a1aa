/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A line is composed on the stack and written by one call, so that lines of
 * threads, and of ranks that share a terminal, do not mix. Failed writes are
 * ignored, since they cannot be reported. If the reader of standard error
 * blocks, lines are dropped: a run must not stop for it.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/numeric.h"
#include "base/str.h"

#define LOG_LINE_MAX 2048
#define LOG_UNSET (-1)

static const char *const log_names[] = {"error", "warn", "info", "debug",
                                        "trace"};
/* global: level and rank would otherwise be arguments of every function that
 * may log */
static atomic_int log_level = LOG_UNSET;
static _Thread_local int log_rank = -1;
static atomic_bool log_redraw; /* for the same reason */

/* global: for the same reason; under its lock */
static struct log_target {
    pthread_mutex_t lock;
    log_sink_t sink;
    void *context;
} log_target = {.lock = PTHREAD_MUTEX_INITIALIZER};

static log_level_t log_level_start(void)
{
    const char *wish = getenv("CDDP_LOG");
    int level;

    for (level = LOG_ERROR; wish != NULL && level <= LOG_TRACE; level++)
        if (strcmp(wish, log_names[level]) == 0)
            return (log_level_t)level;
    return LOG_INFO;
}

void log_level_set(log_level_t level)
{
    atomic_store(&log_level, (int)level);
}

log_level_t log_level_get(void)
{
    int level = atomic_load(&log_level);
    int unset = LOG_UNSET;

    if (level != LOG_UNSET)
        return (log_level_t)level;
    level = (int)log_level_start();
    if (!atomic_compare_exchange_strong(&log_level, &unset, level))
        level = unset;
    return (log_level_t)level;
}

void log_rank_set(int rank)
{
    log_rank = rank;
}

int log_rank_get(void)
{
    return log_rank;
}

/* Append to [line] at [used]; returns the new length, cut at LOG_LINE_MAX. */
static size_t log_vappend(char *line, size_t used, const char *format,
                          va_list args)
{
    int length = numeric_vprint(line + used, LOG_LINE_MAX - used, format, args);

    if (length < 0)
        return used;
    if ((size_t)length >= LOG_LINE_MAX - used)
        return LOG_LINE_MAX - 1;
    return used + (size_t)length;
}

__attribute__((format(printf, 3, 4))) static size_t
log_append(char *line, size_t used, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    used = log_vappend(line, used, format, args);
    va_end(args);
    return used;
}

void log_sink_set(log_sink_t sink, void *context)
{
    pthread_mutex_lock(&log_target.lock);
    log_target.sink = sink;
    log_target.context = context;
    pthread_mutex_unlock(&log_target.lock);
}

void log_redraw_set(bool redraw)
{
    atomic_store(&log_redraw, redraw);
}

/* Pass the line to the sink; false: there is none. */
static bool log_sunk(log_level_t level, const char *module, const char *text)
{
    bool sunk;

    pthread_mutex_lock(&log_target.lock);
    sunk = log_target.sink != NULL;
    if (sunk)
        log_target.sink(log_target.context, level, log_rank, module, text);
    pthread_mutex_unlock(&log_target.lock);
    return sunk;
}

void log_print(log_level_t level, const char *module, const char *format, ...)
{
    char line[LOG_LINE_MAX], raw[LOG_LINE_MAX], text[LOG_LINE_MAX], when[32];
    va_list args;
    size_t used;
    ssize_t written;

    if (level > log_level_get())
        return;
    va_start(args, format);
    (void)log_vappend(raw, 0, format, args);
    va_end(args);
    str_visible(raw, text, sizeof text, false);
    if (log_sunk(level, module, text))
        return;
    clock_format(clock_wall(), when, sizeof when);
    used = log_append(line, 0, "%s%s ",
                      atomic_load(&log_redraw) ? "\r\033[K" : "", when);
    if (log_rank >= 0)
        used = log_append(line, used, "rank %d ", log_rank);
    used = log_append(line, used, "%s: ", module);
    if (level != LOG_INFO)
        used = log_append(line, used, "%s: ", log_names[level]);
    used = log_append(line, used, "%s", text);
    check(used < LOG_LINE_MAX, "a line of %zu bytes", used);
    line[used++] = '\n'; /* replaces the NUL */
    if (!file_takes_line(STDERR_FILENO))
        return;
    written = write(STDERR_FILENO, line, used);
    (void)written;
}
