/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One-shot slots of the node stage: small all-reduces of any memory, and
 * barriers, in a group on one node.
 *
 * Shots are numbered by themselves. Each rank has SHOTS slots on the board;
 * shot m uses slot m % SHOTS. A rank that starts one copies its data there, the
 * flag with the first bytes in one cache line; whoever waits sums the slots of
 * all ranks in rank order into its own buffer. So there is one trip of a cache
 * line between cores, no owner, and nobody depends on what a rank does after it
 * has started. All ranks add in the same order: the same bits everywhere.
 *
 * A rank tells on the board how many shots it has taken. A slot is written
 * again when all have taken what is in it: a shot for which that does not yet
 * hold is posted later, by the next wait or poll. Shots are posted and taken in
 * order, all under node.lock.
 */
#ifndef CDDP_COMM_NODE_SHOT_H
#define CDDP_COMM_NODE_SHOT_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"

#define SHOTS 16
#define SHOT_BYTES 4096      /* of one rank */
#define SHOT_BYTES_ALL 65536 /* of all: each reads so much */

typedef struct shot_slot {
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t flag; /* shot + 1 */
    uint32_t count;
    uint16_t type, op;
    char data[SHOT_BYTES];
} shot_slot_t;

typedef struct shot_rank {
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t taken;
    shot_slot_t slots[SHOTS];
} shot_rank_t;

typedef struct node_shots {
    shot_rank_t *ranks;         /* [count of the node], on the board */
    atomic_uint_fast64_t begun; /* by start */
    uint64_t posted;            /* on the board */
    atomic_uint_fast64_t taken; /* of all ranks, summed here */
    uint64_t floor;             /* all ranks had taken so many */
    node_work_t *works[COMM_WORKS_MAX];
} node_shots_t;

void node_shot_start(node_t *node, node_work_t *work);
/* Post and take what can be; true if anything was taken. */
bool node_shot_go(node_t *node);
/* Has this rank shots that are not taken? Any thread. */
bool node_shot_busy(const node_t *node);
/* Can the next shot be taken? Any thread. */
bool node_shot_ready(const node_t *node);

#endif
