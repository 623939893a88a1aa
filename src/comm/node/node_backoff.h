/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Backoff: how long an owner that waits in the node stage spins before it
 * sleeps. A pure state machine: the caller passes the instants.
 *
 * If every rank has a core of its own, the owner spins for NODE_BACKOFF_SECONDS
 * and then sleeps. It never yields: if another program runs on the core,
 * sched_yield gives that program a whole time slice (4 ms and more), while an
 * owner that sleeps gets its core back as soon as it is woken.
 *
 * If there are more ranks than cores, the owner yields, as the rank that it
 * waits for may need this core. Between ranks a yield takes a few microseconds.
 * A yield that took much longer gave the core to a program that computes. After
 * that, the next waits sleep at once: 4 waits at first, twice as many each time
 * this happens again, and half as many after each wait with short yields only.
 */
#ifndef CDDP_COMM_NODE_BACKOFF_H
#define CDDP_COMM_NODE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* A few times the duration of a wake-up. */
#define NODE_BACKOFF_SECONDS 100e-6
#define NODE_BACKOFF_YIELDS 20 /* maximum number of yields in one wait */
/* Seconds; a longer yield was not between ranks. */
#define NODE_BACKOFF_YIELD_LONG 500e-6
#define NODE_BACKOFF_SLEEPS_MOST 1024u

typedef enum node_backoff_step {
    BACKOFF_SPIN,
    BACKOFF_YIELD,
    BACKOFF_SLEEP
} node_backoff_step_t;

/* Set [own_core] and zero all other fields before use. */
typedef struct node_backoff {
    bool own_core; /* each rank that shares our cores has a core of its own */
    /* The last sleep ended by timeout, so the next step is a sleep again. */
    bool unwoken;
    /* Number of steps since something was found, or since the last sleep. */
    int turns;
    double since;         /* instant of the first of these steps */
    double before;        /* instant of the last of these steps */
    unsigned sleeps_left; /* number of next waits that sleep at once */
    unsigned sleeps_last; /* value of [sleeps_left] when it was last set */
    uint64_t yields;      /* total number of yields */
    uint64_t sleeps;      /* total number of sleeps */
} node_backoff_t;

/* Return the next step, as nothing was found until [now]. */
node_backoff_step_t node_backoff_next(node_backoff_t *backoff, double now);
/* Report that the step was a yield, which ended at [now]. */
void node_backoff_yielded(node_backoff_t *backoff, double now);
/* Report that the step was a sleep. [woken]: another rank ended it. */
void node_backoff_slept(node_backoff_t *backoff, bool woken);
/* Report that there is something to do. */
void node_backoff_found(node_backoff_t *backoff);

#endif
