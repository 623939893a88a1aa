/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/node/node_backoff.h"

#define SLEEPS_LEAST 4u

static node_backoff_step_t sleep_next(node_backoff_t *backoff)
{
    backoff->sleeps++;
    return BACKOFF_SLEEP;
}

node_backoff_step_t node_backoff_next(node_backoff_t *backoff, double now)
{
    if (backoff->turns++ == 0)
        backoff->since = now;
    backoff->before = now;
    if (backoff->unwoken)
        return sleep_next(backoff);
    if (backoff->own_core)
        return now - backoff->since < NODE_BACKOFF_SECONDS
                   ? BACKOFF_SPIN
                   : sleep_next(backoff);
    if (backoff->sleeps_left > 0) {
        backoff->sleeps_left--;
        return sleep_next(backoff);
    }
    if (backoff->turns > NODE_BACKOFF_YIELDS)
        return sleep_next(backoff);
    backoff->yields++;
    return BACKOFF_YIELD;
}

void node_backoff_yielded(node_backoff_t *backoff, double now)
{
    if (now - backoff->before < NODE_BACKOFF_YIELD_LONG)
        return;
    backoff->sleeps_last =
        backoff->sleeps_last == 0 ? SLEEPS_LEAST : 2 * backoff->sleeps_last;
    if (backoff->sleeps_last > NODE_BACKOFF_SLEEPS_MOST)
        backoff->sleeps_last = NODE_BACKOFF_SLEEPS_MOST;
    backoff->sleeps_left = backoff->sleeps_last;
}

void node_backoff_slept(node_backoff_t *backoff, bool woken)
{
    backoff->unwoken = !woken;
    backoff->turns = 0;
}

void node_backoff_found(node_backoff_t *backoff)
{
    if (!backoff->own_core && backoff->turns > 0 && backoff->sleeps_left == 0)
        backoff->sleeps_last /= 2;
    backoff->unwoken = false;
    backoff->turns = 0;
}
