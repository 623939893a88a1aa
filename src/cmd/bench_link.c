/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_link.h"

#include "base/mem.h"
#include "comm/comm_split.h"

/* Bytes that each participating rank sends to each of the others, for an
 * all-reduce of [bytes]. */
static size_t block_bytes(const bench_link_t *link, size_t bytes)
{
    size_t ranks = (size_t)link->nodes * (size_t)link->shares;

    return (2 * bytes + ranks - 1) / ranks;
}

/* Set out->nodes, out->shares, and whether this rank takes part. [count] is the
 * number of nodes that have a rank with this rank's number on its node; the
 * rank takes part if all nodes have one. */
static err_code_t nodes_find(comm_group_t *group, int count, bench_link_t *out,
                             bool *takes_part, err_t *err)
{
    int32_t nodes = count, parts;
    err_code_t rc = comm_allreduce(group, &nodes, 1, COMM_INT32, COMM_MAX, err);

    *takes_part = rc == ERR_OK && count == nodes && nodes > 1;
    parts = *takes_part;
    if (rc == ERR_OK)
        rc = comm_allreduce(group, &parts, 1, COMM_INT32, COMM_SUM, err);
    if (rc == ERR_OK) {
        out->nodes = nodes;
        out->shares = parts / nodes;
    }
    return rc;
}

err_code_t bench_link_open(comm_group_t *group, size_t largest,
                           bench_link_t *out, err_t *err)
{
    bench_link_t link = {.nodes = 1};
    int *ranks = NULL;
    bool takes_part = false;
    int count = 0;
    err_code_t rc =
        mem_new(int, (size_t)comm_group_size(group), "ranks", &ranks, err);

    if (rc == ERR_OK) {
        count = comm_split_ranks(group, COMM_SPLIT_ACROSS, ranks);
        rc = nodes_find(group, count, &link, &takes_part, err);
    }
    if (rc == ERR_OK && link.nodes > 1)
        rc = comm_split_open(group, ranks, takes_part ? count : 0, &link.across,
                             err);
    if (rc == ERR_OK && takes_part)
        rc = mem_new(char, block_bytes(&link, largest) * (size_t)link.nodes,
                     "buffer", &link.buffer, err);
    mem_free(ranks);
    *out = link;
    return rc;
}

void bench_link_close(bench_link_t *link)
{
    comm_group_close(link->across);
    mem_free(link->buffer);
}

err_code_t bench_link_run(const bench_link_t *link, size_t bytes, err_t *err)
{
    size_t block = block_bytes(link, bytes);

    if (link->across == NULL)
        return ERR_OK;
    return comm_allgather(link->across,
                          link->buffer +
                              (size_t)comm_group_rank(link->across) * block,
                          block, link->buffer, err);
}
