/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Zero-copy collectives of the node stage: all-reduces of data in an arena,
 * and, in a group on one node, reduce-scatter and all-gather of ranges.
 *
 * Collective number n uses slot n % COMM_WORKS_MAX of the control block. A rank
 * that starts it posts where its buffer is. What follows depends on whether the
 * group has other nodes.
 *
 * One node: the buffer is cut into pieces, which are dealt out to the ranks in
 * turn: the pieces of a rank are its share. When all ranks have posted, a rank
 * that waits or polls claims the pieces of its own share, and then those that
 * other ranks have left: so no rank depends on one that computes something else
 * meanwhile. A piece is read from the buffers of all ranks, summed in rank
 * order and stored to all of them: the same bits everywhere, whichever rank
 * claims it. The work is done when all pieces of all shares are done. As long
 * as all ranks are equally fast, each writes cache lines of its own only (its
 * post, its share), so that two lines travel one after the other: the post, and
 * the end of the share. The comm thread takes no part. It goes on looking for
 * faults, which end the waits.
 *
 * Several nodes: the rank of a node that posts last marks the slot as complete.
 * The buffer is cut into slices, each owned by one rank of every node. The comm
 * thread of the owner sums its slice over the node, reduces it with the owners
 * on the other nodes, and stores the result to all ranks of the node. It may
 * sleep when the slot becomes complete, and is then woken (node_wakeup.h).
 *
 * A slot is used again by number n + COMM_WORKS_MAX, which a rank can start
 * only after its wait for n has returned: by then all ranks have posted n and
 * all pieces are done. Counters carry the number, so that a late claim fails.
 * Posts are read under a claim only: they do not change while a piece is not
 * done.
 */
#ifndef CDDP_COMM_NODE_ZCOPY_H
#define CDDP_COMM_NODE_ZCOPY_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_claim.h"

typedef struct zcopy_post { /* what one rank asks for */
    /* Collective number + 1; 0: never used. Written last. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t posted;
    uint64_t offset; /* bytes from the begin of its arena to its buffer */
    uint64_t count;  /* elements */
    uint64_t cuts;   /* hash of the cuts of ranges; 0: there are none */
    uint32_t arena;  /* number of the arena */
    uint16_t kind;   /* comm_kind_t */
    uint16_t type;   /* comm_type_t */
    uint16_t op;     /* comm_op_t */
} zcopy_post_t;

typedef struct zcopy_share { /* the pieces of one rank */
    _Alignas(MEM_ALIGN) node_counter_t claimed;
    node_counter_t done;
} zcopy_share_t;

typedef struct zcopy_entry { /* of one rank */
    zcopy_post_t post;
    zcopy_share_t share;
} zcopy_entry_t;

typedef struct zcopy_slot {
    /* Number + 1 of a collective whose posts differ. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t differs;
    /* These five are used in a group over several nodes only. */
    atomic_uint arrived;           /* ranks that have posted */
    atomic_uint_fast64_t complete; /* number + 1, once all have posted */
    uint32_t lanes;                /* of all slices together */
    _Alignas(MEM_ALIGN) atomic_uint lanes_done;
    atomic_uint_fast64_t completed; /* number + 1, once all lanes are done */
    zcopy_entry_t entries[];        /* [ranks of the node] */
} zcopy_slot_t;

/* Bytes of a slot of [count] ranks. */
static inline size_t node_zcopy_bytes(int count)
{
    return sizeof(zcopy_slot_t) + (size_t)count * sizeof(zcopy_entry_t);
}

/* The arena that contains [bytes] bytes from [data] on, or NULL. */
const node_arena_t *node_zcopy_arena(const node_t *node, const void *data,
                                     size_t bytes);
/* Post [work]. Owner. */
void node_zcopy_start(node_t *node, node_work_t *work);
/* Collective [number] is started next: fetch the cache lines that its post will
 * write. */
void node_zcopy_prefetch(node_t *node, uint64_t number);

/* Do the posts of [number] differ? Any thread. */
bool node_zcopy_differs(const node_t *node, uint64_t number);
/* If they do, fail the group. Any thread. */
void node_zcopy_check(node_t *node, uint64_t number);

/* ---- one node ------------------------------------------------------------ */

/* Do a piece if one is left (true), and set work->done if all are done. Owner.
 */
bool node_zcopy_progress(node_t *node, node_work_t *work);
/* Is there a piece to do, or is the work done? Owner. */
bool node_zcopy_ready(const node_t *node, const node_work_t *work);
/* Are all pieces of [number] done, which [work] is or was? Any thread. What
 * other ranks have completed is done before the owner has looked. */
bool node_zcopy_done(const node_t *node, const node_work_t *work,
                     uint64_t number);

/* ---- several nodes: for the owners of slices ----------------------------- */

/* Have all ranks of the node posted [number]? Fails the group if their posts
 * differ. */
bool node_zcopy_arrived(node_t *node, uint64_t number);
/* Where the buffers of all ranks of this node for [number] begin. */
void node_zcopy_buffers(node_t *node, uint64_t number, char **buffers);
/* One more lane of a slice of [number] is done. */
void node_zcopy_lane_done(node_t *node, uint64_t number);
/* Are all lanes of all slices of [number] done? Any thread. */
bool node_zcopy_lanes_done(const node_t *node, uint64_t number);

#endif
