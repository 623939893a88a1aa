/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * fold: adds up leaves, which several threads compute side by side, along the
 * fixed tree of comm_allreduce_tree. Threads claim leaves in order; each leaf
 * gets a slot for its numbers. The thread that completes the second half of a
 * subtree adds the two halves. Which slot and which thread is used depends on
 * timing, but the order of additions depends only on the tree: so the sums have
 * the same bits for any number of threads.
 *
 * A step: begin; then any number of threads call claim and done until claim
 * returns false; when all threads have returned, views. Memory is allocated in
 * open only.
 */
#ifndef CDDP_DDP_FOLD_H
#define CDDP_DDP_FOLD_H

#include "comm/comm.h"

typedef struct ddp_fold ddp_fold_t;

/* A claimed leaf, and the slot for its numbers. */
typedef struct ddp_leaf {
    int64_t number;
    int slot;
} ddp_leaf_t;

/* Add the numbers of slot [from] to those of slot [to]. [thread] is what the
 * thread passed to ddp_fold_done. */
typedef err_code_t ddp_fold_add_t(void *context, void *thread, int to, int from,
                                  err_t *err);

/* Add [count] numbers at [from] to the numbers at [to], in the host's memory,
 * as comm_allreduce_tree does. */
void ddp_fold_sum(void *to, void *from, size_t count, comm_type_t type);

/*
 * Number of slots that [threads] threads need to fold leaves [first, first +
 * held) of [leaves]: one for each complete subtree and one for each leaf that
 * is being computed. With these slots, a thread that is ahead of the others may
 * have to wait until another leaf is done. At least 1. Pure.
 */
int ddp_fold_slots(int64_t first, int64_t held, int64_t leaves, int threads);

err_code_t ddp_fold_open(int slots, ddp_fold_add_t *add, void *context,
                         ddp_fold_t **out, err_t *err);
void ddp_fold_close(ddp_fold_t *fold); /* NULL allowed */

/* Begin a step: this rank has [held] of all [leaves] leaves, from number
 * [first] on. Not while threads compute. */
void ddp_fold_begin(ddp_fold_t *fold, int64_t first, int64_t held,
                    int64_t leaves);

/* Claim the next leaf. Returns false if there is none or the fold was stopped.
 * The first leaf gets slot 0. Any thread. */
bool ddp_fold_claim(ddp_fold_t *fold, ddp_leaf_t *out);

/* Tell that the numbers of [leaf] are in its slot. The errors are those of the
 * addition, after which claim returns false. Any thread. */
err_code_t ddp_fold_done(ddp_fold_t *fold, const ddp_leaf_t *leaf, void *thread,
                         err_t *err);

/* Stop after a leaf has failed: claim returns false from now on. Any thread. */
void ddp_fold_stop(ddp_fold_t *fold);

/* To be called when all leaves are done: list the slots of the largest complete
 * subtrees, in order. Returns their number, at most COMM_VIEWS_MAX. Not while
 * threads compute. */
int ddp_fold_views(const ddp_fold_t *fold, int *slots);

#endif
