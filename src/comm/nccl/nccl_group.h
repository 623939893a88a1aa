/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state of a group of the backend nccl (internal to src/comm/nccl).
 *
 * All collectives go, in order, through one stream of high priority. Each
 * begins after the event of its request, and records an event at its end. So
 * collectives can be captured: the stream joins the capture when it waits for
 * the first event of a request.
 *
 * NCCL does not notice that another rank hangs, and does not know which rank is
 * to blame. The group beside this one, over which this one was opened, does
 * both, since its beats contain the marks of this one. If one of the two groups
 * fails, the other one fails, too.
 */
#ifndef CDDP_COMM_NCCL_NCCL_GROUP_H
#define CDDP_COMM_NCCL_NCCL_GROUP_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "comm/comm_ops.h"
#include "comm/comm_still.h"
#include "comm/nccl/nccl_library.h"

typedef struct nccl_work {
    comm_work_t base;
    dev_event_t *done;
    bool busy;     /* not yet waited for */
    bool captured; /* [done] is an event of a capture */
} nccl_work_t;

/* What a rank asks for, and which leaves it has, for a sum along a tree. */
typedef struct nccl_leaves {
    int64_t first, held, leaves;
    int64_t count, type;
} nccl_leaves_t;

typedef struct nccl_tree {
    size_t bytes;    /* of [scratch]; 0: the group makes no sums along a tree */
    void *scratch;   /* on the device, for slices of other ranks */
    uint64_t number; /* of the last sum */
    nccl_leaves_t *asked; /* [size] */
    int64_t *ranges;      /* [2 * size], see comm_tree_check */
    size_t *cuts;         /* [size + 1] */
    /* Elements of a slice of the next sum. The last slice may be shorter. */
    size_t slice;
} nccl_tree_t;

typedef struct nccl_group {
    comm_group_t base;
    const nccl_library_t *nccl;
    comm_group_t *beside;
    ncclComm_t comm; /* NULL: not open */
    dev_stream_t *stream;
    void *nothing;       /* an int32 of the device, for barriers */
    comm_marks_t *marks; /* pinned; the device writes them */
    comm_still_t marked; /* its number: the sum of both marks */
    comm_still_t broken; /* its number: 1 if a connection broke, else 0 */
    nccl_work_t works[COMM_WORKS_MAX];
    nccl_tree_t tree;
    uint64_t started; /* where the search for a free work begins */
    bool plain_said;  /* a log line said that arenas are not registered */
    bool memory_said; /* a log line said how arenas are registered */
    pthread_mutex_t lock;
    bool failed; /* the lock guards this and [fault] */
    err_t fault;
} nccl_group_t;

/* nccl_fault.c: */

/* Return the error of [call], which returned [result]. ERR_OK: it succeeded or
 * is still in progress. */
err_code_t nccl_check(const nccl_group_t *group, ncclResult_t result,
                      const char *call, err_t *err);

/* Does [result] say that a connection to another rank broke? The group beside
 * this one then finds out which rank is to blame. */
bool nccl_broken(ncclResult_t result);

/* As nccl_check. But if a connection broke, wait until the group knows the
 * fault, at most for its timeout, and return that fault. */
err_code_t nccl_result(nccl_group_t *group, ncclResult_t result,
                       const char *call, err_t *err);

/* Wait until the last call is no longer in progress. Returns its error, a fault
 * of the group, or ERR_UNAVAILABLE after the timeout of the group. */
err_code_t nccl_settle(nccl_group_t *group, err_t *err);

/* Store [fault], unless one is stored already. */
void nccl_fault_store(nccl_group_t *group, const err_t *fault);
/* Return the fault of this group or of the one beside it, or ERR_OK. */
err_code_t nccl_fault(nccl_group_t *group, err_t *err);

/* This rank cannot go on because of [reason]: end the collectives of all ranks.
 * Returns the fault. */
err_code_t nccl_fail(nccl_group_t *group, const err_t *reason, err_t *err);

/* nccl_beside.c: carry out [request] in the group beside this one, and wait for
 * it. Errors are those of that group. Collective. */
err_code_t nccl_beside(nccl_group_t *group, const comm_request_t *request,
                       err_t *err);
/* Set *value to the least value of all ranks. Collective, as nccl_beside. */
err_code_t nccl_least(nccl_group_t *group, int32_t *value, err_t *err);

/* nccl_join.c: open what this rank needs, and the communicator. If that fails
 * on one rank, all ranks get its error, and the caller closes what is open.
 * [oob] connects the ranks of the group. Collective. */
err_code_t nccl_join(nccl_group_t *group, const comm_oob_t *oob, err_t *err);

/* nccl_look.c, nccl_arena.c: functions of comm_ops_t. All threads that wait for
 * the device call nccl_look, also at the same time (dev_watch). */
err_code_t nccl_look(comm_group_t *base, double waited, err_t *err);
/* Wait until the stream of [group] has done its work, or until nccl_look
 * returns an error, which is then returned. */
err_code_t nccl_stream_wait(nccl_group_t *group, err_t *err);
err_code_t nccl_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                           err_t *err);
void nccl_arena_close(comm_arena_t *base);

/* nccl_call.c: enqueue the operation of [request], which is not a sum along
 * a tree, on the group's stream. */
err_code_t nccl_call(nccl_group_t *group, const comm_request_t *request,
                     err_t *err);
/* Wait until the last call, which returned [result], is no longer in progress.
 * Returns the error of the call, whose text contains [name], or a fault of the
 * group. */
err_code_t nccl_call_end(nccl_group_t *group, ncclResult_t result,
                         const char *name, err_t *err);
ncclDataType_t nccl_type(comm_type_t type);

/* nccl_tree.c: open and close what sums along a tree need. */
err_code_t nccl_tree_open(nccl_group_t *group, err_t *err);
void nccl_tree_close(nccl_group_t *group);
/* Call this before [request], a sum along a tree, is enqueued. It finds out
 * which rank has which leaves, and chooses the size of slices. ERR_CONFIG, on
 * all ranks, if the request cannot be carried out; the group can be used
 * afterwards. Other errors are those of the group beside this one. Blocks until
 * all ranks have called this function, unless request->ranges is given. */
err_code_t nccl_tree_meet(nccl_group_t *group, const comm_request_t *request,
                          err_t *err);
/* Enqueue [request], for which nccl_tree_meet was called. */
err_code_t nccl_tree_call(nccl_group_t *group, const comm_request_t *request,
                          err_t *err);

/* nccl_end.c: end the communicator. If [well] is false, or ending it fails,
 * pending collectives are aborted. If NCCL does not do that within 5 seconds,
 * the device is abandoned (dev_abandon). */
void nccl_end(nccl_group_t *group, bool well);

#endif
