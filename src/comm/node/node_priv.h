/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The inside of the node stage.
 *
 * Lock rules: node.lock orders the owner and the comm thread of one rank. Under
 * it are the one-shot slots and stages of this rank (their cursors and lists),
 * and [parts]. Nothing is locked between ranks: each word of shared memory has
 * one writer at a time, or is a counter of node_claim.h.
 */
#ifndef CDDP_COMM_NODE_PRIV_H
#define CDDP_COMM_NODE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_board.h"
#include "comm/node/node_pace.h"
#include "comm/node/node_shot.h"
#include "comm/node/node_slot.h"
#include "comm/node/node_stage.h"

#define NODE_ARENAS 16 /* of one group */

struct node {
    node_config_t config;
    node_place_t place;  /* config.place */
    atomic_bool open;    /* node_open has found that there is a node stage */
    node_board_t *board; /* mapped memory of the node's first rank */
    size_t board_bytes;
    size_t stride;        /* bytes from slot to slot of the board */
    node_pace_t pace;     /* of the owner's waits */
    pthread_mutex_t lock; /* see above */
    atomic_ulong holder;  /* with checks: the thread that holds it; 0: none */
    char **parts;         /* [ranks of the node]: scratch, where a piece is */
    int bell;             /* end of this rank's pipe to read from; -1: none */
    int *bells;           /* [ranks of the node]: ends to write to; -1 */
    node_shots_t shots;   /* of this rank */
    node_stages_t stages; /* of this rank */
    atomic_uint_fast64_t moves; /* waits that ended well, staged segments */
    uint32_t arenas_opened;     /* so far */
    node_arena_t *arenas[NODE_ARENAS];            /* by number; NULL: closed */
    _Atomic(node_work_t *) works[COMM_WORKS_MAX]; /* by number; NULL: never */
};

static inline bool node_failed(const node_t *node)
{
    return atomic_load(node->config.failed);
}

void node_lock(node_t *node);
void node_unlock(node_t *node);
/* For checks: does the calling thread hold it? */
bool node_is_locked(const node_t *node);

#endif
