/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Errors of NCCL, and faults of the group. */
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "comm/nccl/nccl_group.h"

/* A call in progress is polled SPINS times without a pause, then with a sleep
 * of PAUSE_NS between polls: opening a communicator takes a good part of a
 * second. */
#define SPINS 200
#define PAUSE_NS 200000

err_code_t nccl_check(const nccl_group_t *group, ncclResult_t result,
                      const char *call, err_t *err)
{
    const char *more;

    if (result == ncclSuccess || result == ncclInProgress)
        return ERR_OK;
    more = group->nccl->GetLastError(group->comm);
    return err_set(err, ERR_UNAVAILABLE, "NCCL: %s failed: %s%s%.160s", call,
                   group->nccl->GetErrorString(result),
                   more != NULL && *more != '\0' ? ": " : "",
                   more != NULL ? more : "");
}

bool nccl_broken(ncclResult_t result)
{
    return result == ncclRemoteError || result == ncclSystemError;
}

err_code_t nccl_fault(nccl_group_t *group, err_t *err)
{
    err_code_t rc = ERR_OK;

    pthread_mutex_lock(&group->lock);
    if (group->failed)
        rc = err_copy(err, &group->fault);
    pthread_mutex_unlock(&group->lock);
    return rc == ERR_OK ? comm_group_check(group->beside, err) : rc;
}

void nccl_fault_store(nccl_group_t *group, const err_t *fault)
{
    pthread_mutex_lock(&group->lock);
    if (!group->failed)
        group->fault = *fault;
    group->failed = true;
    pthread_mutex_unlock(&group->lock);
}

err_code_t nccl_fail(nccl_group_t *group, const err_t *reason, err_t *err)
{
    err_t fault = ERR_INIT;

    if (nccl_fault(group, err) == ERR_OK) {
        comm_group_fail(group->beside, reason);
        comm_fault_own(&group->base, reason, &fault);
        nccl_fault_store(group, &fault);
    }
    return nccl_fault(group, err);
}

static void poll_pause(int polls)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    if (polls < SPINS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* Wait until the group knows a fault, and return it. ERR_OK: the timeout of the
 * group passed without a fault. */
static err_code_t fault_await(nccl_group_t *group, err_t *err)
{
    const double begin = clock_now();
    err_code_t rc = nccl_fault(group, err);

    for (int polls = 0;
         rc == ERR_OK && clock_now() - begin < group->base.timeout; polls++) {
        poll_pause(polls);
        rc = nccl_fault(group, err);
    }
    return rc;
}

err_code_t nccl_result(nccl_group_t *group, ncclResult_t result,
                       const char *call, err_t *err)
{
    err_code_t rc = nccl_broken(result) ? fault_await(group, err) : ERR_OK;

    return rc == ERR_OK ? nccl_check(group, result, call, err) : rc;
}

err_code_t nccl_settle(nccl_group_t *group, err_t *err)
{
    const double begin = clock_now();
    ncclResult_t state = ncclInProgress, result;
    err_code_t rc = ERR_OK;

    for (int polls = 0; rc == ERR_OK && state == ncclInProgress; polls++) {
        result = group->nccl->CommGetAsyncError(group->comm, &state);
        if (result != ncclSuccess)
            state = result;
        if (state == ncclInProgress) {
            rc = nccl_fault(group, err);
            if (rc == ERR_OK && clock_now() - begin > group->base.timeout)
                rc = err_set(err, ERR_UNAVAILABLE,
                             "NCCL: a call is in progress for more than %g s",
                             group->base.timeout);
            poll_pause(polls);
        }
    }
    return rc == ERR_OK ? nccl_result(group, state, "a call", err) : rc;
}
