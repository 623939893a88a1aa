/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The inside of the node stage.
 *
 * Lock rules: node.lock orders the owner and the comm thread of one rank. It
 * guards this rank's counts and cursors of one-shot and staged collectives, and
 * [buffers]. Nothing is locked between ranks: each word of shared memory has
 * one writer at a time, or is a counter of node_claim.h.
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
    node_place_t place; /* config.place, nearer */
    atomic_bool open;   /* node_open has found that there is a node stage */
    node_control_t *control; /* mapped memory of the node's first rank */
    size_t control_bytes;
    size_t stride; /* bytes from one slot of node_zcopy.h to the next */
    node_backoff_t backoff; /* of the owner's waits */
    pthread_mutex_t lock;   /* see above */
    atomic_ulong holder;    /* with checks: the thread that holds it; 0: none */
    char **buffers; /* [ranks of the node]: scratch, the inputs of a sum */
    int wake_fd;    /* end of this rank's pipe to read from; -1: none */
    int *wake_fds;  /* [ranks of the node]: ends to write to; -1: none */
    node_oneshot_t oneshot;
    node_stage_t stage;
    atomic_uint_fast64_t progress; /* waits that ended well, staged segments */
    uint32_t arenas_opened;        /* ever */
    node_arena_t *arenas[NODE_ARENAS]; /* by number; NULL: closed */
    /* By number % COMM_WORKS_MAX; NULL: none was ever started. */
    _Atomic(node_work_t *) works[COMM_WORKS_MAX];
};

static inline bool node_failed(const node_t *node)
{
    return atomic_load(node->config.failed);
}

void node_lock(node_t *node);
void node_unlock(node_t *node);
/* For checks: does the calling thread hold the lock? */
bool node_is_locked(const node_t *node);

#endif
