/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx_pace.h"

#define RESTS_LEAST 4u

static ucx_step_t sleep_next(ucx_pace_t *pace)
{
    pace->sleeps++;
    return STEP_SLEEP;
}

ucx_step_t ucx_pace_next(ucx_pace_t *pace, double now)
{
    if (pace->turns++ == 0)
        pace->since = now;
    pace->before = now;
    if (pace->away)
        return sleep_next(pace);
    if (pace->core)
        return now - pace->since < UCX_PACE_SECONDS ? STEP_LOOK
                                                    : sleep_next(pace);
    if (pace->rest > 0) {
        pace->rest--;
        return sleep_next(pace);
    }
    if (pace->turns > UCX_PACE_YIELDS)
        return sleep_next(pace);
    pace->yields++;
    return STEP_YIELD;
}

void ucx_pace_yielded(ucx_pace_t *pace, double now)
{
    if (now - pace->before < UCX_PACE_YIELD_LONG)
        return;
    pace->rests = pace->rests == 0 ? RESTS_LEAST : 2 * pace->rests;
    if (pace->rests > UCX_PACE_RESTS_MOST)
        pace->rests = UCX_PACE_RESTS_MOST;
    pace->rest = pace->rests;
}

void ucx_pace_slept(ucx_pace_t *pace, bool rung)
{
    pace->away = !rung;
    pace->turns = 0;
}

void ucx_pace_found(ucx_pace_t *pace)
{
    if (!pace->core && pace->turns > 0 && pace->rest == 0)
        pace->rests /= 2;
    pace->away = false;
    pace->turns = 0;
}
