/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state of a group of the backend nccl (internal to src/comm/nccl).
 *
 * All collectives go, in order, through one stream of high priority: each
 * begins behind the event that it was given, and records an event at its end.
 * So they can be captured: the stream joins the capture with the first of these
 * events.
 *
 * NCCL finds no faults that CUDA does not tell, and does not know which rank is
 * to blame: the group beside this one does, over which it was opened. A fault
 * of either is one of both.
 */
#ifndef CDDP_COMM_NCCL_NCCL_GROUP_H
#define CDDP_COMM_NCCL_NCCL_GROUP_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "comm/comm_ops.h"
#include "comm/nccl/nccl_library.h"

typedef struct nccl_work {
    comm_work_t base;
    dev_event_t *done;
    bool busy;     /* not yet waited for */
    bool captured; /* [done] is an event of a capture */
} nccl_work_t;

/* What the device has come to, in pinned memory of the host that it writes. */
typedef struct nccl_marks {
    uint64_t begun, ended; /* number of collectives */
} nccl_marks_t;

typedef struct nccl_group {
    comm_group_t base;
    const nccl_library_t *nccl;
    comm_group_t *beside;
    ncclComm_t comm; /* NULL: it was ended */
    dev_stream_t *stream;
    void *nothing; /* an int32 of the device, for barriers */
    nccl_marks_t *marks;
    uint64_t marked;  /* sum of the marks at the last look, and */
    double marked_at; /* the instant when it changed */
    double broken_at; /* the instant when a connection broke; 0: none has */
    nccl_work_t works[COMM_WORKS_MAX];
    uint64_t started; /* number of the next collective */
    bool plain_said;  /* that arenas are not registered */
    pthread_mutex_t lock;
    bool failed; /* under the lock, as [fault] */
    err_t fault;
} nccl_group_t;

/* nccl_fault.c: */

/* The error of a call named [call] that returned [result]; ERR_OK for success,
 * and for a call that is still in progress. */
err_code_t nccl_check(const nccl_group_t *group, ncclResult_t result,
                      const char *call, err_t *err);

/* Does [result] say that a connection to another rank broke? The group beside
 * this one then finds out which rank is to blame. */
bool nccl_broken(ncclResult_t result);

/* As nccl_check. If a connection broke, waits for the fault of the group, for
 * at most its timeout, and returns that. */
err_code_t nccl_result(nccl_group_t *group, ncclResult_t result,
                       const char *call, err_t *err);

/* Wait until the last call is no longer in progress. Ends with the faults of
 * the group, or ERR_UNAVAILABLE after its timeout. */
err_code_t nccl_settle(nccl_group_t *group, err_t *err);

/* Store the fault, unless there is one. */
void nccl_fault_store(nccl_group_t *group, const err_t *fault);
/* Return the fault of the group, or ERR_OK. */
err_code_t nccl_fault(nccl_group_t *group, err_t *err);

/* This rank cannot go on because of [reason]: end the collectives of all ranks.
 * Returns the fault. */
err_code_t nccl_fail(nccl_group_t *group, const err_t *reason, err_t *err);

/* nccl_join.c: open what this rank needs, and the communicator. If that fails
 * on one rank, all get its error; what is open then is still to be closed.
 * [oob]: over the ranks of the group. Collective. */
err_code_t nccl_join(nccl_group_t *group, const comm_oob_t *oob, err_t *err);

/* nccl_look.c, nccl_arena.c: functions of comm_ops_t. */
err_code_t nccl_look(comm_group_t *base, double waited, err_t *err);
err_code_t nccl_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                           err_t *err);
void nccl_arena_close(comm_arena_t *base);

/* nccl_call.c: enqueue the operation of [request] on the group's stream. */
err_code_t nccl_call(nccl_group_t *group, const comm_request_t *request,
                     err_t *err);

/* nccl_end.c: end the communicator. If [well] is false, whatever is under way
 * is given up; if NCCL does not manage that within seconds, the device is
 * abandoned (dev_abandon). */
void nccl_end(nccl_group_t *group, bool well);

#endif
