/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/partners.h"

#include "base/mem.h"
#include "comm/comm_split.h"
#include "train/relay.h"
#include "train/vote.h"

struct train_partners {
    comm_group_t *group;
    hdf5io_votes_t votes;
    int count;
    int members[]; /* [count] */
};

/* ---- who they are -------------------------------------------------------- */

/* Number of ranks on [node] among the first [size] ranks. */
static int ranks_on(const int *nodes, int size, int node)
{
    int count = 0;

    for (int r = 0; r < size; r++)
        count += nodes[r] == node;
    return count;
}

int train_partners_list(const int *nodes, int size, int rank, int *members)
{
    int count = 0, all = 0, first, width = 2, least;

    for (int r = 0; r < size; r++)
        if (nodes[r] >= all)
            all = nodes[r] + 1;
    if (all == 1)
        return 0;
    first = nodes[rank] / 2 * 2;
    if (all % 2 == 1 && nodes[rank] >= all - 3) {
        first = all - 3;
        width = 3;
    }
    least = size;
    for (int node = first; node < first + width; node++)
        if (ranks_on(nodes, size, node) < least)
            least = ranks_on(nodes, size, node);
    for (int r = 0; r < size && least > 0; r++)
        if (nodes[r] >= first && nodes[r] < first + width &&
            ranks_on(nodes, r, nodes[r]) % least ==
                ranks_on(nodes, rank, nodes[rank]) % least)
            members[count++] = r;
    return count;
}

/* ---- the group ----------------------------------------------------------- */

static err_code_t exchange(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    const train_partners_t *partners = context;

    return comm_allgather(partners->group, mine, bytes, all, err);
}

static err_code_t spread(void *context, void *data, const size_t *cuts,
                         err_t *err)
{
    const train_partners_t *partners = context;

    return train_relay(partners->group, data, cuts, err);
}

/* Without this function, hdf5io_spread_open would allocate memory for
 * exchanges. */
static err_code_t broadcast(void *context, void *data, size_t bytes, err_t *err)
{
    const train_partners_t *partners = context;

    return comm_broadcast(partners->group, data, bytes, 0, err);
}

err_code_t train_partners_open(comm_group_t *parent, const int *nodes,
                               train_partners_t **out, err_t *err)
{
    const train_votes_t votes = train_votes_of_group(parent);
    const int size = comm_group_size(parent), rank = comm_group_rank(parent);
    train_partners_t *partners = NULL;
    bool speaker;
    err_code_t rc;

    *out = NULL;
    if (ranks_on(nodes, size, 0) == size)
        return ERR_OK;
    rc = mem_new_tail(train_partners_t, members, (size_t)size,
                      "partners of local checkpoints", &partners, err);
    rc = train_vote(&votes, rc, &speaker, err);
    if (rc == ERR_OK && partners != NULL) {
        partners->count =
            train_partners_list(nodes, size, rank, partners->members);
        rc = comm_split_open(parent, partners->members, partners->count,
                             &partners->group, err);
    }
    if (rc != ERR_OK || partners == NULL) {
        mem_free(partners);
        return rc;
    }
    partners->votes = (hdf5io_votes_t){.context = partners,
                                       .rank = comm_group_rank(partners->group),
                                       .size = partners->count,
                                       .exchange = exchange,
                                       .spread = spread,
                                       .broadcast = broadcast};
    *out = partners;
    return ERR_OK;
}

void train_partners_close(train_partners_t *partners)
{
    if (partners == NULL)
        return;
    comm_group_close(partners->group);
    mem_free(partners);
}

comm_group_t *train_partners_group(const train_partners_t *partners)
{
    return partners->group;
}

const hdf5io_votes_t *train_partners_votes(const train_partners_t *partners)
{
    return &partners->votes;
}

const int *train_partners_members(const train_partners_t *partners)
{
    return partners->members;
}
