/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A rank of a test that opens a node stage (src/comm/node) without a group and
 * without UCX. Its callbacks set flags that all ranks of the test share. */
#ifndef CDDP_TESTS_COMM_NODE_NODE_RANKS_H
#define CDDP_TESTS_COMM_NODE_NODE_RANKS_H

#include <semaphore.h>

#include "comm/node/node_priv.h"
#include "lib/ranks.h"

#define NODE_RANKS_MAX 8

/* State shared by the ranks (threads) of a test. */
typedef struct node_ranks {
    /* ranks of one letter share a node; NULL: all ranks do */
    const char *nodes;
    bool own_core;      /* whether the backoff assumes a core for each rank */
    atomic_bool failed; /* a rank has called config.fail */
    err_t fault;        /* the error of that call */
    atomic_int sleeps;  /* number of calls of config.sleeps */
    sem_t go, asleep;   /* used by tests to order events */
    sem_t slept;        /* posted by each rank that sleeps for the first time */
} node_ranks_t;

/* One rank of the test. */
typedef struct node_rank {
    node_ranks_t *all;
    const comm_oob_t *oob;
    comm_hello_t hellos[NODE_RANKS_MAX];
    node_place_t place;
    node_t *node;
    int wake_fd; /* the file descriptor that config.watch was given */
    bool slept;  /* it has called config.sleeps */
    uint64_t started;
    node_work_t works[COMM_WORKS_MAX];
    comm_request_t requests[COMM_WORKS_MAX];
} node_rank_t;

void node_ranks_init(node_ranks_t *all, const char *nodes);

/* Open the node stage of this rank; all ranks call it. Returns 0 on success.
 * node_rank_close frees *out. */
int node_rank_open(node_ranks_t *all, const comm_oob_t *oob, node_rank_t **out);
void node_rank_close(node_rank_t *rank);

/* Start an all-reduce of [count] float32 at [data], or a barrier if [data] is
 * NULL. On several nodes a slice has 16 elements, and there is one lane. */
node_work_t *node_rank_start(node_rank_t *rank, node_way_t way, float *data,
                             size_t count);

/* Element [i] of rank [rank] before collective [which], and its sum over
 * [ranks] ranks. */
float node_rank_value(int rank, uint64_t which, size_t i);
float node_rank_sum(int ranks, uint64_t which, size_t i);

#endif
