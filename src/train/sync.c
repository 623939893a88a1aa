/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/sync.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_split.h"
#include "comm/comm_vote.h"

/* ---- opening ------------------------------------------------------------- */

/* Open what sums on the host need beside their group; *ranks becomes the list
 * of its ranks. Local. */
static err_code_t host_open(train_sync_t *sync, int size, size_t room,
                            int **ranks, err_t *err)
{
    err_code_t rc = mem_new(double, room, "syncbatchnorm", &sync->zeros, err);

    if (rc == ERR_OK)
        rc = mem_new(int, (size_t)size, "syncbatchnorm", ranks, err);
    for (int r = 0; rc == ERR_OK && r < size; r++)
        (*ranks)[r] = r;
    return rc;
}

/* Open what sums of the data group need. Local. */
static err_code_t device_open(train_sync_t *sync, comm_group_t *data,
                              size_t room, err_t *err)
{
    dev_device_t *dev = comm_group_dev(data);
    void *zeros = NULL;
    err_code_t rc;

    sync->enqueues = true;
    sync->group = data;
    rc = dev_alloc(dev, room * sizeof *sync->zeros, "syncbatchnorm", &zeros,
                   err);
    sync->zeros = zeros;
    return rc == ERR_OK ? dev_event_open(dev, &sync->written, err) : rc;
}

/* Open all but the group of sums on the host. On failure *out may be NULL.
 * Local. */
static err_code_t parts_open(const train_sync_plan_t *plan, int **ranks,
                             train_sync_t **out, err_t *err)
{
    const int calls = 2 * nn_graph_syncs(plan->graph);
    size_t room = 1;
    err_code_t rc = mem_new(train_sync_t, 1, "syncbatchnorm", out, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < calls; i++)
        if (nn_graph_sync(plan->graph, i).count > room)
            room = nn_graph_sync(plan->graph, i).count;
    (*out)->graph = plan->graph;
    (*out)->ddp = plan->ddp;
    return comm_group_enqueues(plan->data)
               ? device_open(*out, plan->data, room, err)
               : host_open(*out, comm_group_size(plan->group), room, ranks,
                           err);
}

err_code_t train_sync_open(const train_sync_plan_t *plan, train_sync_t **out,
                           err_t *err)
{
    const int size = comm_group_size(plan->group);
    train_sync_t *sync = NULL;
    int *ranks = NULL;
    err_t mine = ERR_INIT;
    err_code_t rc;

    if (nn_graph_syncs(plan->graph) == 0 || size == 1)
        return ERR_OK;
    (void)parts_open(plan, &ranks, &sync, &mine);
    rc = comm_vote(plan->group, &mine, err);
    if (rc == ERR_OK && sync != NULL && !sync->enqueues)
        rc = comm_split_open(plan->group, ranks, size, &sync->group, err);
    mem_free(ranks);
    if (rc != ERR_OK)
        train_sync_close(sync);
    else
        *out = sync;
    return rc;
}

void train_sync_close(train_sync_t *sync)
{
    if (sync == NULL)
        return;
    if (sync->enqueues) {
        dev_event_close(sync->written);
        dev_free(comm_group_dev(sync->group), sync->zeros);
    } else {
        comm_group_close(sync->group);
        mem_free(sync->zeros);
    }
    mem_free(sync);
}

comm_group_t *train_sync_group(const train_sync_t *sync)
{
    return sync == NULL || sync->enqueues ? NULL : sync->group;
}

/* ---- a step -------------------------------------------------------------- */

/* The next call of the step. */
static nn_sync_t call_next(const train_sync_t *sync)
{
    const int calls = 2 * nn_graph_syncs(sync->graph);

    return nn_graph_sync(sync->graph, (int)(sync->done % calls));
}

/* The number of whole micro-batches that follow that of the next call. */
static int64_t micros_left(const train_sync_t *sync)
{
    return (sync->total - sync->done - 1) / (2 * nn_graph_syncs(sync->graph));
}

/* Count one call, and the calls after it that are never made (of 0 numbers). */
static void call_count(train_sync_t *sync)
{
    do
        sync->done++;
    while (sync->done < sync->total && call_next(sync).count == 0);
}

void train_sync_begin(train_sync_t *sync, int64_t micros, dev_stream_t *stream)
{
    sync->done = 0;
    sync->waited = 0;
    sync->total = micros * 2 * nn_graph_syncs(sync->graph);
    sync->stream = stream;
    sync->reported = 0;
}

bool train_sync_reports(const train_sync_t *sync)
{
    return sync == NULL || !sync->enqueues || micros_left(sync) == 0;
}

err_code_t train_sync_reduce(train_sync_t *sync, double *sums, size_t count,
                             err_t *err)
{
    const double begin = clock_now();
    err_code_t rc =
        comm_allreduce(sync->group, sums, count, COMM_FLOAT64, COMM_SUM, err);

    call_count(sync);
    sync->waited += clock_now() - begin;
    return rc;
}

err_code_t train_sync_reduce_on(train_sync_t *sync, double *sums, size_t count,
                                err_t *err)
{
    call_count(sync);
    return comm_sum_on(sync->group, sums, count, sync->written, sync->stream,
                       err);
}

/* ---- the rest of a step -------------------------------------------------- */

/* Report the first [grads] gradients of the arena. Those that backward has
 * reported are ready already. */
static err_code_t grads_report(train_sync_t *sync, int grads, err_t *err)
{
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && sync->reported < grads)
        rc = ddp_grad_ready(sync->ddp, sync->reported++, err);
    return rc;
}

/* Join one call with zeros. */
static err_code_t zeros_reduce(train_sync_t *sync, size_t count, err_t *err)
{
    const size_t bytes = count * sizeof *sync->zeros;
    err_t reason = ERR_INIT;
    err_code_t rc;

    if (!sync->enqueues) {
        memset(sync->zeros, 0, bytes);
        return train_sync_reduce(sync, sync->zeros, count, err);
    }
    rc = dev_fill(sync->stream, sync->zeros, 0, bytes, &reason);
    rc = comm_group_result(sync->group, rc, &reason, err);
    return rc == ERR_OK ? train_sync_reduce_on(sync, sync->zeros, count, err)
                        : rc;
}

/* Join the remaining calls. With the data group, gradients are reported between
 * the calls of the last backward. */
static err_code_t calls_join(train_sync_t *sync, err_t *err)
{
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && sync->done < sync->total) {
        const nn_sync_t call = call_next(sync);

        if (sync->enqueues && call.back && micros_left(sync) == 0)
            rc = grads_report(sync, call.grads, err);
        if (rc == ERR_OK)
            rc = zeros_reduce(sync, call.count, err);
    }
    return rc;
}

/* A rank without gradients of its own reports the last ones by ddp_step_skip:
 * the tail may start only when this rank has written its error there. */
err_code_t train_sync_rest(train_sync_t *sync, bool computed, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (sync->enqueues && !computed)
        rc = ddp_step_zero(sync->ddp, err);
    if (rc == ERR_OK)
        rc = calls_join(sync, err);
    if (rc == ERR_OK && sync->enqueues && computed)
        rc = grads_report(sync, nn_graph_params(sync->graph), err);
    return rc;
}
