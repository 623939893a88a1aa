/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * tree: the reducer of the reproducible mode. A step is divided into leaves
 * (micro-batches) in one way for any number of ranks. The gradients and the
 * tail of each leaf are computed alone, added up on this rank along one fixed
 * binary tree (fold.h), and summed over ranks along the same tree. So the sums
 * have the same bits for any distribution of leaves over ranks and threads. The
 * reducer works in the arena of a ddp_t and in partial arenas: one for each
 * complete subtree (at most 2 log2(leaves)) and for each thread beyond the
 * first.
 *
 * A step: begin; each thread calls claim, computes the leaf, and calls fold,
 * until claim returns false; then reduce. Thread rule: claim, fold and stop by
 * any thread; all others by one thread while no other thread is in a call.
 * Memory is allocated in open only.
 */
#ifndef CDDP_DDP_TREE_H
#define CDDP_DDP_TREE_H

#include "ddp/ddp.h"
#include "ddp/fold.h"

typedef struct ddp_tree ddp_tree_t;

/* Open over [group], with [partials] arenas (ddp_fold_slots of the largest
 * step). The arena of [ddp] (not owned) is one of them, the others are like it.
 * Local. */
err_code_t ddp_tree_open(ddp_t *ddp, comm_group_t *group, int partials,
                         ddp_tree_t **out, err_t *err);
void ddp_tree_close(ddp_tree_t *tree); /* NULL allowed */

/* Bytes of the partial arenas, without the arena of the ddp_t. Pure. */
size_t ddp_tree_bytes(size_t grad_elems, size_t tail_doubles, int partials);

/* Begin a step: this rank has [held] of all [leaves] leaves, from number
 * [first] on. */
void ddp_tree_begin(ddp_tree_t *tree, int64_t first, int64_t held,
                    int64_t leaves);

/* Claim the next leaf (false: there is none). Sets *grads and *tail to where
 * its gradients (to be overwritten) and its tail (zeroed) go. May wait for
 * another thread's leaf. */
bool ddp_tree_claim(ddp_tree_t *tree, ddp_leaf_t *leaf, float **grads,
                    double **tail);

/* Tell that [leaf] is complete. */
void ddp_tree_fold(ddp_tree_t *tree, const ddp_leaf_t *leaf);

/* Stop after a leaf has failed: claim returns false for the rest of this
 * step. */
void ddp_tree_stop(ddp_tree_t *tree);

/* Leave the sums over all leaves of all ranks in ddp_grads and ddp_tail. All
 * leaves of this rank must be folded. Collective; blocks like any wait of
 * comm. */
err_code_t ddp_tree_reduce(ddp_tree_t *tree, err_t *err);

#endif
