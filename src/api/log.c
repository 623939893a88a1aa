/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/log.h"

#include "api/api.h"
#include "base/log.h"

_Static_assert((int)CDDP_LOG_ERROR == LOG_ERROR &&
                   (int)CDDP_LOG_WARN == LOG_WARN &&
                   (int)CDDP_LOG_INFO == LOG_INFO &&
                   (int)CDDP_LOG_DEBUG == LOG_DEBUG &&
                   (int)CDDP_LOG_TRACE == LOG_TRACE,
               "the levels of both sides are one");

/* global: the process has one log function, as base/log.h has one sink; read
 * under the lock of base/log.h */
static struct api_log {
    cddp_log_t log;
    void *context;
} api_log;

static void drop(void *context, log_level_t level, int rank, const char *module,
                 const char *text)
{
    (void)context;
    (void)level;
    (void)rank;
    (void)module;
    (void)text;
}

static void hand_on(void *context, log_level_t level, int rank,
                    const char *module, const char *text)
{
    (void)context;
    api_log.log(api_log.context, (cddp_level_t)level, rank, module, text);
}

void api_log_drop(void)
{
    log_sink_set(drop, NULL);
}

void cddp_log_set(cddp_level_t level, cddp_log_t log, void *context)
{
    api_log_drop(); /* from here on nobody reads api_log, so it may change */
    api_log = (struct api_log){.log = log, .context = context};
    log_level_set((log_level_t)level);
    if (log != NULL)
        log_sink_set(hand_on, NULL);
}
