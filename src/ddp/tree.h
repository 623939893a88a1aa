/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * tree: the reducer of the reproducible mode. A step is cut into leaves (micro-
 * batches) in one way for any number of ranks. The gradients and the tail of
 * each leaf are computed alone, added up on this rank along one fixed binary
 * tree (fold.h), and summed over ranks along the same tree. So the sums have
 * the same bits for any distribution of leaves over ranks and threads. The
 * reducer works in the arena of a ddp_t and in partial arenas: one for each
 * complete subtree (at most 2 log2(leaves)) and for each thread beyond the
 * first.
 *
 * A step: begin; by each thread claim, (compute), fold, until claim answers
 * false; then reduce. Thread rule: claim, fold and stop by any thread, all else
 * by one while no other is at work. Allocates only in open.
 */
#ifndef CDDP_DDP_TREE_H
#define CDDP_DDP_TREE_H

#include "ddp/ddp.h"
#include "ddp/fold.h"

typedef struct ddp_tree ddp_tree_t;

/* Open beside [ddp] (not owned) over [group], with [partials] arenas like that
 * of [ddp], which is one of them (ddp_fold_slots of the largest step). Local.
 */
err_code_t ddp_tree_open(ddp_t *ddp, comm_group_t *group, int partials,
                         ddp_tree_t **out, err_t *err);
void ddp_tree_close(ddp_tree_t *tree); /* NULL allowed */

/* Bytes of the partial arenas beside the main one. Pure. */
size_t ddp_tree_bytes(size_t grad_elems, size_t tail_doubles, int partials);

/* Begin a step: this rank has [held] of [leaves] leaves, from [first] on. */
void ddp_tree_begin(ddp_tree_t *tree, int64_t first, int64_t held,
                    int64_t leaves);

/* The next leaf (false: there is none), and where its gradients (to be
 * overwritten) and tail (zeroed) go. May wait for another thread's leaf. */
bool ddp_tree_claim(ddp_tree_t *tree, ddp_leaf_t *leaf, float **grads,
                    double **tail);

/* That leaf is complete. */
void ddp_tree_fold(ddp_tree_t *tree, const ddp_leaf_t *leaf);

/* A leaf has failed: nobody claims another one in this step. */
void ddp_tree_stop(ddp_tree_t *tree);

/* Leave the sums over all leaves of all ranks in ddp_grads and ddp_tail. All
 * own leaves were folded. Collective; blocks as comm does. */
err_code_t ddp_tree_reduce(ddp_tree_t *tree, err_t *err);

#endif
