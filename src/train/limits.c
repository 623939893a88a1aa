/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const char *lookup(const char *name)
{
    return getenv(name);
}

slurm_memory_t train_limits_node(const char *root)
{
    return slurm_memory_limit(lookup, root);
}

/* Number of ranks on this host. Without a group (--check), all ranks count as
 * being on this host. */
static int ranks_here(const train_replica_plan_t *plan)
{
    int here = 0;

    if (plan->group == NULL)
        return plan->ranks;
    for (int r = 0; r < comm_group_size(plan->group); r++)
        here += strcmp(comm_group_host(plan->group, r),
                       comm_group_host(plan->group, plan->rank)) == 0;
    return here;
}

err_code_t train_limits_check(const train_replica_plan_t *plan,
                              const slurm_memory_t *limit, err_t *err)
{
    const double elems = (double)nn_graph_param_elems(plan->graph);
    const double need = 2 * elems * sizeof(float);
    const int ranks = ranks_here(plan);
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
