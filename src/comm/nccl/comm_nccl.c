/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "comm/nccl/nccl_group.h"
#include "comm/nccl/nccl_mark.h"
#include "dev/dev_cuda.h"

/* ---- collectives --------------------------------------------------------- */

/* Enqueue the collective between its two marks (nccl_marks_t). */
static err_code_t marked_call(nccl_group_t *group,
                              const comm_request_t *request, err_t *err)
{
    cudaStream_t stream = dev_cuda_stream(group->stream);
    err_code_t rc = nccl_mark(&group->marks->begun, stream, err);

    if (rc == ERR_OK)
        rc = request->kind == COMM_TREE ? nccl_tree_call(group, request, err)
                                        : nccl_call(group, request, err);
    return rc == ERR_OK ? nccl_mark(&group->marks->ended, stream, err) : rc;
}

static err_code_t request_enqueue(nccl_group_t *group,
                                  const comm_request_t *request,
                                  nccl_work_t *work, err_t *err)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    err_code_t rc = ERR_OK;

    if (request->after != NULL)
        rc = dev_event_wait_on(request->after, group->stream, err);
    if (rc == ERR_OK)
        rc = marked_call(group, request, err);
    if (rc == ERR_OK)
        rc = dev_event_record(work->done, group->stream, err);
    if (rc == ERR_OK)
        rc = dev_cuda_check(
            cudaStreamIsCapturing(dev_cuda_stream(group->stream), &status),
            "cudaStreamIsCapturing", "a stream", err);
    work->captured = status != cudaStreamCaptureStatusNone;
    return rc;
}

/* Return a work that is free; NULL: there is none. Works end in any order: many
 * sums of syncbatchnorm may begin and end while the first bucket of a step is
 * in flight. */
static nccl_work_t *work_find(nccl_group_t *group)
{
    for (int i = 0; i < COMM_WORKS_MAX; i++) {
        nccl_work_t *work = &group->works[group->started++ % COMM_WORKS_MAX];

        if (!work->busy)
            return work;
    }
    return NULL;
}

static comm_state_t nccl_start(comm_group_t *base,
                               const comm_request_t *request, comm_work_t **out,
                               err_t *err)
{
    nccl_group_t *group = (nccl_group_t *)base;
    nccl_work_t *work = work_find(group);
    err_t reason = ERR_INIT;
    err_code_t rc = ERR_OK;

    if (work == NULL) {
        err_set(err, ERR_CONFIG,
                "rank %d has %d collectives in flight: wait for some first",
                base->rank, COMM_WORKS_MAX);
        return COMM_FAILED;
    }
    if (nccl_fault(group, err) != ERR_OK)
        return COMM_FAILED;
    if (request->kind == COMM_TREE)
        rc = nccl_tree_meet(group, request, &reason);
    if (rc == ERR_OK)
        rc = request_enqueue(group, request, work, &reason);
    if (rc == ERR_CONFIG) {
        err_copy(err, &reason);
        return COMM_FAILED;
    }
    if (rc != ERR_OK) {
        nccl_fail(group, &reason, err);
        return COMM_FAILED;
    }
    work->base.group = base;
    work->busy = true;
    *out = &work->base;
    return COMM_PENDING;
}

static comm_state_t nccl_poll(comm_work_t *base)
{
    const nccl_work_t *work = (nccl_work_t *)base;
    cudaError_t state;

    if (work->captured)
        return COMM_PENDING;
    state = cudaEventQuery(dev_cuda_event(work->done));
    if (state == cudaErrorNotReady)
        return nccl_fault((nccl_group_t *)base->group, NULL) == ERR_OK
                   ? COMM_PENDING
                   : COMM_FAILED;
    return state == cudaSuccess ? COMM_DONE : COMM_FAILED;
}

/* End [work] after a call that returned [rc] with the error [reason]. Returns
 * ERR_OK or the fault of the group. */
static err_code_t work_end(nccl_work_t *work, err_code_t rc,
                           const err_t *reason, err_t *err)
{
    nccl_group_t *group = (nccl_group_t *)work->base.group;

    work->busy = false;
    return rc == ERR_OK ? nccl_fault(group, err)
                        : nccl_fail(group, reason, err);
}

static err_code_t nccl_wait(comm_work_t *base, err_t *err)
{
    nccl_work_t *work = (nccl_work_t *)base;
    nccl_group_t *group = (nccl_group_t *)base->group;
    err_t reason = ERR_INIT;
    err_code_t rc;

    check(work->busy, "a collective is waited for, and is over");
    rc = nccl_stream_wait(group, &reason);
    return work_end(work, rc, &reason, err);
}

