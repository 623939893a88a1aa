/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Staging: all-reduces of ordinary memory, of a group on one node those too
 * large for one-shot slots.
 *
 * A buffer is cut into segments, numbered through all works in order. Each rank
 * has STAGE_SLOTS of them in memory that the node maps; segment s uses slot s %
 * STAGE_SLOTS. A rank copies a segment into its slot and raises its flag. When
 * all have, it is summed in rank order, in one of two ways:
 *
 * whole: every rank sums all of it straight into its own buffer. Two ranks do
 *     so, and more where that is little work: nothing but the flag is waited
 *     for;
 * in pieces: whoever comes claims one, and sums it into the slot of the node's
 *     first rank, from where all copy it when all pieces are done.
 *
 * Over several nodes (node_stage_net.c) the segments of a work belong to the
 * node's first ranks in turn. The owner sums one over the node into the slot of
 * the first rank, reduces it with its owners on the other nodes, and all copy
 * the result from there.
 *
 * A rank tells how many it has taken; a slot is written again when all have. So
 * ranks copy a segment in while others sum the one before.
 *
 * Copies are made by the owner while it starts, polls or waits for anything.
 * Where it does not (it computes), those who wait for it ring for its comm
 * thread, which does them in its place (node_stage_help). All under node.lock.
 */
#ifndef CDDP_COMM_NODE_STAGE_H
#define CDDP_COMM_NODE_STAGE_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_claim.h"

#define STAGE_SLOTS 4

typedef struct stage_slot {
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t flag; /* segment + 1 */
    uint64_t number, count;                        /* of the work */
    uint16_t type, op;
    /* Of the first rank's slots: pieces of it. */
    _Alignas(MEM_ALIGN) node_counter_t claimed;
    _Alignas(MEM_ALIGN) node_counter_t done;
} stage_slot_t;

typedef struct stage_rank { /* what each rank shares */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t taken;
    _Alignas(MEM_ALIGN) atomic_bool present; /* its owner waits: no ringing */
    stage_slot_t slots[STAGE_SLOTS];
    char data[]; /* [STAGE_SLOTS * segment] */
} stage_rank_t;

typedef struct stage_cursor {
    uint64_t work; /* of the works begun */
    size_t at;     /* bytes of it that are done */
} stage_cursor_t;

typedef struct node_stages {
    void **table; /* [count of the node], what maps will be */
    void **maps;  /* NULL: there is no staging */
    size_t bytes, segment;
    node_work_t *works[COMM_WORKS_MAX];
    uint64_t begun; /* works */
    stage_cursor_t post, take;
    /* Segments, for a look from outside of the lock: */
    atomic_uint_fast64_t wanted; /* of the works begun */
    atomic_uint_fast64_t posted, taken;
    atomic_uint_fast64_t floor;      /* all ranks had taken so many */
    atomic_uint pieces[STAGE_SLOTS]; /* 0: whole */
} node_stages_t;

/* Collective, after the board's; ERR_MEMORY, ERR_UNAVAILABLE: there is none. */
err_code_t node_stage_open(node_t *node, err_t *err);
void node_stage_close(node_t *node);

void node_stage_start(node_t *node, node_work_t *work);
/* Do a step of what can be done; true if there was any. Any thread. */
bool node_stage_go(node_t *node);
/* Is there a step to do? Any thread; may be wrong while another one goes. */
bool node_stage_ready(node_t *node);
/* Has this rank works that are not done? Any thread. */
bool node_stage_busy(const node_t *node);

/* ---- several nodes: for the owners of segments --------------------------- */

/* How many segments [work] has, after its start. */
uint64_t node_stage_segments(const node_work_t *work);
/* Have all ranks of the node posted it? */
bool node_stage_came(const node_t *node, uint64_t segment);
/* Then: do they ask for the same? */
bool node_stage_agrees(const node_t *node, uint64_t segment);
/* Where rank [local] has copied it to; where all take it from: the first's. */
char *node_stage_place(const node_t *node, int local, uint64_t segment);
/* The result is there. */
void node_stage_done(node_t *node, uint64_t segment);

/* ---- presence ------------------------------------------------------------ */

/* The owner begins or ends a wait. */
void node_stage_present(node_t *node, bool present);
/* The owner is about to sleep: wake the comm threads of those that it waits for
 * and that are not present. */
void node_stage_summon(node_t *node);
/* Comm thread: is there a step to do that the owner is not there for? */
bool node_stage_wanted(node_t *node);
bool node_stage_help(node_t *node);

#endif
