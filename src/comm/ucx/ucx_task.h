/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Tasks: the algorithms that carry out collectives by messages. An algorithm
 * sees the members, its request, scratch memory and two functions that post
 * messages. It knows neither UCX nor the group, so that tests run it over
 * messages in memory, and so that one algorithm can be a part of another one:
 * members are all ranks of the group, or one rank of each node.
 *
 * An algorithm is a state machine. It is called whenever none of its messages
 * is outstanding, computes on what has come, and posts its next round. Members
 * post their messages to each other in the same order.
 */
#ifndef CDDP_COMM_UCX_TASK_H
#define CDDP_COMM_UCX_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/comm_ops.h"
#include "comm/comm_plan.h"

typedef struct ucx_task ucx_task_t;

/* Post the next round of [task], whose messages have all arrived. False: there
 * is none, the task is done. */
typedef bool (*ucx_algorithm_t)(ucx_task_t *task);

/* Zero bytes are a message, too. Memory is in use until the next call of the
 * algorithm. */
typedef struct ucx_task_ops {
    void (*send)(void *context, int member, const void *data, size_t bytes);
    void (*recv)(void *context, int member, void *data, size_t bytes);
    void (*fail)(void *context, const err_t *fault);
} ucx_task_ops_t;

struct ucx_task {
    /* Filled in by who starts it. */
    const ucx_task_ops_t *ops;
    void *context;                 /* of ops */
    int rank, size;                /* this member, and how many there are */
    const comm_request_t *request; /* what is to be done */
    uint64_t number;               /* of the collective, for sentences */
    int index, lanes;     /* it does every [lanes]-th segment, from [index] */
    void *scratch;        /* of ucx_task_scratch(size) bytes or more: */
    size_t scratch_bytes; /* equal on all members */
    int64_t *ranges;      /* tree: [2 * size], scratch */
    ucx_task_t *part;     /* tree: memory of the task that it is composed of */
    /* State of the algorithm, zero at the start. */
    int state;
    int mask;             /* distance of the current round */
    size_t at;            /* current segment: its first element or byte */
    size_t end;           /* of the longest range, elements or bytes */
    size_t slice;         /* elements for each member in a segment */
    size_t stride;        /* direct: elements from segment to segment */
    int64_t range[2];     /* tree: first leaf of this member, number of them */
    comm_request_t inner; /* tree: the all-gather of ranges */
};

/* Begin: zero the state of [task]. */
void ucx_task_begin(ucx_task_t *task);

/* Bytes of scratch that a task of [size] members has. */
size_t ucx_task_scratch(int size);

/* Elements of the longest range that [what] is cut into. */
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

/* ---- algorithms: ucx_small.c, ucx_halving.c, ucx_ring.c, ucx_direct.c, ----
 * ucx_tree.c ----------------------------------------------------------------
 */

bool ucx_doubling(ucx_task_t *task);  /* all-reduce, needs scratch for all */
bool ucx_halving(ucx_task_t *task);   /* the same, by halves */
bool ucx_barrier(ucx_task_t *task);   /* dissemination */
bool ucx_broadcast(ucx_task_t *task); /* binomial tree */
bool ucx_bruck(ucx_task_t *task);     /* all-gather, needs scratch for all */
bool ucx_ring_reduce(ucx_task_t *task);
bool ucx_ring_even(ucx_task_t *task);    /* all-reduce of one segment */
bool ucx_ring_scatter(ucx_task_t *task); /* reduce-scatter of ranges */
bool ucx_ring_gather(ucx_task_t *task);  /* all-gather, also of ranges */
bool ucx_direct_reduce(ucx_task_t *task);
bool ucx_direct_scatter(ucx_task_t *task); /* reduce-scatter of ranges */
bool ucx_direct_gather(ucx_task_t *task);  /* all-gather of ranges */
bool ucx_tree(ucx_task_t *task);

/* ---- what doubling and halving share (ucx_small.c) ------------------------
 */

/*
 * Members beyond the largest power of two are folded: of the first 2 * rest
 * members, each even one gives its data to the next odd one and gets the result
 * in the end. The others are renumbered 0 .. power-1.
 */
typedef struct ucx_fold {
    int power, rest; /* size = power + rest */
    int number;      /* of this member among the power; -1: folded */
} ucx_fold_t;

/* States of both; HALVED and GATHERED of halving only. */
enum {
    FOLD_BEGIN,
    FOLD_TAKEN,
    FOLD_MET,
    FOLD_HALVED,
    FOLD_GATHERED,
    FOLD_AWAIT,
    FOLD_FINISHED
};

ucx_fold_t ucx_fold_of(const ucx_task_t *task);
/* The member that has [number] among the power. */
int ucx_fold_member(const ucx_fold_t *fold, int number);
/* The first round, of members that are to be folded: true. */
bool ucx_fold_begin(ucx_task_t *task, const ucx_fold_t *fold);
/* [bytes] from [begin] on: combine them with those in the scratch. */
void ucx_fold_combine(ucx_task_t *task, size_t begin, size_t count,
                      bool theirs_first);
/* All of the power have the result: send it to who is folded. */
bool ucx_fold_finish(ucx_task_t *task, const ucx_fold_t *fold);
/* The result comes to who is folded. */
void ucx_fold_await(ucx_task_t *task);

#endif
