/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The bound that the network sets to an all-reduce over several nodes: each of
 * N nodes has to send and receive 2 (N - 1) / N of the bytes. Measured by as
 * many ranks of each node as the smallest one has: each gathers from the ranks
 * with its place on the other nodes what its share of that is. They only move
 * bytes, over the same transport and at the same time.
 */
#ifndef CDDP_CMD_BENCH_LINK_H
#define CDDP_CMD_BENCH_LINK_H

#include "comm/comm.h"

typedef struct bench_link {
    int nodes;            /* 1: there is no such bound */
    int shares;           /* ranks of a node that take part */
    comm_group_t *across; /* NULL: this rank does not */
    char *buffer;
} bench_link_t;

/* Up to [largest] bytes. Collective over [group]. After a failure close, too.
 */
err_code_t bench_link_open(comm_group_t *group, size_t largest,
                           bench_link_t *out, err_t *err);
void bench_link_close(bench_link_t *link);

/* Move what an all-reduce of [bytes] has to. */
err_code_t bench_link_run(const bench_link_t *link, size_t bytes, err_t *err);

#endif
