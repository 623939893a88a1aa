/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * link: the lower bound that the network sets for an all-reduce over N nodes:
 * each node must send and receive 2 (N - 1) / N of the bytes. To measure the
 * bound, every node uses as many ranks as the smallest node has. Each of them
 * gathers its share of these bytes from the ranks with the same number on the
 * other nodes, all at the same time and over the transport of the all-reduce.
 */
#ifndef CDDP_CMD_BENCH_LINK_H
#define CDDP_CMD_BENCH_LINK_H

#include "comm/comm.h"

typedef struct bench_link {
    int nodes;  /* number of nodes; 1: there is no such bound */
    int shares; /* number of ranks per node that take part */
    /* the ranks with this rank's number on their nodes; NULL: this rank takes
     * no part */
    comm_group_t *across;
    char *buffer;
} bench_link_t;

/* Prepare for all-reduces of up to [largest] bytes. Collective over [group].
 * Close [out] after a failure, too. */
err_code_t bench_link_open(comm_group_t *group, size_t largest,
                           bench_link_t *out, err_t *err);
void bench_link_close(bench_link_t *link);

/* Move the bytes between nodes that an all-reduce of [bytes] bytes must move.
 */
err_code_t bench_link_run(const bench_link_t *link, size_t bytes, err_t *err);

#endif
