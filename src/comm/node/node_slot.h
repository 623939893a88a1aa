/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Slots of the node stage: all-reduces of data that lies in an arena, and on
 * one node reduce-scatter and all-gather of ranges.
 *
 * Collective number n uses slot n % COMM_WORKS_MAX of the board. A rank that
 * starts it posts where its buffer is. What then happens depends on whether
 * there are other nodes.
 *
 * One node: the buffer is cut into pieces, dealt out to the ranks in turn. When
 * all have posted, a rank that waits or polls claims the pieces of its own
 * share, and then those that others have left: nobody depends on a rank that
 * computes something else meanwhile. A piece is read from all ranks' buffers,
 * summed in rank order and stored to all of them: the same bits everywhere,
 * whoever claims it. The work is done when all pieces of all shares are. What a
 * rank writes while all go at the same pace lies in cache lines of its own (its
 * post, its share), so that two lines travel, one after the other: the post and
 * the end of a share. The comm thread has no part in it; it goes on finding
 * faults, which end the waits.
 *
 * Several nodes (ucx_span.c): the last rank of the node to come opens the slot.
 * The buffer is cut into slices, each owned by one rank of every node. The comm
 * thread of the owner sums its slice over the node, reduces it with the owners
 * on the other nodes, and stores the result to all ranks of the node. It may
 * sleep when the slot is opened: a bell (node_bell.c) wakes it.
 *
 * A slot is used again by number n + COMM_WORKS_MAX, which a rank can start
 * only after its wait for n has returned, so all have posted by then and all
 * pieces are done; counters carry the number, so that a late claim fails. The
 * posts are read under a claim only: they stay while a piece is not done.
 */
#ifndef CDDP_COMM_NODE_SLOT_H
#define CDDP_COMM_NODE_SLOT_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_claim.h"

typedef struct node_post {                         /* what one rank wants */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t came; /* number + 1 */
    uint64_t offset;                               /* in its arena */
    uint64_t count;
    uint64_t cuts; /* hash of those of ranges */
    uint32_t arena;
    uint16_t kind, type, op;
} node_post_t;

typedef struct node_share { /* of the pieces, of one rank */
    _Alignas(MEM_ALIGN) node_counter_t claimed;
    node_counter_t done;
} node_share_t;

typedef struct node_entry { /* of one rank */
    node_post_t post;
    node_share_t share;
} node_entry_t;

typedef struct node_slot {
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t odd; /* number + 1: posts differ */
    /* Of several nodes: ranks that have posted; number + 1 when all have; lanes
     * of all slices, and those that are done. */
    atomic_uint arrived;
    atomic_uint_fast64_t opened;
    uint32_t lanes;
    _Alignas(MEM_ALIGN) atomic_uint done;
    atomic_uint_fast64_t completed; /* number + 1 of the last completed one */
    node_entry_t entries[];         /* [count of the node] */
} node_slot_t;

/* Bytes of a slot of [count] ranks. */
static inline size_t node_slot_bytes(int count)
{
    return sizeof(node_slot_t) + (size_t)count * sizeof(node_entry_t);
}

/* The arena in which [bytes] bytes from [data] on lie, or NULL. */
const node_arena_t *node_slot_arena(const node_t *node, const void *data,
                                    size_t bytes);
/* Post [work]. */
void node_slot_start(node_t *node, node_work_t *work);
/* Number [number] is started next: have its lines come with the right to write,
 * meanwhile. */
void node_slot_foresee(node_t *node, uint64_t number);

/* One node. Do a piece if there is one (true), and see whether the work is
 * done. The owner. */
bool node_slot_go(node_t *node, node_work_t *work);
/* Are all pieces of [number] done, which [work] is or was? Any thread: what
 * others have completed is done before the owner has looked. */
bool node_slot_done(const node_t *node, const node_work_t *work,
                    uint64_t number);
/* Is there a piece to do, or is the work done? */
bool node_slot_ready(const node_t *node, const node_work_t *work);

/* Several nodes. Are all lanes of number done? */
bool node_slot_lanes_done(const node_t *node, uint64_t number);
/* Have all ranks of the node come? Fails the group if they disagree. */
bool node_slot_opened(node_t *node, uint64_t number);
/* One more lane of a slice of number is done. */
void node_slot_lane_add(node_t *node, uint64_t number);
/* Where the buffers of all ranks of this node for [number] begin. */
void node_slot_parts(node_t *node, uint64_t number, char **parts);

/* Does the board say that the posts of [number] differ? */
bool node_slot_odd(const node_t *node, uint64_t number);
/* If it does, fail the group. */
void node_slot_check(node_t *node, uint64_t number);

#endif
