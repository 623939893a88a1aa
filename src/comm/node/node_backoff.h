/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Backoff: how long an owner that waits in the node stage spins before it
 * sleeps. A pure state machine: the caller passes the instants.
 *
 * Where every rank has a core of its own, the owner spins for
 * NODE_BACKOFF_SECONDS and then sleeps. It never yields: if another program
 * runs on the core, sched_yield gives that program a whole time slice (4 ms and
 * more), while an owner that sleeps gets its core back as soon as it is woken.
 *
 * Where ranks outnumber cores the owner yields, as the rank that it waits for
 * may need this core: among ranks a yield takes some microseconds. A yield that
 * took much longer gave the core to a program that computes. Then the next
 * waits sleep at once: 4 of them at first, twice as many each time that happens
 * again, half as many after each wait whose yields were short.
 */
#ifndef CDDP_COMM_NODE_BACKOFF_H
#define CDDP_COMM_NODE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define NODE_BACKOFF_SECONDS 100e-6    /* a few times what a wake-up takes */
#define NODE_BACKOFF_YIELDS 20         /* most in one wait */
#define NODE_BACKOFF_YIELD_LONG 500e-6 /* seconds: not among ranks */
#define NODE_BACKOFF_SLEEPS_MOST 1024u

typedef enum node_backoff_step {
    BACKOFF_SPIN,
    BACKOFF_YIELD,
    BACKOFF_SLEEP
} node_backoff_step_t;

/* Zeroed, but for [own_core], it is ready for use. */
typedef struct node_backoff {
    bool own_core; /* every rank that shares our cores has one */
    bool unwoken; /* the last sleep ended by its timeout: sleep again at once */
    int turns;    /* steps since the last find or sleep */
    double since; /* instant of the first of these steps */
    double before;        /* instant of the last one */
    unsigned sleeps_left; /* waits that sleep at once from now on */
    unsigned sleeps_last; /* how many they were when that last began */
    uint64_t yields;      /* ever */
    uint64_t sleeps;      /* ever */
} node_backoff_t;

/* Nothing was found up to [now]: what to do next? */
node_backoff_step_t node_backoff_next(node_backoff_t *backoff, double now);
/* The step was a yield, which ended at [now]. */
void node_backoff_yielded(node_backoff_t *backoff, double now);
/* The step was a sleep; [woken]: another rank ended it. */
void node_backoff_slept(node_backoff_t *backoff, bool woken);
/* There is something to do. */
void node_backoff_found(node_backoff_t *backoff);

#endif
