/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The internals of the node stage.
 *
 * Lock rules: node.lock serializes the owner and the comm thread of one rank.
 * It protects this rank's counts and cursors of one-shot and staged
 * collectives, and [buffers]. There are no locks between ranks: each word of
 * shared memory either has one writer at a time, or is a counter of
 * node_claim.h.
 */
#ifndef CDDP_COMM_NODE_PRIV_H
#define CDDP_COMM_NODE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_backoff.h"
#include "comm/node/node_control.h"
#include "comm/node/node_oneshot.h"
#include "comm/node/node_stage.h"
#include "comm/node/node_zcopy.h"

#define NODE_ARENAS \
    16 /* most arenas that a group ever opens in shared memory */

struct node {
    node_config_t config;
    node_place_t place;      /* a copy of config.place */
    atomic_bool open;        /* set by node_open if there is a node stage */
    node_control_t *control; /* mapped memory of the node's first rank */
    size_t control_bytes;
    size_t stride; /* bytes from one slot of node_zcopy.h to the next */
    node_backoff_t backoff; /* of the owner's waits */
    pthread_mutex_t lock;   /* see the lock rules above */
    /* With checks on: the thread that has locked [lock]; 0: none. */
    atomic_ulong holder;
    char **buffers; /* [ranks of the node]: scratch for the inputs of a sum */
    int wake_fd;    /* read end of this rank's pipe; -1: none */
    /* [ranks of the node]: write ends of their pipes; -1: none. */
    int *wake_fds;
    node_oneshot_t oneshot;
    node_stage_t stage;
    /* Counts successful waits and staged segments. */
    atomic_uint_fast64_t progress;
    uint32_t arenas_opened;            /* total number of arenas opened */
    node_arena_t *arenas[NODE_ARENAS]; /* indexed by number; NULL: closed */
    /* Indexed by number % COMM_WORKS_MAX; NULL: no work was started there
     * yet. */
    _Atomic(node_work_t *) works[COMM_WORKS_MAX];
};

static inline bool node_failed(const node_t *node)
{
    return atomic_load(node->config.failed);
}

void node_lock(node_t *node);
void node_unlock(node_t *node);
/* For checks: return whether the calling thread has locked node.lock. */
bool node_is_locked(const node_t *node);

#endif
