/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * limits: the memory of a node against what its ranks need, and whether a rank
 * was killed for lack of it.
 */
#ifndef CDDP_TRAIN_LIMITS_H
#define CDDP_TRAIN_LIMITS_H

#include "slurm/step_memory.h"
#include "train/replica.h"

/* The memory that the ranks of this node may use together. [root]: see
 * slurm/step_memory.h. */
slurm_memory_t train_limits_node(const char *root);

/* Number of ranks of [group] on the host of its rank [rank]. NULL (--check):
 * all [ranks] ranks count as being on one host. */
int train_limits_ranks(const comm_group_t *group, int rank, int ranks);

/* Bytes in which a rank keeps decoded chunks of a split, unless data.memory
 * says it: 1/16 of [limit] over the [ranks] ranks of the node, at least 128
 * MiB. */
uint64_t train_limits_pool(const slurm_memory_t *limit, int ranks);

/* ERR_MEMORY, with the numbers, if parameters and gradients of the ranks of
 * [plan] that are on this node need more than [limit]. Without this check,
 * memory would be used up page by page until the kernel kills a process. */
err_code_t train_limits_check(const train_replica_plan_t *plan,
                              const slurm_memory_t *limit, err_t *err);

#endif