static err_code_t nccl_wait_on(comm_work_t *base, dev_stream_t *stream,
                               err_t *err)
{
    nccl_work_t *work = (nccl_work_t *)base;
    err_t reason = ERR_INIT;
    err_code_t rc;

    check(work->busy, "a collective is waited for, and is over");
    rc = dev_event_wait_on(work->done, stream, &reason);
    return work_end(work, rc, &reason, err);
}

/* Nothing to do: the group beside this one reports the progress. */
static void nccl_report(comm_group_t *base, int64_t step, const char *phase)
{
    (void)base;
    (void)step;
    (void)phase;
}

static err_code_t nccl_group_check(comm_group_t *base, err_t *err)
{
    return nccl_fault((nccl_group_t *)base, err);
}

static void nccl_group_fail(comm_group_t *base, const err_t *fault)
{
    nccl_group_t *group = (nccl_group_t *)base;

    /* [fault] may have been made of the fault that the group knows already:
     * then the latter names the culprit. */
    if (nccl_fault(group, NULL) != ERR_OK)
        return;
    if (group->beside->ops->fail != NULL)
        group->beside->ops->fail(group->beside, fault);
    nccl_fault_store(group, fault);
}

/* Let the group beside this one watch [marks]. NULL: it stops. */
static void marks_watch(nccl_group_t *group, const comm_marks_t *marks)
{
    if (group->beside->ops->marks != NULL)
        group->beside->ops->marks(group->beside, marks);
}

/* ---- close --------------------------------------------------------------- */

static void nccl_close(comm_group_t *base)
{
    nccl_group_t *group = (nccl_group_t *)base;

    marks_watch(group, NULL);
    nccl_end(group,
             nccl_fault(group, NULL) == ERR_OK && !dev_abandoned(base->dev));
    for (int i = 0; i < COMM_WORKS_MAX; i++)
        dev_event_close(group->works[i].done);
    nccl_tree_close(group);
    dev_free(base->dev, group->nothing);
    dev_pinned_free(base->dev, group->marks);
    dev_stream_close(group->stream);
    comm_still_close(&group->broken);
    comm_still_close(&group->marked);
    pthread_mutex_destroy(&group->lock);
    mem_free(group);
}

/* ---- open ---------------------------------------------------------------- */

static err_code_t nccl_ready(const comm_config_t *config, err_t *err)
{
    const nccl_library_t *nccl;

    if (config->dev == NULL || strcmp(dev_name(config->dev), "cuda") != 0)
        return err_set(err, ERR_CONFIG,
                       "NCCL works on the memory of GPUs, and this rank "
                       "computes on %s: set ddp.backend to auto, or "
                       "train.device to cuda",
                       config->dev == NULL ? "the CPU" : dev_name(config->dev));
    if (config->beside == NULL)
        return err_set(err, ERR_CONFIG,
                       "a group of the backend nccl needs one of the host "
                       "beside it");
    return nccl_library_get(&nccl, err);
}

static err_code_t nccl_open(const comm_config_t *config, const comm_oob_t *oob,
                            comm_hello_t *hellos, comm_group_t **out,
                            err_t *err)
{
    const nccl_library_t *nccl;
    nccl_group_t *group = NULL;
    err_code_t rc = nccl_library_get(&nccl, err);

    if (rc == ERR_OK)
        rc = mem_new(nccl_group_t, 1, "comm group", &group, err);
    if (rc != ERR_OK)
        return rc;
    group->base = (comm_group_t){.ops = &comm_nccl_ops,
                                 .rank = oob->rank,
                                 .size = oob->size,
                                 .timeout = config->timeout,
                                 .hellos = hellos,
                                 .table = config->table,
                                 .dev = config->dev};
    group->nccl = nccl;
    group->beside = config->beside;
    group->tree.bytes = config->tree_scratch;
    group->fault = (err_t)ERR_INIT;
    pthread_mutex_init(&group->lock, NULL);
    comm_still_open(&group->marked, clock_now());
    comm_still_open(&group->broken, clock_now());
    rc = nccl_join(group, oob, err);
    if (rc == ERR_OK) {
        marks_watch(group, group->marks);
        *out = &group->base;
    } else {
        nccl_fault_store(group, &(err_t){.code = rc});
        nccl_close(&group->base);
    }
    return rc;
}

const comm_ops_t comm_nccl_ops = {
    .name = "nccl",
    .device = true,
    .enqueues = true,
    .ready = nccl_ready,
    .open = nccl_open,
    .close = nccl_close,
    .report = nccl_report,
    .check = nccl_group_check,
    .look = nccl_look,
    .fail = nccl_group_fail,
    .start = nccl_start,
    .poll = nccl_poll,
    .wait = nccl_wait,
    .wait_on = nccl_wait_on,
    .arena_open = nccl_arena_open,
    .arena_close = nccl_arena_close,
};
