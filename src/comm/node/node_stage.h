/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Staged all-reduces: of memory that lies in no arena, and in a group on one
 * node too large for a one-shot.
 *
 * A buffer is cut into segments, which are numbered through all works in order.
 * Each rank has a ring of STAGE_SLOTS slots in memory that the node maps;
 * segment s uses slot s % STAGE_SLOTS. A rank copies a segment into its slot
 * and raises the flag. When all ranks have, it is summed in rank order, in one
 * of two ways:
 *
 * whole: every rank sums all of it straight into its own buffer. Two ranks do
 *     so, and more ranks where that is little work: they wait for the flags
 *     only.
 * in pieces: each rank claims pieces and sums them into the slot of the node's
 *     first rank. When all pieces are done, all ranks copy the result from
 *     there.
 *
 * Over several nodes the segments of a work belong to the node's first ranks in
 * turn. The owner sums a segment over the node into the slot of the first rank,
 * reduces it with its owners on the other nodes, and all ranks copy the result
 * from there.
 *
 * Each rank publishes how many segments it has consumed. A slot is written
 * again when all ranks have consumed its contents. So ranks copy a segment in
 * while other ranks sum the one before.
 *
 * The owner of a rank copies while it starts, polls or waits for anything. If
 * it does none of these because it computes, ranks that wait for it wake its
 * comm thread, which copies in its place (node_stage_help). All of it is done
 * under node.lock.
 */
#ifndef CDDP_COMM_NODE_STAGE_H
#define CDDP_COMM_NODE_STAGE_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_claim.h"

#define STAGE_SLOTS 4

typedef struct stage_slot {
    /* Segment + 1 of the contents; 0: never used. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t flag;
    uint64_t number; /* collective of the segment */
    uint64_t count;  /* elements of the whole buffer */
    uint16_t type;   /* comm_type_t */
    uint16_t op;     /* comm_op_t */
    /* Pieces of the segment. Used in the slots of the first rank only. */
    _Alignas(MEM_ALIGN) node_counter_t claimed;
    _Alignas(MEM_ALIGN) node_counter_t done;
} stage_slot_t;

typedef struct stage_rank { /* what one rank shares */
    /* How many segments this rank has consumed. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t consumed;
    /* The owner waits inside of comm: its comm thread need not be woken. */
    _Alignas(MEM_ALIGN) atomic_bool present;
    stage_slot_t slots[STAGE_SLOTS];
    char data[]; /* [STAGE_SLOTS * segment_bytes] */
} stage_rank_t;

typedef struct stage_cursor {
    uint64_t work; /* how many works lie before it */
    size_t offset; /* bytes of the work before it */
} stage_cursor_t;

typedef struct node_stage {
    void **table; /* [ranks of the node], allocated by node_new */
    void **maps; /* table once all are mapped: stage_rank_t; NULL: no staging */
    size_t bytes; /* of the memory of each rank */
    size_t segment_bytes;
    node_work_t *works[COMM_WORKS_MAX]; /* by the order of their starts */
    uint64_t works_started;
    stage_cursor_t post;    /* the segment that is copied in next */
    stage_cursor_t consume; /* the segment whose result is copied out next */
    /* Counts of segments. They change under the lock and are read without it.
     */
    atomic_uint_fast64_t started;    /* of all works that have started */
    atomic_uint_fast64_t posted;     /* copied in by this rank */
    atomic_uint_fast64_t consumed;   /* copied out by this rank */
    atomic_uint_fast64_t released;   /* consumed by all ranks, when last read */
    atomic_uint pieces[STAGE_SLOTS]; /* of the posted segments; 0: whole */
} node_stage_t;

/* Collective over the group, after node_control_open. ERR_MEMORY,
 * ERR_UNAVAILABLE: there is no staging. */
err_code_t node_stage_open(node_t *node, err_t *err);
void node_stage_close(node_t *node);

/* Post the first segments of [work]. Owner. */
void node_stage_start(node_t *node, node_work_t *work);
/* Do one step that is possible; true if there was any. Any thread. */
bool node_stage_progress(node_t *node);
/* Is a step possible? Any thread. The answer may be wrong while another thread
 * does a step. */
bool node_stage_ready(node_t *node);
/* Has this rank started segments that it has not consumed? Any thread. */
bool node_stage_busy(const node_t *node);

/* ---- several nodes: for the owners of segments --------------------------- */

/* How many segments [work] has, after its start. */
uint64_t node_stage_segments(const node_work_t *work);
/* Have all ranks of the node posted [segment]? */
bool node_stage_arrived(const node_t *node, uint64_t segment);
/* If they have: do they ask for the same? */
bool node_stage_agrees(const node_t *node, uint64_t segment);
/* Where rank [local] has copied its segment to. All ranks copy the result from
 * the place of rank 0. */
char *node_stage_place(const node_t *node, int local, uint64_t segment);
/* The result is in the place of rank 0. */
void node_stage_done(node_t *node, uint64_t segment);

/* ---- presence ------------------------------------------------------------ */

/* The owner begins or ends a wait. */
void node_stage_present(node_t *node, bool present);
/* The owner is about to sleep: wake the comm threads of ranks that it waits for
 * and whose owners are not present. */
void node_stage_wake_absent(node_t *node);
/* Is a step possible while the owner is not present? Comm thread. */
bool node_stage_needs_help(node_t *node);
/* Do it; true if there was any. Comm thread. */
bool node_stage_help(node_t *node);

#endif
