/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_fold: sums the leaves of a rank along the tree of
 * comm_allreduce_tree_start, down to the maximal subtrees that the rank passes
 * to it. A leaf pushed when the fold has [depth] entries becomes entry [depth],
 * so its data may be put into the memory of that entry. Pure arithmetic, no
 * communication.
 */
#ifndef CDDP_COMM_COMM_FOLD_H
#define CDDP_COMM_COMM_FOLD_H

#include "comm/comm_collective.h"

/* More subtree views than any int64_t range of leaves can need (2 * 63). */
#define COMM_VIEWS_MAX 128

/* Add [count] elements at [from] to those at [to]. */
typedef void comm_fold_add_t(void *context, void *to, const void *from,
                             size_t count, comm_type_t type);

/* Folds subtrees that are pushed in the order of their leaves, along the tree
 * of comm_allreduce_tree_start. The right sibling is added into the memory of
 * the left one. */
typedef struct comm_fold {
    int64_t leaves;
    size_t count;
    comm_type_t type;
    comm_fold_add_t *add; /* NULL: comm_reduce, in the host's memory */
    void *context;        /* of [add] */
    int depth;
    struct {
        int64_t begin, end;
        void *data;
    } stack[COMM_VIEWS_MAX];
} comm_fold_t;

/* The elements are in the host's memory, unless the caller sets fold->add
 * afterwards. */
void comm_fold_begin(comm_fold_t *fold, int64_t leaves, size_t count,
                     comm_type_t type);
/* Push a subtree: [data] has the sum of leaves [begin, end), as found by
 * comm_tree_view_end. */
void comm_fold_push(comm_fold_t *fold, int64_t begin, int64_t end, void *data);
/* Push all views of leaves [first, first + held), in order. The data of a view
 * begins [offset] bytes behind its pointer in [views]. */
void comm_fold_push_views(comm_fold_t *fold, int64_t first, int64_t held,
                          void *const *views, size_t offset);
/* The total, in the memory of the first subtree. All leaves must have been
 * pushed. */
void *comm_fold_total(const comm_fold_t *fold);

/* Check that the leaves of [size] ranks are leaves 0 .. leaves-1, in the order
 * of the ranks. [ranges] has two numbers for each rank: its first leaf, and how
 * many leaves it holds. The text of ERR_CONFIG has [number], which is the
 * number of the collective, and the first rank whose leaves are wrong. If
 * only the total is wrong, the text has the number of leaves that the ranks
 * hold together. Pure. */
err_code_t comm_tree_check(const int64_t *ranges, int size, int64_t leaves,
                           uint64_t number, err_t *err);

#endif
