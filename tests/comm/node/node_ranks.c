/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/node/node_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLICE ((size_t)1024) /* elements */

void node_ranks_init(node_ranks_t *all, const char *nodes)
{
    *all = (node_ranks_t){.nodes = nodes, .fault = ERR_INIT};
    sem_init(&all->go, 0, 0);
    sem_init(&all->asleep, 0, 0);
    sem_init(&all->slept, 0, 0);
}

/* ---- callbacks ----------------------------------------------------------- */

static err_code_t exchange(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    const comm_oob_t *oob = ((node_rank_t *)context)->oob;

    return oob->exchange(oob->context, mine, bytes, all, err);
}

static void fail(void *context, const err_t *fault)
{
    node_ranks_t *all = ((node_rank_t *)context)->all;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (!atomic_load(&all->failed))
        all->fault = *fault;
    atomic_store(&all->failed, true);
    pthread_mutex_unlock(&lock);
}

static void sleeps(void *context, uint64_t number)
{
    node_rank_t *rank = context;

    (void)number;
    atomic_fetch_add(&rank->all->sleeps, 1);
    if (!rank->slept)
        sem_post(&rank->all->slept);
    rank->slept = true;
}

static err_code_t watch(void *context, int fd, err_t *err)
{
    (void)err;
    ((node_rank_t *)context)->wake_fd = fd;
    return ERR_OK;
}

/* ---- a rank -------------------------------------------------------------- */

static int place_open(node_rank_t *rank)
{
    const char *nodes = rank->all->nodes;
    char sees[NODE_RANKS_MAX * NODE_RANKS_MAX];
    int size = rank->oob->size;
    err_t err = ERR_INIT;

    for (int a = 0; a < size; a++)
        for (int b = 0; b < size; b++)
            sees[a * size + b] = nodes == NULL || nodes[a] == nodes[b];
    RANKS_OK(node_place_open(sees, size, rank->oob->rank, &rank->place, &err),
             err);
    return 0;
}

int node_rank_open(node_ranks_t *all, const comm_oob_t *oob, node_rank_t **out)
{
    node_rank_t *rank = calloc(1, sizeof *rank);
    node_config_t config = {.rank = oob->rank,
                            .size = oob->size,
                            .own_core = all->own_core,
                            .failed = &all->failed,
                            .context = rank,
                            .exchange = exchange,
                            .fail = fail,
                            .sleeps = sleeps,
                            .watch = watch};
    err_t err = ERR_INIT;

    RANKS_CHECK(oob->size <= NODE_RANKS_MAX);
    rank->all = all;
    rank->oob = oob;
    for (int i = 0; i < oob->size; i++) {
        rank->hellos[i].name = i;
        snprintf(rank->hellos[i].host, sizeof rank->hellos[i].host, "host");
    }
    if (place_open(rank))
        return 1;
    config.hellos = rank->hellos;
    config.place = rank->place;
    RANKS_OK(node_new(&config, &rank->node, &err), err);
    RANKS_OK(node_open(rank->node, &err), err);
    RANKS_CHECK(node_is_open(rank->node) && node_stage_most(rank->node) > 0);
    *out = rank;
    return 0;
}

void node_rank_close(node_rank_t *rank)
{
    node_close(rank->node);
    node_place_close(&rank->place);
    free(rank);
}

node_work_t *node_rank_start(node_rank_t *rank, node_way_t way, float *data,
                             size_t count)
{
    uint64_t number = rank->started++;
    node_work_t *work = &rank->works[number % COMM_WORKS_MAX];
    comm_request_t *request = &rank->requests[number % COMM_WORKS_MAX];
    size_t slices = (count + SLICE - 1) / SLICE;

    if (slices > (size_t)rank->place.least)
        slices = (size_t)rank->place.least;
    *request =
        (comm_request_t){.kind = data == NULL ? COMM_BARRIER : COMM_ALLREDUCE,
                         .data = data,
                         .count = count,
                         .type = COMM_FLOAT32,
                         .op = COMM_SUM};
    work->number = number;
    work->request = request;
    atomic_store(&work->way, (int)way);
    work->split = (node_split_t){.owners = (int)slices,
                                 .lanes = (int)slices,
                                 .slice = SLICE * sizeof *data};
    node_start(rank->node, work);
    return work;
}

float node_rank_value(int rank, uint64_t which, size_t i)
{
    return 0.1f * (float)(rank + 1) + (float)((i * 7 + which) % 61);
}

float node_rank_sum(int ranks, uint64_t which, size_t i)
{
    float sum = node_rank_value(0, which, i);

    for (int rank = 1; rank < ranks; rank++)
        sum += node_rank_value(rank, which, i);
    return sum;
}
