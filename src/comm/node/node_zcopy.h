/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Zero-copy collectives of the node stage: all-reduces of data in an arena,
 * and, in a group on one node, reduce-scatter and all-gather of ranges.
 *
 * Collective number n uses slot n % COMM_WORKS_MAX of the control block. A rank
 * that starts it posts the address of its buffer there. What follows depends on
 * whether the group has other nodes.
 *
 * One node: the buffer is divided into pieces, which are dealt to the ranks in
 * turn: the pieces of a rank are its share. When all ranks have posted, a rank
 * that waits or polls claims the pieces of its own share, and then those that
 * other ranks have left: so no rank depends on another rank that computes
 * something else. A piece is read from the buffers of all ranks, summed in rank
 * order and stored to all of them: the same bits everywhere, whichever rank
 * claims it. The work is done when all pieces of all shares are done. As long
 * as all ranks are equally fast, each writes only its own cache lines (its
 * post, its share), so that just two lines move between cores one after the
 * other: the post, and the end of the share. The comm thread takes no part. It
 * watches for faults, which end the waits.
 *
 * Several nodes: the rank of a node that posts last marks the slot as complete.
 * The buffer is divided into slices, each owned by one rank of every node. The
 * comm thread of the owner sums its slice over the node, reduces it with the
 * owners on the other nodes, and stores the result to all ranks of the node. If
 * it sleeps when the slot becomes complete, it is woken (node_wakeup.h).
 *
 * A slot is used again by number n + COMM_WORKS_MAX. A rank can start that only
 * after its wait for n has returned: by then all ranks have posted n and all
 * pieces are done. Counters contain the number, so a late claim fails. Posts
 * are read only while a piece is claimed: they do not change until the piece is
 * done.
 */
#ifndef CDDP_COMM_NODE_ZCOPY_H
#define CDDP_COMM_NODE_ZCOPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "comm/node/node_claim.h"

typedef struct node node_t;
typedef struct node_arena node_arena_t;
typedef struct node_work node_work_t;

typedef struct zcopy_post { /* the request of one rank */
    /* Number of the collective + 1; 0: never used. Written last. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t posted;
    uint64_t offset; /* offset of the buffer in its arena, in bytes */
    uint64_t count;  /* number of elements */
    uint64_t cuts;   /* hash of the limits of ranges; 0: no ranges */
    uint32_t arena;  /* number of the arena */
    uint16_t kind;   /* comm_kind_t */
    uint16_t type;   /* comm_type_t */
    uint16_t op;     /* comm_op_t */
} zcopy_post_t;

typedef struct zcopy_share { /* counters of the pieces of one rank */
    _Alignas(MEM_ALIGN) node_counter_t claimed;
    node_counter_t done;
} zcopy_share_t;

typedef struct zcopy_entry { /* the part of a slot for one rank */
    zcopy_post_t post;
    zcopy_share_t share;
} zcopy_entry_t;

typedef struct zcopy_slot {
    /* Number + 1 of a collective whose posts differ; all ranks then fail. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t differs;
    /* The following fields are used only in a group over several nodes. */
    atomic_uint arrived; /* number of ranks that have posted */
    /* Number + 1 of the collective, once all ranks have posted. */
    atomic_uint_fast64_t complete;
    uint32_t lanes; /* number of lanes, summed over all slices */
    _Alignas(MEM_ALIGN) atomic_uint lanes_done;
    /* Number + 1 of the collective, once all lanes are done. */
    atomic_uint_fast64_t completed;
    zcopy_entry_t entries[]; /* [ranks of the node] */
} zcopy_slot_t;

/* Bytes of a slot for [count] ranks. */
static inline size_t node_zcopy_bytes(int count)
{
    return sizeof(zcopy_slot_t) + (size_t)count * sizeof(zcopy_entry_t);
}

/* The arena that contains [bytes] bytes from [data] on; NULL: none. */
const node_arena_t *node_zcopy_arena(const node_t *node, const void *data,
                                     size_t bytes);
/* Start [work]: post its request. Owner. */
void node_zcopy_start(node_t *node, node_work_t *work);
/* Prefetch the cache lines to which the post of collective [number], the next
 * one, will be written. */
void node_zcopy_prefetch(node_t *node, uint64_t number);

/* Return whether the posts of [number] differ. Any thread. */
bool node_zcopy_differs(const node_t *node, uint64_t number);
/* Fail the group if the posts of [number] differ. Any thread. */
void node_zcopy_check(node_t *node, uint64_t number);

/* ---- one node ------------------------------------------------------------ */

/* Do a piece, and return whether one was left. Set work->done if all are done.
 * Owner. */
bool node_zcopy_progress(node_t *node, node_work_t *work);
/* Return whether a piece is left, or the work is done. Owner. */
bool node_zcopy_ready(const node_t *node, const node_work_t *work);
/* Return whether all pieces of [number], whose work is or was [work], are done.
 * Any thread. This may be true before the owner has seen it, as other ranks may
 * have done the last pieces. */
bool node_zcopy_done(const node_t *node, const node_work_t *work,
                     uint64_t number);

/* ---- several nodes: for the owners of slices ----------------------------- */

/* Return whether all ranks of the node have posted [number]. Fails the group if
 * their posts differ. */
bool node_zcopy_arrived(node_t *node, uint64_t number);
/* Set [buffers] to the addresses of the buffers of all ranks of this node for
 * [number]. */
void node_zcopy_buffers(node_t *node, uint64_t number, char **buffers);
/* Count one more lane of a slice of [number] as done. */
void node_zcopy_lane_done(node_t *node, uint64_t number);
/* Return whether all lanes of all slices of [number] are done. Any thread. */
bool node_zcopy_lanes_done(const node_t *node, uint64_t number);

#endif
