/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The node stage: polls and waits of the owner. See node.h for an overview. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "comm/node/node_control.h"
#include "comm/node/node_oneshot.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_stage.h"
#include "comm/node/node_zcopy.h"

#define LOOKS 64 /* number of checks between two readings of the clock */
/* Number of checks without a pause at the beginning of a wait. */
#define EAGER 32
/* Maximum duration of a sleep, as faults have to be noticed. */
#define NAP_NANOSECONDS 20000000

/* Return whether the owner can see that [work] is done. */
static bool work_done(const node_t *node, const node_work_t *work)
{
    if (node->place.nodes > 1 && atomic_load(&work->way) == NODE_ZCOPY)
        return node_zcopy_lanes_done(node, work->number);
    return atomic_load_explicit(&work->done, memory_order_acquire);
}

/* Do a step that other ranks may wait for, whatever this rank waits for. */
static bool others_progress(node_t *node)
{
    bool did = node_oneshot_busy(node) && node_oneshot_progress(node);

    return node_stage_progress(node) || did;
}

/* Do a step, of [work] if possible. */
static bool work_progress(node_t *node, node_work_t *work)
{
    int way = atomic_load(&work->way);
    bool did;

    if (way == NODE_ONESHOT && node_oneshot_progress(node))
        return true;
    if (way != NODE_ZCOPY)
        return others_progress(node);
    did = node->place.nodes == 1 && node_zcopy_progress(node, work);
    if (!did)
        node_zcopy_check(node, work->number);
    return did || others_progress(node);
}

comm_state_t node_poll(node_t *node, node_work_t *work)
{
    if (!work_done(node, work))
        work_progress(node, work);
    if (work_done(node, work))
        return COMM_DONE;
    node_stage_wake_absent(node); /* other owners may compute */
    return node_failed(node) ? COMM_FAILED : COMM_PENDING;
}

static bool others_ready(node_t *node)
{
    return (node_oneshot_busy(node) && node_oneshot_ready(node)) ||
           node_stage_ready(node);
}

/* Return whether there is anything to do, or [work] is over. */
static bool wait_over(node_t *node, const node_work_t *work)
{
    if (work_done(node, work) || node_failed(node) || others_ready(node))
        return true;
    return atomic_load(&work->way) == NODE_ZCOPY &&
           (node_zcopy_differs(node, work->number) ||
            (node->place.nodes == 1 && node_zcopy_ready(node, work)));
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Return whether there is anything to do, or *state is not pending any more. */
static bool attend_over(node_t *node, const atomic_int *state)
{
    return atomic_load(state) != COMM_PENDING || node_failed(node) ||
           others_ready(node);
}

/* Sleep, unless there is something to do for [work] or, if [work] is NULL, for
 * *state. Returns false if the sleep ended by timeout. */
static bool wait_nap(node_t *node, const node_work_t *work,
                     const atomic_int *state)
{
    static const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    node_control_t *control = node->control;
    bool woken = true;
    unsigned wakes;

    node_stage_wake_absent(node);
    atomic_fetch_add(&control->sleepers, 1);
    wakes = atomic_load(&control->futex);
    if (work != NULL ? !wait_over(node, work) : !attend_over(node, state))
        woken = syscall(SYS_futex, &control->futex, FUTEX_WAIT, wakes, &nap,
                        NULL, 0) == 0 ||
                errno != ETIMEDOUT;
    atomic_fetch_sub(&control->sleepers, 1);
    return woken;
}

/* Check several times whether there is something to do; pause after the first
 * [eager] checks. */
static bool wait_look(node_t *node, const node_work_t *work, int eager)
{
    int looks = node->backoff.own_core ? LOOKS : 1;

    for (int i = 0; i < looks; i++) {
        if (wait_over(node, work))
            return true;
        if (i >= eager)
            cpu_relax();
    }
    return false;
}

/* Wait until there is something to do, or sleep once. */
static void wait_block(node_t *node, const node_work_t *work)
{
    node_backoff_t *backoff = &node->backoff;
    bool found = wait_look(node, work, EAGER);

    while (!found) {
        node_backoff_step_t step = node_backoff_next(backoff, clock_now());

        if (step == BACKOFF_SLEEP)
            break;
        if (step == BACKOFF_YIELD) {
            sched_yield();
            node_backoff_yielded(backoff, clock_now());
        }
        found = wait_look(node, work, 0);
    }
    if (found) {
        node_backoff_found(backoff);
        return;
    }
    node->config.sleeps(node->config.context, work->number);
    node_backoff_slept(backoff, wait_nap(node, work, NULL));
}

bool node_wait(node_t *node, node_work_t *work)
{
    bool done = work_done(node, work);

    check(atomic_load(&work->active) == work->number + 1,
          "collective %llu is waited for, which is not under way",
          (unsigned long long)work->number);
    while (!done && !node_failed(node)) {
        if (work_progress(node, work))
            node_backoff_found(&node->backoff);
        else
            wait_block(node, work);
        done = work_done(node, work);
    }
    atomic_fetch_add(&node->progress, done);
    if (!done) { /* from here on no thread copies for this work any more */
        node_lock(node);
        node_unlock(node);
    }
    atomic_store(&work->active, 0);
    return done;
}

bool node_busy(const node_t *node)
{
    return atomic_load(&node->open) &&
           (node_oneshot_busy(node) || node_stage_busy(node));
}

void node_attend(node_t *node, const atomic_int *state)
{
    if (!others_progress(node))
        wait_nap(node, NULL, state);
}
