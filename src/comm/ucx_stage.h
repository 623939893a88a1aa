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
 * Over several nodes (ucx_stage_net.c) the segments of a work belong to the
 * node's first ranks in turn. The owner sums one over the node into the slot of
 * the first rank, reduces it with its owners on the other nodes, and all copy
 * the result from there.
 *
 * A rank tells how many it has taken; a slot is written again when all have. So
 * ranks copy a segment in while others sum the one before.
 *
 * Copies are made by the owner while it starts, polls or waits for anything.
 * Where it does not (it computes), those who wait for it ring for its comm
 * thread, which does them in its place (ucx_stage_help). All under node.lock.
 */
#ifndef CDDP_COMM_UCX_STAGE_H
#define CDDP_COMM_UCX_STAGE_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/comm_ops.h"
#include "comm/ucx_claim.h"

#define STAGE_SLOTS 4

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

typedef struct stage_slot {
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t flag; /* segment + 1 */
    uint64_t number, count;                        /* of the work */
    uint16_t type, op;
    /* Of the first rank's slots: pieces of it. */
    _Alignas(MEM_ALIGN) ucx_counter_t claimed;
    _Alignas(MEM_ALIGN) ucx_counter_t done;
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

typedef struct ucx_stages {
    void **table; /* [count of the node], what maps will be */
    void **maps;  /* NULL: there is no staging */
    size_t bytes, segment;
    ucx_work_t *works[COMM_WORKS_MAX];
    uint64_t begun; /* works */
    stage_cursor_t post, take;
    /* Segments, for a look from outside of the lock: */
    atomic_uint_fast64_t wanted; /* of the works begun */
    atomic_uint_fast64_t posted, taken;
    atomic_uint_fast64_t floor;      /* all ranks had taken so many */
    atomic_uint pieces[STAGE_SLOTS]; /* 0: whole */
} ucx_stages_t;

/* Collective, after the board's; ERR_MEMORY, ERR_UNAVAILABLE: there is none. */
err_code_t ucx_stage_open(ucx_group_t *group, err_t *err);
void ucx_stage_close(ucx_group_t *group);

/* Can [request] go this way? Pure; the same on all ranks. */
bool ucx_stage_takes(const ucx_group_t *group, const comm_request_t *request);
/* True: the comm thread has a part in [work]. */
bool ucx_stage_start(ucx_group_t *group, ucx_work_t *work);
/* Do a step of what can be done; true if there was any. Any thread. */
bool ucx_stage_go(ucx_group_t *group);
/* Is there a step to do? Any thread; may be wrong while another one goes. */
bool ucx_stage_ready(ucx_group_t *group);
/* Has this rank works that are not done? Any thread. */
bool ucx_stage_busy(const ucx_group_t *group);

/* Have all ranks of the node posted it? */
bool ucx_stage_came(const ucx_group_t *group, uint64_t segment);
/* Then: do they ask for the same? */
bool ucx_stage_agrees(const ucx_group_t *group, uint64_t segment);
/* Where rank [local] has copied it to; where all take it from: the first's. */
char *ucx_stage_place(const ucx_group_t *group, int local, uint64_t segment);
/* The result is there. */
void ucx_stage_done(ucx_group_t *group, uint64_t segment);

/* ---- ucx_stage_net.c ----------------------------------------------------- */

/* Bytes of each segment of [request] but the last. Pure. */
size_t ucx_stage_part(const ucx_group_t *group, const comm_request_t *request);
/* How many they are, of a work whose part is known. */
uint64_t ucx_stage_segments(const ucx_work_t *work);
/* Several nodes: does this rank own segments of [request], how many lanes go
 * through them, and whose is [segment]? Pure. */
bool ucx_stage_owns(const ucx_group_t *group, const comm_request_t *request);
int ucx_stage_lanes(const ucx_group_t *group, const ucx_work_t *work);
int ucx_stage_owner(const ucx_group_t *group, const ucx_work_t *work,
                    uint64_t segment);

/* ---- presence ------------------------------------------------------------ */

/* The owner begins or ends a wait. */
void ucx_stage_present(ucx_group_t *group, bool present);
/* The owner is about to sleep: wake the comm threads of those that it waits for
 * and that are not present. */
void ucx_stage_summon(ucx_group_t *group);
/* Comm thread: is there a step to do that the owner is not there for? */
bool ucx_stage_wanted(ucx_group_t *group);
bool ucx_stage_help(ucx_group_t *group);

#endif
