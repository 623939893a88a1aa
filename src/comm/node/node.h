/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The node stage: collectives of ranks that share a node, through memory that
 * all of them map. It knows no transport and no group: whoever opens it says
 * which ranks share a node (node_place.h) and gives it an all-gather and a few
 * callbacks.
 *
 * A collective under way is a work. It goes one of three ways:
 *
 * NODE_ZCOPY    zero-copy: all-reduce of data in an arena, and on one node
 *               reduce-scatter and all-gather of ranges (node_zcopy.h);
 * NODE_ONESHOT  on one node: a small all-reduce of any memory, or a barrier
 *               (node_oneshot.h);
 * NODE_STAGED   all-reduce of any memory, copied through shared memory
 *               (node_stage.h).
 *
 * In a group over several nodes the caller carries out what happens between
 * them: it sums and shares what the ranks of the node have posted.
 *
 * Two threads of a rank call these functions: the owner, who starts and waits,
 * and the comm thread. A function without a note is for the owner.
 */
#ifndef CDDP_COMM_NODE_H
#define CDDP_COMM_NODE_H

#include <stdatomic.h>

#include "comm/comm_ops.h"
#include "comm/node/node_place.h"

typedef struct node node_t;

typedef enum node_way { NODE_ZCOPY, NODE_ONESHOT, NODE_STAGED } node_way_t;

/* Over several nodes: how a buffer is divided into slices. Slice i belongs to
 * local rank i of every node. */
typedef struct node_split {
    int owners;   /* how many slices there are */
    int lanes;    /* of all slices together */
    size_t slice; /* bytes of all slices but the last */
} node_split_t;

/* A collective under way. It stays where it is until node_wait has returned. */
typedef struct node_work {
    /* The caller fills these in before it calls node_start: */
    uint64_t number;               /* of the collective, equal on all ranks */
    const comm_request_t *request; /* unchanged until the wait has returned */
    atomic_int way;                /* node_way_t */
    node_split_t split;
    /* The node's own: */
    atomic_uint_fast64_t active; /* number + 1; 0 before start, after wait */
    atomic_uint pieces;          /* NODE_ZCOPY on one node: how many */
    _Atomic double seen;  /* instant at which node_oldest saw it; 0: not yet */
    uint64_t segment;     /* NODE_STAGED: number of its first segment */
    size_t segment_bytes; /* NODE_STAGED: of all segments but the last */
    atomic_bool done;     /* this rank has its result */
} node_work_t;

typedef struct node_config {
    int rank, size;             /* this rank of the group; ranks of the group */
    const comm_hello_t *hellos; /* [size]: names and hosts of the ranks */
    node_place_t place;         /* its arrays outlive the node */
    bool own_core; /* every rank that shares our cores has one of its own */
    size_t segment_most;       /* most bytes of a staged segment; 0: any */
    const atomic_bool *failed; /* the group has failed: waits end */

    void *context; /* of the functions */
    /* All-gather of [bytes] bytes over all ranks of the group. */
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
    /* Fail the group. Any thread. */
    void (*fail)(void *context, const err_t *fault);
    /* The owner is about to sleep for collective [number]. */
    void (*sleeps)(void *context, uint64_t number);
    /* From now on, this rank's comm thread also wakes when [fd] can be read,
     * and then calls node_wakeup_clear. */
    err_code_t (*watch)(void *context, int fd, err_t *err);
} node_config_t;

/* Allocate. Not collective. *out is freed by node_close. */
err_code_t node_new(const node_config_t *config, node_t **out, err_t *err);
/* Collective over the group: share memory. Where that is not possible there is
 * no node stage, and ERR_OK after a warning. */
err_code_t node_open(node_t *node, err_t *err);
/* NULL is allowed. */
void node_close(node_t *node);

/* Is there a node stage? The rest may be called without one. Any thread. */
bool node_is_open(const node_t *node);

/* ---- which requests ------------------------------------------------------ */

/* Are [bytes] bytes from [data] on in one arena? The same on all ranks. */
bool node_arena_holds(const node_t *node, const void *data, size_t bytes);
/* Most bytes of a one-shot collective. The same on all ranks of a node. */
size_t node_oneshot_most(const node_t *node);
/* Most bytes of a staged segment; 0: there is no memory to stage in. The same
 * on all ranks. */
size_t node_stage_most(const node_t *node);

/* ---- works --------------------------------------------------------------- */

/* Post [work]. The node stage must be open. */
void node_start(node_t *node, node_work_t *work);
/* Do a step of [work], or of older ones, if one is possible; then the state of
 * [work]. */
comm_state_t node_poll(node_t *node, node_work_t *work);
/* Wait until [work] is done (true) or the group has failed. Ends the work. */
bool node_wait(node_t *node, node_work_t *work);
/* Is it started and not yet waited for? Any thread. */
bool node_work_is_active(const node_work_t *work);

/* Has this rank works that go on only by what its threads do? */
bool node_busy(const node_t *node);
/* Go on with these works. If nothing can be done, sleep a little, unless *state
 * is not COMM_PENDING; the thread that changes *state calls node_notify. */
void node_attend(node_t *node, const atomic_int *state);
/* Wake the owners of this node that sleep. Any thread. */
void node_notify(node_t *node);

/* The oldest number that is started and not done; UINT64_MAX: none. *since is
 * the instant at which this function first saw it. Comm thread. */
uint64_t node_oldest(node_t *node, double *since);
/* From now on all works count as first seen at [now]. Comm thread. */
void node_clocks_reset(node_t *node, double now);
/* A count that grows whenever a wait ends well or a segment is consumed. Any
 * thread. */
uint64_t node_progress_count(const node_t *node);

/* ---- arenas -------------------------------------------------------------- */

typedef struct node_arena {
    void *data; /* memory of this rank */
    size_t bytes;
    uint32_t number; /* equal on all ranks */
    void *maps[];    /* [ranks of the node]: the arenas as mapped here */
} node_arena_t;

/* Can one more be opened? The same on all ranks. */
bool node_arena_is_free(const node_t *node);
/* Collective over the group. */
err_code_t node_arena_open(node_t *node, size_t bytes, node_arena_t **out,
                           err_t *err);
void node_arena_close(node_t *node, node_arena_t *arena);

#endif
