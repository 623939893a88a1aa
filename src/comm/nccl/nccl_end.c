/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The end of a communicator. ncclCommAbort may never return if other ranks do
 * not call it (github.com/NVIDIA/nccl, issues 549 and 863). So another thread
 * calls it; if that takes too long, this rank goes on without the thread.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/nccl/nccl_group.h"
#include "dev/dev_cuda.h"

#define ABORT_SECONDS 5

/* Shared by the thread that aborts and the one that waits for it. The last of
 * them frees it. */
typedef struct abort_job {
    const nccl_library_t *nccl;
    ncclComm_t comm;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, left;
} abort_job_t;

static void job_free(abort_job_t *job)
{
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    mem_free(job);
}

static void *abort_main(void *argument)
{
    abort_job_t *job = argument;
    bool left;

    job->nccl->CommAbort(job->comm);
    pthread_mutex_lock(&job->lock);
    job->done = true;
    left = job->left;
    pthread_cond_signal(&job->changed);
    pthread_mutex_unlock(&job->lock);
    if (left)
        job_free(job);
    return NULL;
}

/* Returns whether the abort ended in time. */
static bool abort_await(abort_job_t *job, pthread_t thread)
{
    const double instant = clock_now() + ABORT_SECONDS;
    bool done;

    pthread_mutex_lock(&job->lock);
    while (!job->done && thread_cond_wait(&job->changed, &job->lock, instant))
        continue;
    done = job->done;
    job->left = !done;
    pthread_mutex_unlock(&job->lock);
    if (done) {
        pthread_join(thread, NULL);
        job_free(job);
    } else {
        pthread_detach(thread);
    }
    return done;
}

static void comm_abort(nccl_group_t *group)
{
    abort_job_t *job = NULL;
    pthread_t thread;
    bool done = false;
    err_t err = ERR_INIT;
    err_code_t rc = mem_new(abort_job_t, 1, "an abort", &job, &err);

    if (rc == ERR_OK) {
        job->nccl = group->nccl;
        job->comm = group->comm;
        pthread_mutex_init(&job->lock, NULL);
        thread_cond_init(&job->changed);
        rc = thread_start("cddp-abort", abort_main, job, &thread, &err);
        if (rc != ERR_OK)
            job_free(job);
    }
    if (rc == ERR_OK)
        done = abort_await(job, thread);
    if (done)
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
