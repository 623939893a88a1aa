/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The node stage of a ucx group: all-reduce through memory that all ranks map,
 * for groups whose ranks are all on one node. The arenas of all ranks (memfds,
 * ucx_shm.c) and a board lie in such memory.
 *
 * Collective number n uses slot n % COMM_WORKS_MAX of the board. A rank that
 * starts it posts where its buffer is; the last to come opens the slot, whose
 * pieces are then claimed one by one by whoever waits or polls: nobody depends
 * on a rank that computes something else meanwhile. A piece is read from all
 * ranks' buffers, summed in rank order and stored to all of them: the same bits
 * everywhere, whoever claims it. The comm thread has no part in it; it goes on
 * finding faults, which end the waits.
 *
 * A slot is used again by number n + COMM_WORKS_MAX, which a rank can start
 * only after its wait for n has returned, so all have come by then; claims
 * carry the number, so that a late one fails, and `completed` only grows.
 */
#ifndef CDDP_COMM_UCX_NODE_H
#define CDDP_COMM_UCX_NODE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "comm/comm_ops.h"

#define UCX_NODE_ARENAS 16 /* of one group; further ones are plain memory */

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

typedef struct node_post {               /* what one rank wants to be reduced */
    _Alignas(MEM_ALIGN) uint64_t offset; /* in its arena */
    uint64_t count;
    uint32_t arena;
    uint16_t type, op;
} node_post_t;

typedef struct node_slot {
    _Alignas(MEM_ALIGN) atomic_uint arrived;
    uint32_t pieces;
    atomic_uint_fast64_t odd; /* number + 1 if the posts of it disagree */
    /* (number + 1) << 24 | pieces left to claim */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t claim;
    _Alignas(MEM_ALIGN) atomic_uint done; /* pieces */
    atomic_uint_fast64_t completed; /* number + 1 of the last completed one */
    node_post_t posts[];            /* [size] */
} node_slot_t;

typedef struct node_board {
    _Alignas(MEM_ALIGN) atomic_uint sleepers;
    _Alignas(MEM_ALIGN) atomic_uint bell; /* futex */
    _Alignas(MEM_ALIGN) char slots[];
} node_board_t;

typedef struct ucx_arena {
    comm_arena_t base;
    size_t bytes;
    uint32_t number;
    bool shared;  /* else plain */
    void *maps[]; /* [size]: every rank's arena, as mapped here */
} ucx_arena_t;

typedef struct ucx_node {
    _Atomic(node_board_t *) board; /* NULL: no node stage */
    size_t bytes, stride;          /* of the board; from slot to slot */
    bool whole;                    /* all ranks of the group are on this node */
    bool spin;                     /* a core for every rank that shares ours */
    pthread_mutex_t lock;          /* parts, among the threads of this rank */
    char **parts;               /* [size]: where a piece lies in each arena */
    atomic_uint_fast64_t moves; /* waits that ended well */
    uint32_t opened;            /* arenas so far */
    ucx_arena_t *arenas[UCX_NODE_ARENAS];
} ucx_node_t;

/* ---- ucx_shm.c ----------------------------------------------------------- */

/* Map memory of all ranks (of rank 0 only, unless [all]) of [bytes] zeroed
 * bytes into maps[size] (maps[0]). Collective; the same answer everywhere. */
err_code_t ucx_shm_share(ucx_group_t *group, size_t bytes, bool all,
                         void **maps, err_t *err);
void ucx_shm_unmap(void **maps, int count, size_t bytes);

/* The arena of comm.h. */
err_code_t ucx_arena_open(comm_group_t *group, size_t bytes, comm_arena_t **out,
                          err_t *err);
void ucx_arena_close(comm_arena_t *arena);

/* ---- ucx_node.c ---------------------------------------------------------- */

/* Collective; without the means there is no node stage (a warning). */
err_code_t ucx_node_open(ucx_group_t *group, err_t *err);
void ucx_node_close(ucx_group_t *group);

/* Does the node stage carry out such a collective? Barriers and all-reduces
 * whose data lies in an arena, in a group on one node. */
bool ucx_node_takes(const ucx_group_t *group, comm_kind_t kind,
                    const void *data, size_t bytes);

/* Post [work] (whose request the node stage takes). */
void ucx_node_start(ucx_group_t *group, ucx_work_t *work);
bool ucx_node_done(const ucx_group_t *group, uint64_t number);
/* Compute a piece if there is one; then how it stands. */
comm_state_t ucx_node_poll(ucx_group_t *group, ucx_work_t *work);
/* Until the work is done (true) or the group has failed. */
bool ucx_node_wait(ucx_group_t *group, ucx_work_t *work);

/* The oldest number that is started and not done, UINT64_MAX: none; *since:
 * the instant of its start. Any thread. */
uint64_t ucx_node_oldest(ucx_group_t *group, double *since);

/* ---- node_sum.c ---------------------------------------------------------- */

/* Reduce [count] elements at parts[0 .. size-1] in that order; the result goes
 * to all of them. */
void node_sum(char *const *parts, int size, size_t count, comm_type_t type,
              comm_op_t op);

#endif
