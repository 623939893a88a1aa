/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Pace: how long who waits in the node stage looks before it sleeps. A pure
 * state machine: instants are the caller's.
 *
 * Where every rank has a core for itself, it looks for NODE_PACE_SECONDS and
 * sleeps. It never yields: beside a program of others, sched_yield gives that
 * program a whole time slice (4 ms and more), while one that sleeps is put back
 * on its core at once when it is woken.
 *
 * Where ranks outnumber cores it yields, as the rank that is waited for may
 * need this core: among ranks a yield takes some microseconds. One that took
 * much longer gave the core to somebody who computes. Then the next waits sleep
 * at once, 4 of them and twice as many each time that happens again, half as
 * many after yields that were worth it.
 */
#ifndef CDDP_COMM_NODE_PACE_H
#define CDDP_COMM_NODE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define NODE_PACE_SECONDS 100e-6    /* a few times what a wake-up takes */
#define NODE_PACE_YIELDS 20         /* in one go */
#define NODE_PACE_YIELD_LONG 500e-6 /* seconds: not among ranks */
#define NODE_PACE_RESTS_MOST 1024u

typedef enum node_step { STEP_LOOK, STEP_YIELD, STEP_SLEEP } node_step_t;

/* Zeroed, but for [core], is a good beginning. */
typedef struct node_pace {
    bool core;      /* every rank that shares our cores has one */
    bool away;      /* nobody rang while this rank slept: no more looking */
    int turns;      /* since the last find or sleep */
    double since;   /* instant of the first of them, */
    double before;  /* and of the last one */
    unsigned rest;  /* so many times it sleeps at once from now on, */
    unsigned rests; /* when that last began */
    uint64_t yields, sleeps; /* ever */
} node_pace_t;

/* Nothing was found up to [now]: what next? */
node_step_t node_pace_next(node_pace_t *pace, double now);
/* The step was a yield, and is over at [now]. */
void node_pace_yielded(node_pace_t *pace, double now);
/* The step was a sleep; [rung]: somebody ended it. */
void node_pace_slept(node_pace_t *pace, bool rung);
/* There is something to do. */
void node_pace_found(node_pace_t *pace);

#endif
