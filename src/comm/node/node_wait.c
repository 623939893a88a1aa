/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The node stage: polls and waits of the owner. See node.h for the whole. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "comm/node/node_priv.h"

/* Looks between two readings of the clock; the first ones of all without a
 * pause. */
#define LOOKS 64
#define EAGER 32
#define NAP_NANOSECONDS 20000000 /* how late a fault may be seen */

/* Has the owner seen that it is done? */
static bool work_done(const node_t *node, const node_work_t *work)
{
    if (node->place.nodes > 1 && atomic_load(&work->way) == NODE_SLOT)
        return node_slot_lanes_done(node, work->number);
    return atomic_load_explicit(&work->done, memory_order_acquire);
}

/* What others may wait for: this rank does it whatever it waits for itself. */
static bool others_go(node_t *node)
{
    bool did = node_shot_busy(node) && node_shot_go(node);

    return node_stage_go(node) || did;
}

/* Do something, for [work] first. */
static bool work_go(node_t *node, node_work_t *work)
{
    int way = atomic_load(&work->way);
    bool did;

    if (way == NODE_SHOT && node_shot_go(node))
        return true;
    if (way != NODE_SLOT)
        return others_go(node);
    did = node->place.nodes == 1 && node_slot_go(node, work);
    if (!did)
        node_slot_check(node, work->number);
    return did || others_go(node);
}

comm_state_t node_poll(node_t *node, node_work_t *work)
{
    if (!work_done(node, work))
        work_go(node, work);
    if (work_done(node, work))
        return COMM_DONE;
    node_stage_summon(node); /* who computes has a comm thread */
    return node_failed(node) ? COMM_FAILED : COMM_PENDING;
}

static bool others_wait(node_t *node)
{
    return (node_shot_busy(node) && node_shot_ready(node)) ||
           node_stage_ready(node);
}

/* Is there anything to do, or is [work] over? */
static bool wait_over(node_t *node, const node_work_t *work)
{
    if (work_done(node, work) || node_failed(node) || others_wait(node))
        return true;
    return atomic_load(&work->way) == NODE_SLOT &&
           (node_slot_odd(node, work->number) ||
            (node->place.nodes == 1 && node_slot_ready(node, work)));
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Is there anything to do, or is what the comm thread does over? */
static bool attend_over(node_t *node, const atomic_int *state)
{
    return atomic_load(state) != COMM_PENDING || node_failed(node) ||
           others_wait(node);
}

/* Sleep for a nap, unless there is something to do for [work], or if that is
 * NULL for *state; false: nobody ended the nap. */
static bool wait_nap(node_t *node, const node_work_t *work,
                     const atomic_int *state)
{
    static const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    node_board_t *board = node->board;
    bool rung = true;
    unsigned bell;

    node_stage_summon(node);
    atomic_fetch_add(&board->sleepers, 1);
    bell = atomic_load(&board->bell);
    if (work != NULL ? !wait_over(node, work) : !attend_over(node, state))
        rung = syscall(SYS_futex, &board->bell, FUTEX_WAIT, bell, &nap, NULL,
                       0) == 0 ||
               errno != ETIMEDOUT;
    atomic_fetch_sub(&board->sleepers, 1);
    return rung;
}

/* Is there something to do, at one of a few looks? */
static bool wait_look(node_t *node, const node_work_t *work, int eager)
{
    int looks = node->pace.core ? LOOKS : 1;

    for (int i = 0; i < looks; i++) {
        if (wait_over(node, work))
            return true;
        if (i >= eager)
            cpu_relax();
    }
    return false;
}

/* Until there is something to do, or for a nap. */
static void wait_block(node_t *node, const node_work_t *work)
{
    node_pace_t *pace = &node->pace;
    bool found = wait_look(node, work, EAGER);

    while (!found) {
        node_step_t step = node_pace_next(pace, clock_now());

        if (step == STEP_SLEEP)
            break;
        if (step == STEP_YIELD) {
            sched_yield();
            node_pace_yielded(pace, clock_now());
        }
        found = wait_look(node, work, 0);
    }
    if (found) {
        node_pace_found(pace);
        return;
    }
    node->config.sleeps(node->config.context, work->number);
    node_pace_slept(pace, wait_nap(node, work, NULL));
}

bool node_wait(node_t *node, node_work_t *work)
{
    bool done = work_done(node, work);

    check(atomic_load(&work->active) == work->number + 1,
          "collective %llu is waited for, which is not under way",
          (unsigned long long)work->number);
    while (!done && !node_failed(node)) {
        if (work_go(node, work))
            node_pace_found(&node->pace);
        else
            wait_block(node, work);
        done = work_done(node, work);
    }
    atomic_fetch_add(&node->moves, done);
    if (!done) { /* whoever copies for it has ended when we have been here */
        node_lock(node);
        node_unlock(node);
    }
    atomic_store(&work->active, 0);
    return done;
}

bool node_busy(const node_t *node)
{
    return atomic_load(&node->open) &&
           (node_shot_busy(node) || node_stage_busy(node));
}

void node_attend(node_t *node, const atomic_int *state)
{
    if (!others_go(node))
        wait_nap(node, NULL, state);
}
