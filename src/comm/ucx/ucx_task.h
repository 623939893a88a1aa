/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Tasks: the algorithms that carry out collectives by messages. An algorithm
 * sees the members, its request, scratch memory and two functions that post
 * messages. It knows neither UCX nor the group. So tests run it over messages
 * in memory, and one algorithm can be a part of another one: members are all
 * ranks of the group, or one rank of each node.
 *
 * An algorithm is a state machine. It is called whenever none of its messages
 * is outstanding. It computes on the data that has come, and posts the messages
 * of its next round. A member posts its sends to another one in the order in
 * which that one posts its receives. No function here blocks or allocates.
 */
#ifndef CDDP_COMM_UCX_TASK_H
#define CDDP_COMM_UCX_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/comm_ops.h"
#include "comm/comm_plan.h"

typedef struct ucx_task ucx_task_t;

/* Post the next round of [task]; all its messages are done. False: the task is
 * done, too. */
typedef bool (*ucx_algorithm_t)(ucx_task_t *task);

typedef struct ucx_task_ops {
    /* Post a message of [bytes] bytes, which may be 0. [data] is in use until
     * the next call of the algorithm. */
    void (*send)(void *context, int member, const void *data, size_t bytes);
    void (*recv)(void *context, int member, void *data, size_t bytes);
    /* Fail the group. */
    void (*fail)(void *context, const err_t *fault);
} ucx_task_ops_t;

struct ucx_task {
    /* Set by the caller before ucx_task_begin: */
    const ucx_task_ops_t *ops;
    void *context;  /* first argument of [ops] */
    int rank, size; /* this member; number of members */
    const comm_request_t *request;
    uint64_t number; /* number of the collective, for messages */
    int index,
        lanes; /* the task does every [lanes]-th segment from [index] on */
    /* Equal on all members; at least ucx_task_scratch(size) bytes. */
    void *scratch;
    size_t scratch_bytes;
    int64_t *ranges;  /* tree: [2 * size], scratch */
    ucx_task_t *part; /* tree: memory for its all-gather */
    /* State of the algorithm: */
    int state;        /* each algorithm has its own values; 0: start */
    int mask;         /* distance of the current round */
    size_t at;        /* first element or byte of the current segment */
    size_t end;       /* elements or bytes of the longest range */
    size_t slice;     /* elements of each member in a segment */
    size_t stride;    /* direct: elements from segment to segment */
    int64_t range[2]; /* tree: first leaf of this member, number of leaves */
    comm_request_t inner; /* tree: the all-gather of ranges */
};

/* Set the state of [task] to the start. */
void ucx_task_begin(ucx_task_t *task);

/* Minimum bytes of scratch of a task of [size] members. Pure. */
size_t ucx_task_scratch(int size);

/* Elements of the longest range of request->cuts. Pure. */
size_t ucx_task_longest(const ucx_task_t *task);

static inline void ucx_task_send(ucx_task_t *task, int member, const void *data,
                                 size_t bytes)
{
    task->ops->send(task->context, member, data, bytes);
}

static inline void ucx_task_recv(ucx_task_t *task, int member, void *data,
                                 size_t bytes)
{
    task->ops->recv(task->context, member, data, bytes);
}

/* ---- algorithms ---------------------------------------------------------- */

/* ucx_small.c. The scratch must hold the data of doubling, or all blocks of
 * Bruck's all-gather. */
bool ucx_doubling(ucx_task_t *task);  /* all-reduce */
bool ucx_barrier(ucx_task_t *task);   /* dissemination */
bool ucx_broadcast(ucx_task_t *task); /* binomial tree */
bool ucx_bruck(ucx_task_t *task);     /* all-gather */
/* ucx_halving.c; needs scratch for half of the data, or for all of it if [size]
 * is no power of two. */
bool ucx_halving(ucx_task_t *task); /* all-reduce */
/* ucx_ring.c */
bool ucx_ring_reduce(ucx_task_t *task);  /* all-reduce */
bool ucx_ring_even(ucx_task_t *task);    /* all-reduce of one segment */
bool ucx_ring_scatter(ucx_task_t *task); /* reduce-scatter of ranges */
bool ucx_ring_gather(ucx_task_t *task);  /* all-gather, also of ranges */
/* ucx_direct.c */
bool ucx_direct_reduce(ucx_task_t *task);  /* all-reduce */
bool ucx_direct_scatter(ucx_task_t *task); /* reduce-scatter of ranges */
bool ucx_direct_gather(ucx_task_t *task);  /* all-gather of ranges */
/* ucx_tree.c */
bool ucx_tree(ucx_task_t *task); /* all-reduce along a tree */

#endif
