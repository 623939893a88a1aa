/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The node stage: collectives among ranks that share a node, through memory
 * that all of them map. It knows no transport and no group: its opener says
 * which ranks share a node (node_place.h) and provides an all-gather and a few
 * callbacks.
 *
 * A collective in flight is a work. It uses one of three ways:
 *
 * - NODE_ZCOPY (zero-copy): all-reduce of data in an arena; on one node also
 *   reduce-scatter and all-gather of ranges (node_zcopy.h).
 * - NODE_ONESHOT, on one node only: a small all-reduce of any memory, or a
 *   barrier (node_oneshot.h).
 * - NODE_STAGED: all-reduce of any memory, copied through shared memory
 *   (node_stage.h).
 *
 * In a group over several nodes the caller exchanges data between nodes: it
 * sums and stores what the ranks of the node have posted.
 *
 * Two threads of a rank call these functions: the owner, which starts and
 * waits, and the comm thread. A function without a note is for the owner.
 */
#ifndef CDDP_COMM_NODE_H
#define CDDP_COMM_NODE_H

#include <stdatomic.h>

#include "comm/comm_ops.h"
#include "comm/node/node_place.h"

typedef struct node node_t;

typedef enum node_way { NODE_ZCOPY, NODE_ONESHOT, NODE_STAGED } node_way_t;

/* With several nodes: how a buffer is divided into slices. Slice i belongs to
 * local rank i of every node. */
typedef struct node_split {
    int owners;   /* number of slices */
    int lanes;    /* number of lanes, summed over all slices */
    size_t slice; /* bytes of each slice except the last */
} node_split_t;

/* A collective in flight. Must not move until node_wait has returned. */
typedef struct node_work {
    /* Set by the caller before node_start: */
    uint64_t number; /* number of the collective, equal on all ranks */
    /* Must not change until the wait has returned. */
    const comm_request_t *request;
    atomic_int way; /* node_way_t */
    node_split_t split;
    /* Set by the node stage: */
    atomic_uint_fast64_t active; /* number + 1; 0 before start, after wait */
    atomic_uint pieces;          /* NODE_ZCOPY on one node: number of pieces */
    /* Instant at which node_oldest first saw it; 0: not yet. */
    _Atomic double seen;
    uint64_t segment; /* NODE_STAGED: number of its first segment */
    /* NODE_STAGED: bytes of each segment except the last. */
    size_t segment_bytes;
    atomic_bool done; /* this rank has its result */
} node_work_t;

typedef struct node_config {
    int rank, size; /* this rank in the group; number of ranks in the group */
    const comm_hello_t *hellos; /* [size]: names and hosts of the ranks */
    node_place_t place;         /* the arrays outlive the node */
    bool own_core; /* each rank that shares our cores has a core of its own */
    size_t segment_most; /* maximum bytes of a staged segment; 0: no limit */
    /* True when the group has failed; ends all waits. */
    const atomic_bool *failed;

    void *context; /* first argument of the functions below */
    /* All-gather of [bytes] bytes over all ranks of the group. */
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
    /* Report a fault of the group. Any thread. */
    void (*fail)(void *context, const err_t *fault);
    /* Called before the owner sleeps because of collective [number]. */
    void (*sleeps)(void *context, uint64_t number);
    /* Ask this rank's comm thread to wake also when [fd] becomes readable, and
     * then to call node_wakeup_clear. */
    err_code_t (*watch)(void *context, int fd, err_t *err);
} node_config_t;

/* Allocate a node stage. Not collective. node_close frees *out. */
err_code_t node_new(const node_config_t *config, node_t **out, err_t *err);
/* Share memory among the ranks of each node. If that is not possible, a warning
 * is logged, ERR_OK is returned, and there is no node stage. Collective over
 * the group. */
err_code_t node_open(node_t *node, err_t *err);
/* NULL allowed. */
void node_close(node_t *node);

/* Return whether there is a node stage. All other functions may be called
 * without one, unless noted. Any thread. */
bool node_is_open(const node_t *node);

/* ---- which requests ------------------------------------------------------ */

/* Return whether [bytes] bytes from [data] on are in one arena. Equal on all
 * ranks. */
bool node_arena_holds(const node_t *node, const void *data, size_t bytes);
/* Maximum bytes of a one-shot collective. Equal on all ranks of a node. */
size_t node_oneshot_most(const node_t *node);
/* Maximum bytes of a staged segment; 0: no memory for staging. Equal on all
 * ranks. */
size_t node_stage_most(const node_t *node);

/* ---- works --------------------------------------------------------------- */

/* Start [work]. The node stage must be open. */
void node_start(node_t *node, node_work_t *work);
/* Do a possible step of [work] or of older works, then return the state of
 * [work]. */
comm_state_t node_poll(node_t *node, node_work_t *work);
/* Wait until [work] is done (returns true) or the group has failed. Ends the
 * work. */
bool node_wait(node_t *node, node_work_t *work);
/* Return whether [work] is started and not yet waited for. Any thread. */
bool node_work_is_active(const node_work_t *work);

/* Return whether this rank has works that need its own threads to proceed. */
bool node_busy(const node_t *node);
/* Proceed with these works. If nothing can be done, sleep for a short time
 * while *state is COMM_PENDING; the thread that changes *state calls
 * node_notify. */
void node_attend(node_t *node, const atomic_int *state);
/* Wake the sleeping owners of this node. Any thread. */
void node_notify(node_t *node);

/* The lowest number of a collective that is started and not done;
 * UINT64_MAX: none. *since is the instant at which this function first saw
 * it. Comm thread. */
uint64_t node_oldest(node_t *node, double *since);
/* Set the instant at which all works were first seen to [now]. Comm thread. */
void node_clocks_reset(node_t *node, double now);
/* A counter that grows with each successful wait and each consumed segment. Any
 * thread. */
uint64_t node_progress_count(const node_t *node);

/* ---- arenas -------------------------------------------------------------- */

typedef struct node_arena {
    void *data; /* memory of this rank, as it maps it */
    size_t bytes;
    uint32_t number; /* number of the arena, equal on all ranks */
    /* [ranks of the node]: their arenas, as this rank maps them. */
    void *maps[];
} node_arena_t;

/* Return whether another arena can be opened. Equal on all ranks. */
bool node_arena_is_free(const node_t *node);
/* Open an arena. If one rank fails, all fail. Collective over the group. */
err_code_t node_arena_open(node_t *node, size_t bytes, node_arena_t **out,
                           err_t *err);
void node_arena_close(node_t *node, node_arena_t *arena);

#endif
