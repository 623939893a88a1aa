/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* The part of a node's memory that holds decoded chunks of a split, and the
 * least bytes of a rank: a window of 16384 samples of 4 KB, for an input and a
 * target. */
#define POOL_PART 16
#define POOL_LEAST (UINT64_C(128) << 20)

static const char *lookup(const char *name)
{
    return getenv(name);
}

slurm_memory_t train_limits_node(const char *root)
{
    return slurm_memory_limit(lookup, root);
}

int train_limits_ranks(const comm_group_t *group, int rank, int ranks)
{
    int here = 0;

    if (group == NULL)
        return ranks;
    for (int r = 0; r < comm_group_size(group); r++)
        here += strcmp(comm_group_host(group, r),
                       comm_group_host(group, rank)) == 0;
    return here;
}

uint64_t train_limits_pool(const slurm_memory_t *limit, int ranks)
{
    const uint64_t share = limit->bytes / POOL_PART / (uint64_t)ranks;

    return share > POOL_LEAST ? share : POOL_LEAST;
}

err_code_t train_limits_check(const train_replica_plan_t *plan,
                              const slurm_memory_t *limit, err_t *err)
{
    const double elems = (double)nn_graph_param_elems(plan->graph);
    const double need = 2 * elems * sizeof(float);
    const int ranks = train_limits_ranks(plan->group, plan->rank, plan->ranks);
    char place[512], needed[32], all[32], there[32], together[96] = "";

    if (need * ranks <= (double)limit->bytes)
        return ERR_OK;
    tree_place_format(tree_place(plan->config->model), place, sizeof place);
    if (ranks > 1)
        snprintf(together, sizeof together,
                 ", %s for the %d ranks of this node",
                 str_bytes((uint64_t)(need * ranks), all, sizeof all), ranks);
    return err_set(err, ERR_MEMORY,
                   "%s: the model has %.4g parameters, which with their "
                   "gradients take %s a rank%s, but the limit here is %s (%s)",
                   place, elems,
                   str_bytes((uint64_t)need, needed, sizeof needed), together,
                   str_bytes(limit->bytes, there, sizeof there), limit->source);
}
