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
 * On a device, each thread computes its leaves on a stream of its own, and the
 * additions are enqueued there, too. Events order what the streams do with one
 * arena.
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
#include "op/op.h"

typedef struct ddp_tree ddp_tree_t;

/* A claimed leaf, and where its sums go. */
typedef struct ddp_tree_leaf {
    ddp_leaf_t leaf;
    float *grads; /* to be overwritten; NULL: there is no leaf */
    double *tail; /* zeroed */
    dev_stream_t *stream;
} ddp_tree_leaf_t;

/* Open over the groups of [ddp] (not owned), with [partials] arenas
 * (ddp_fold_slots of the largest step), which [backend] adds. The arena of
 * [ddp] is one of them, the others are like it. Local. */
err_code_t ddp_tree_open(ddp_t *ddp, const op_backend_ops_t *backend,
                         int partials, ddp_tree_t **out, err_t *err);
/* NULL allowed. On a device: when its streams have been waited for. */
void ddp_tree_close(ddp_tree_t *tree);

/* Bytes of the partial arenas, without the arena of the ddp_t. Pure. */
size_t ddp_tree_bytes(size_t grad_elems, size_t tail_doubles, int partials);

/* Begin a step in which this rank has the leaves [mine]. mine->ranges, if not
 * NULL, must not change until the step is reduced. The caller ensures that the
 * work of the step before is done, or that one stream computes all leaves of
 * both steps: nothing here waits for events of an earlier step, so that a step
 * can be captured. */
void ddp_tree_begin(ddp_tree_t *tree, const comm_leaves_t *mine);

/* Claim the next leaf, which this thread computes on [stream] (NULL if the host
 * can access the memory). May wait for another thread's leaf. The errors are
 * those of the device; out->leaf is set then, too. */
err_code_t ddp_tree_claim(ddp_tree_t *tree, dev_stream_t *stream,
                          ddp_tree_leaf_t *out, err_t *err);

/* Tell that [leaf] is complete, or all of it is enqueued. The errors are those
 * of the device. */
err_code_t ddp_tree_fold(ddp_tree_t *tree, const ddp_tree_leaf_t *leaf,
                         err_t *err);

/* Stop after a leaf has failed: claim returns false for the rest of this
 * step. */
void ddp_tree_stop(ddp_tree_t *tree);

/* On a device, after begin: this rank has no sums of its leaves, because of an
 * error. It still takes part in reduce, with zeros. */
void ddp_tree_fail(ddp_tree_t *tree);

/* Leave the sums over all leaves of all ranks in ddp_grads and ddp_tail, where
 * operations that are enqueued on [stream] later find them (NULL: as above).
 * All leaves of this rank must be folded, unless ddp_tree_fail was called.
 * Collective; blocks like any wait of comm. */
err_code_t ddp_tree_reduce(ddp_tree_t *tree, dev_stream_t *stream, err_t *err);

/* On a device, after reduce: sum the first [count] numbers of ddp_tail over all
 * ranks, in any order, behind the earlier work of [stream]. Operations that are
 * enqueued on [stream] later find the sums. Collective, as reduce is. */
err_code_t ddp_tree_sum(ddp_tree_t *tree, size_t count, dev_stream_t *stream,
                        err_t *err);

#endif
