/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/sync.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_split.h"

static err_code_t group_open(comm_group_t *parent, comm_group_t **out,
                             err_t *err)
{
    int size = comm_group_size(parent);
    int *ranks = NULL;
    err_code_t rc;

    rc = mem_new(int, (size_t)size, "syncbatchnorm", &ranks, err);
    for (int r = 0; rc == ERR_OK && r < size; r++)
        ranks[r] = r;
    if (rc == ERR_OK)
        rc = comm_split_open(parent, ranks, size, out, err);
    mem_free(ranks);
    return rc;
}

err_code_t train_sync_open(comm_group_t *parent, const nn_graph_t *graph,
                           train_sync_t **out, err_t *err)
{
    const int calls = 2 * nn_graph_syncs(graph);
    train_sync_t *sync = NULL;
    size_t room = 1;
    err_code_t rc;

    if (calls == 0 || comm_group_size(parent) == 1)
        return ERR_OK;
    for (int i = 0; i < calls; i++)
        if (nn_graph_sync_count(graph, i) > room)
            room = nn_graph_sync_count(graph, i);
    rc = mem_new(train_sync_t, 1, "syncbatchnorm", &sync, err);
    if (rc != ERR_OK)
        return rc;
    sync->graph = graph;
    rc = mem_new(double, room, "syncbatchnorm", &sync->zeros, err);
    if (rc == ERR_OK)
        rc = group_open(parent, &sync->group, err);
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
    comm_group_close(sync->group);
    mem_free(sync->zeros);
    mem_free(sync);
}

comm_group_t *train_sync_group(const train_sync_t *sync)
{
    return sync == NULL ? NULL : sync->group;
}

void train_sync_begin(train_sync_t *sync, int64_t micros)
{
    sync->done = 0;
    sync->waited = 0;
    sync->total = micros * 2 * nn_graph_syncs(sync->graph);
}

err_code_t train_sync_reduce(train_sync_t *sync, double *sums, size_t count,
                             err_t *err)
{
    const double begin = clock_now();
    err_code_t rc =
        comm_allreduce(sync->group, sums, count, COMM_FLOAT64, COMM_SUM, err);

    sync->done++;
    sync->waited += clock_now() - begin;
    return rc;
}

err_code_t train_sync_rest(train_sync_t *sync, err_t *err)
{
    const int calls = 2 * nn_graph_syncs(sync->graph);
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && sync->done < sync->total) {
        size_t count =
            nn_graph_sync_count(sync->graph, (int)(sync->done % calls));

        memset(sync->zeros, 0, count * sizeof *sync->zeros);
        rc = train_sync_reduce(sync, sync->zeros, count, err);
    }
    return rc;
}
