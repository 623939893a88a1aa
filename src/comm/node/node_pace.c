/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/node/node_pace.h"

#define RESTS_LEAST 4u

static node_step_t sleep_next(node_pace_t *pace)
{
    pace->sleeps++;
    return STEP_SLEEP;
}

node_step_t node_pace_next(node_pace_t *pace, double now)
{
    if (pace->turns++ == 0)
        pace->since = now;
    pace->before = now;
    if (pace->away)
        return sleep_next(pace);
    if (pace->core)
        return now - pace->since < NODE_PACE_SECONDS ? STEP_LOOK
                                                     : sleep_next(pace);
    if (pace->rest > 0) {
        pace->rest--;
        return sleep_next(pace);
    }
    if (pace->turns > NODE_PACE_YIELDS)
        return sleep_next(pace);
    pace->yields++;
    return STEP_YIELD;
}

void node_pace_yielded(node_pace_t *pace, double now)
{
    if (now - pace->before < NODE_PACE_YIELD_LONG)
        return;
    pace->rests = pace->rests == 0 ? RESTS_LEAST : 2 * pace->rests;
    if (pace->rests > NODE_PACE_RESTS_MOST)
        pace->rests = NODE_PACE_RESTS_MOST;
    pace->rest = pace->rests;
}

void node_pace_slept(node_pace_t *pace, bool rung)
{
    pace->away = !rung;
    pace->turns = 0;
}

void node_pace_found(node_pace_t *pace)
{
    if (!pace->core && pace->turns > 0 && pace->rest == 0)
        pace->rests /= 2;
    pace->away = false;
    pace->turns = 0;
}
