/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * tree: the reducer of the reproducible mode. A step is cut into leaves (micro-
 * batches) whatever the number of ranks; each leaf's gradients and tail are
 * computed alone, folded on this rank along one fixed binary tree, and summed
 * over ranks along the same tree. So the sums have the same bits for any
 * distribution of leaves. It works in the arenas of a ddp_t, plus one partial
 * arena for each level that a rank must keep apart (at most 2 log2(leaves)).
 *
 * A step: begin; for each own leaf in order leaf, (compute), fold; then reduce.
 * Thread rule: one thread. Allocates only in open.
 */
#ifndef CDDP_DDP_TREE_H
#define CDDP_DDP_TREE_H

#include "ddp/ddp.h"

typedef struct ddp_tree ddp_tree_t;

/* Partial arenas, the main one included, that a rank with [held] of [leaves]
 * leaves from [first] on needs. Pure. */
int ddp_tree_partials(int64_t first, int64_t held, int64_t leaves);

/* Open beside [ddp] (not owned) over [group], with [partials] arenas of
 * [grad_elems] gradients and [tail_doubles] sums. Local. */
err_code_t ddp_tree_open(ddp_t *ddp, comm_group_t *group, size_t grad_elems,
                         size_t tail_doubles, int partials, ddp_tree_t **out,
                         err_t *err);
void ddp_tree_close(ddp_tree_t *tree); /* NULL allowed */

/* Begin a step of [leaves] leaves of which this rank has [held] from [first].
 */
void ddp_tree_begin(ddp_tree_t *tree, int64_t first, int64_t held,
                    int64_t leaves);

/* Where the next leaf's gradients (to be overwritten) and tail (zeroed) go. */
void ddp_tree_leaf(ddp_tree_t *tree, float **grads, double **tail);

/* That leaf is complete. */
void ddp_tree_fold(ddp_tree_t *tree);

/* Leave the sums over all leaves of all ranks in ddp_grads and ddp_tail. All
 * own leaves were folded. Collective; blocks as comm does. */
err_code_t ddp_tree_reduce(ddp_tree_t *tree, err_t *err);

#endif
