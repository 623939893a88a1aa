/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The end of a communicator. ncclCommAbort may never return if other ranks do
 * not call it (github.com/NVIDIA/nccl, issues 549 and 863). So another thread
 * calls it; if that takes too long, this rank goes on without the thread.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/nccl/nccl_group.h"
#include "dev/dev_cuda.h"

#define ABORT_SECONDS 5

typedef struct abort_job {
    const nccl_library_t *nccl;
    ncclComm_t comm;
} abort_job_t;

static void *abort_main(void *argument)
{
    abort_job_t *job = argument;

    job->nccl->CommAbort(job->comm);
    mem_free(job);
    return NULL;
}

static void comm_abort(nccl_group_t *group)
{
    abort_job_t *job = NULL;
    bool in_time = false;
    err_t err = ERR_INIT;
    err_code_t rc = mem_new(abort_job_t, 1, "an abort", &job, &err);

    if (rc == ERR_OK) {
        job->nccl = group->nccl;
        job->comm = group->comm;
        rc = thread_call("cddp-abort", abort_main, job, ABORT_SECONDS, &in_time,
                         &err);
        if (rc != ERR_OK)
            mem_free(job);
    }
    if (in_time)
        return;
    if (rc == ERR_OK)
        err_set(&err, ERR_PEER, "NCCL did not end its work within %d s",
                ABORT_SECONDS);
    log_warn("comm", "%s: this rank gives up its GPU", err.text);
    dev_abandon(group->base.dev);
}

void nccl_end(nccl_group_t *group, bool well)
{
    const nccl_library_t *nccl = group->nccl;
    err_t err = ERR_INIT;
    ncclResult_t result;

    if (group->comm == NULL)
        return;
    if (well) {
        result = nccl->CommFinalize(group->comm);
        well = nccl_check(group, result, "ncclCommFinalize", &err) == ERR_OK &&
               nccl_settle(group, &err) == ERR_OK;
    }
    if (well)
        nccl->CommDestroy(group->comm);
    else
        comm_abort(group);
    group->comm = NULL;
}
