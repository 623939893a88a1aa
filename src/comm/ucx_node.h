/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The node stage of a ucx group: all-reduce, and on one node its two halves,
 * reduce-scatter and all-gather of ranges, through memory that all ranks of a
 * node map. The arenas of all ranks (memfds, ucx_shm.c) and a board lie in such
 * memory; every node of the group has a board.
 *
 * What lies in an arena goes through slots of the board: ucx_slot.h.
 *
 * All-reduces of memory that lies in no arena are staged (ucx_stage.h); on one
 * node small ones and barriers are shots (ucx_shot.h).
 */
#ifndef CDDP_COMM_UCX_NODE_H
#define CDDP_COMM_UCX_NODE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "comm/comm_ops.h"
#include "comm/ucx_pace.h"
#include "comm/ucx_shot.h"
#include "comm/ucx_slot.h"
#include "comm/ucx_stage.h"

#define UCX_NODE_ARENAS 16 /* of one group; further ones are plain memory */

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

typedef enum ucx_way { WAY_SLOT, WAY_SHOT, WAY_STAGE } ucx_way_t;

typedef struct node_seat { /* of one rank's comm thread */
    _Alignas(MEM_ALIGN) atomic_bool asleep;
    int64_t pid, fd; /* the end of its bell to write to */
} node_seat_t;

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
    void *maps[]; /* [count of the node]: the arenas, as mapped here */
} ucx_arena_t;

typedef struct ucx_node {
    node_board_t *board;
    atomic_bool open;     /* there is a node stage */
    size_t bytes, stride; /* of the board; from slot to slot */
    ucx_pace_t pace;      /* of the owner's waits */
    pthread_mutex_t lock; /* parts, among the threads of this rank */
    char **parts;         /* [count]: where a piece lies in each arena */
    char **span_parts;    /* the same of the comm thread */
    int bell;             /* to read from; -1: none */
    int *bells;           /* [count], to write to */
    ucx_shots_t shots;
    ucx_stages_t stages;
    atomic_uint_fast64_t moves; /* waits that ended well, segments */
    uint32_t opened;            /* arenas so far */
    ucx_arena_t *arenas[UCX_NODE_ARENAS];
} ucx_node_t;

/* ---- ucx_shm.c ----------------------------------------------------------- */

/* Map memory of the ranks of this node (of its first only, unless [all]) of
 * [bytes] zeroed bytes into maps[count] (maps[0]). Collective over the group;
 * the same answer everywhere. */
err_code_t ucx_shm_share(ucx_group_t *group, size_t bytes, bool all,
                         void **maps, err_t *err);
void ucx_shm_unmap(void **maps, int count, size_t bytes);
/* Whether all ranks of the group are [well]; the first that is not is named, as
 * one that cannot do [what] ("map memory"). votes[size] is scratch. */
err_code_t ucx_shm_agree(ucx_group_t *group, bool well, const char *what,
                         char *votes, err_t *err);

/* The arena of comm.h. */
err_code_t ucx_arena_open(comm_group_t *group, size_t bytes, comm_arena_t **out,
                          err_t *err);
void ucx_arena_close(comm_arena_t *arena);

/* ---- ucx_bell.c: wake a comm thread of this node ------------------------- */

/* Make this rank's bell; false: it cannot be made. */
bool ucx_bell_hang(ucx_group_t *group);
/* Open those of the others, who have made them; false: one is out of reach. */
bool ucx_bell_reach(ucx_group_t *group);
void ucx_bell_close(ucx_group_t *group);
/* Wake the comm thread of rank [local] of this node if it sleeps. */
void ucx_bell_ring(ucx_group_t *group, int local);
/* The comm thread is about to sleep, or has woken. */
void ucx_bell_asleep(ucx_group_t *group, bool asleep);

/* ---- ucx_node.c ---------------------------------------------------------- */

/* Collective; without the means there is no node stage (a warning). */
err_code_t ucx_node_open(ucx_group_t *group, err_t *err);
void ucx_node_close(ucx_group_t *group);

/* Does the node stage carry out [request], and which way? All-reduces, over
 * several nodes not of 16-bit floats; in a group on one node barriers, too, and
 * what gathers or scatters ranges of an arena. The table may say otherwise. */
bool ucx_node_way(const ucx_group_t *group, const comm_request_t *request,
                  ucx_way_t *way);

/* Post [work], which goes that way. True: the comm thread has a
 * part in it, so that it must be queued for it. */
bool ucx_node_start(ucx_group_t *group, ucx_work_t *work, ucx_way_t way);
/* Wake whoever sleeps, after something has been stored that is waited for. */
void ucx_node_ring(ucx_group_t *group);
/* A node-mate asks for something else in [number], which is under way here:
 * fail the group. The owner, or the comm thread if it has a part in it. */
void ucx_node_disagree(ucx_group_t *group, uint64_t number);
/* Compute a piece if there is one; then how it stands. */
comm_state_t ucx_node_poll(ucx_group_t *group, ucx_work_t *work);
/* Until the work is done (true) or the group has failed. */
bool ucx_node_wait(ucx_group_t *group, ucx_work_t *work);

/* Has this rank works that go on only by what its threads do? */
bool ucx_node_busy(const ucx_group_t *group);
/* Go on with those, or sleep a little, while [work] is the comm thread's. */
void ucx_node_attend(ucx_group_t *group, const ucx_work_t *work);

/* The oldest number that is started and not done, UINT64_MAX: none; *since:
 * the instant of its start. Any thread. */
uint64_t ucx_node_oldest(ucx_group_t *group, double *since);

#endif
