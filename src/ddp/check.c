/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Checks that replicas are equal: the parameter tables at the start, the
 * parameters later. Both checks compare hashes. */
#include <string.h>

#include "base/hash.h"
#include "ddp/ddp_priv.h"

/* ---- layout ------------------------------------------------------------- */

static uint64_t layout_hash(const ddp_layout_t *layout)
{
    hash_state_t *state = hash_state_open();
    uint64_t hash;

    for (int v = 0; v < layout->view_count; v++) {
        const ddp_view_t *view = &layout->views[v];

        hash_state_add(state, view->name, strlen(view->name) + 1);
        hash_state_add(state, &view->offset, sizeof view->offset);
        hash_state_add(state, &view->count, sizeof view->count);
    }
    hash_state_add(state, &layout->tail_doubles, sizeof layout->tail_doubles);
    hash = hash_state_value(state);
    hash_state_free(state);
    return hash;
}

err_code_t ddp_layout_check(ddp_t *ddp, const ddp_layout_t *layout, err_t *err)
{
    comm_group_t *group = ddp->control;
    const int size = comm_group_size(group);
    const uint64_t mine = layout_hash(layout), *all = ddp->hashes;
    err_code_t rc = comm_allgather(group, &mine, sizeof mine, ddp->hashes, err);

    for (int r = 1; rc == ERR_OK && r < size; r++) {
        if (all[r] != all[0])
            rc = err_set(err, ERR_CONFIG,
                         "the parameter layout of rank %d (%s) differs from "
                         "that of rank 0 (%s): all ranks must build the same "
                         "model; compare their run files and builds",
                         r, comm_group_host(group, r),
                         comm_group_host(group, 0));
    }
    return rc;
}

/* ---- replica check ------------------------------------------------------ */

static int hash_votes(const uint64_t *hashes, int size, uint64_t hash)
{
    int votes = 0;

    for (int r = 0; r < size; r++)
        votes += hashes[r] == hash;
    return votes;
}

/* The lowest rank whose hash is not the most frequent one; -1 if all are equal.
 * In a tie rank 0 counts as right, as checkpoints begin with its state. */
static int drifted_rank(const uint64_t *hashes, int size)
{
    uint64_t most = hashes[0];

    for (int r = 1; r < size; r++)
        if (hash_votes(hashes, size, hashes[r]) >
            hash_votes(hashes, size, most))
            most = hashes[r];
    for (int r = 0; r < size; r++)
        if (hashes[r] != most)
            return r;
    return -1;
}

err_code_t ddp_replica_check(ddp_t *ddp, uint64_t hash, err_t *err)
{
    int size = comm_group_size(ddp->control);
    err_code_t rc;
    int rank;

    rc = comm_allgather(ddp->control, &hash, sizeof hash, ddp->hashes, err);
    if (rc != ERR_OK)
        return rc;
    rank = drifted_rank(ddp->hashes, size);
    if (rank < 0)
        return ERR_OK;
    rc = err_set(err, ERR_DIVERGED,
                 "the parameters of rank %d on %s are not those of the other "
                 "ranks, though all make the same updates: suspect its memory "
                 "or CPU; resume without that node from the newest checkpoint "
                 "before the last good check",
                 rank, comm_group_host(ddp->control, rank));
    if (err != NULL)
        err->culprit = rank;
    return rc;
}
