/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * fold: leaves that several threads compute side by side, added up along the
 * one fixed tree of comm_allreduce_tree. Leaves are claimed in order, each with
 * a slot for its numbers; who finds the other half of a subtree whole adds it
 * up. When a leaf gets a slot and who adds is left to chance; what is added to
 * what is not, so the sums have the same bits for any number of threads.
 *
 * A step: begin; by any number of threads claim and done until claim answers
 * false; when all threads are back, views. Allocates only in open.
 */
#ifndef CDDP_DDP_FOLD_H
#define CDDP_DDP_FOLD_H

#include "comm/comm.h"

typedef struct ddp_fold ddp_fold_t;

/* A leaf under way, and where its numbers go. */
typedef struct ddp_leaf {
    int64_t number;
    int slot;
} ddp_leaf_t;

/* Add the numbers of slot [from] to those of slot [to]. */
typedef void ddp_fold_add_t(void *context, int to, int from);

/* Add [count] numbers at [from] to those at [to], as comm_allreduce_tree does.
 */
void ddp_fold_sum(void *to, void *from, size_t count, comm_type_t type);

/*
 * Slots with which [threads] threads fold leaves [first, first + held) of
 * [leaves]: what is kept apart, and one for each leaf under way. A thread that
 * runs ahead of the others waits for a slot, at most until one leaf is done.
 * At least 1. Pure.
 */
int ddp_fold_slots(int64_t first, int64_t held, int64_t leaves, int threads);

err_code_t ddp_fold_open(int slots, ddp_fold_add_t *add, void *context,
                         ddp_fold_t **out, err_t *err);
void ddp_fold_close(ddp_fold_t *fold); /* NULL allowed */

/* Begin with [held] leaves of [leaves] from [first] on. No thread is at work.
 */
void ddp_fold_begin(ddp_fold_t *fold, int64_t first, int64_t held,
                    int64_t leaves);

/* The next leaf; false: there is none, or the fold was stopped. The first leaf
 * gets slot 0. Any thread. */
bool ddp_fold_claim(ddp_fold_t *fold, ddp_leaf_t *out);

/* The numbers of [leaf] are in its slot. Any thread. */
void ddp_fold_done(ddp_fold_t *fold, const ddp_leaf_t *leaf);

/* Nobody claims a leaf any more: one has failed. Any thread. */
void ddp_fold_stop(ddp_fold_t *fold);

/* The slots of the maximal subtrees in order, all leaves being done: at most
 * COMM_VIEWS_MAX; returns how many. No thread is at work. */
int ddp_fold_views(const ddp_fold_t *fold, int *slots);

#endif
