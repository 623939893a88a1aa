/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Log lines for operators, on standard error: lower case, with time, rank and
 * module. Values of single steps go to the metrics file instead. Any thread may
 * log.
 *
 * Levels: error: the run is about to end. warn: the run continues, but somebody
 * should look. info: a few lines per run. debug: per epoch or checkpoint.
 * trace: per step.
 */
#ifndef CDDP_BASE_LOG_H
#define CDDP_BASE_LOG_H

#include <stdbool.h>

typedef enum log_level {
    LOG_ERROR,
    LOG_WARN,
    LOG_INFO,
    LOG_DEBUG,
    LOG_TRACE
} log_level_t;

/* Set the process-wide level. Initial value: LOG_INFO, or $CDDP_LOG
 * (error|warn|info|debug|trace). */
void log_level_set(log_level_t level);
log_level_t log_level_get(void);

/* Set the rank of the calling thread (thread-local, since ranks may be
 * threads). -1, the initial value, prints no rank. New threads do not inherit
 * it. */
void log_rank_set(int rank);
int log_rank_get(void);

/* A receiver of log lines: called for each enabled line with module and
 * sentence (without newline), one line at a time, from any thread. [rank] is -1
 * if the thread has none. It must not log. */
typedef void (*log_sink_t)(void *context, log_level_t level, int rank,
                           const char *module, const char *text);

/* Send lines to [sink]; NULL: to standard error, as initially. After the return
 * the former sink is not called any more. */
void log_sink_set(log_sink_t sink, void *context);

/* Is the last line of the terminal drawn again and again? Then it is erased
 * before a line is printed there. Initially: no. */
void log_redraw_set(bool redraw);

/* Print one line if [level] is enabled. [module] is a folder name ("comm"). */
void log_print(log_level_t level, const char *module, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(module, ...) log_print(LOG_ERROR, module, __VA_ARGS__)
#define log_warn(module, ...) log_print(LOG_WARN, module, __VA_ARGS__)
#define log_info(module, ...) log_print(LOG_INFO, module, __VA_ARGS__)
#define log_debug(module, ...) log_print(LOG_DEBUG, module, __VA_ARGS__)
#define log_trace(module, ...) log_print(LOG_TRACE, module, __VA_ARGS__)

#endif
