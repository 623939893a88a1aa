/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_fold: sums local leaves along the tree of comm_allreduce_tree_start, so
 * that a rank hands its maximal subtrees to it. A leaf that is pushed when the
 * fold has [depth] entries becomes entry [depth]: memory for the next leaf is
 * that of entry [depth]. Pure arithmetic, no communication.
 */
#ifndef CDDP_COMM_COMM_FOLD_H
#define CDDP_COMM_COMM_FOLD_H

#include "comm/comm.h"

/* More subtree views than any range of int64_t leaves can need (2 * 63). */
#define COMM_VIEWS_MAX 128

/* Folds subtrees that are pushed in leaf order along the tree of comm.h; the
 * right sibling is added into the memory of the left one. */
typedef struct comm_fold {
    int64_t leaves;
    size_t count;
    comm_type_t type;
    int depth;
    struct {
        int64_t begin, end;
        void *data;
    } stack[COMM_VIEWS_MAX];
} comm_fold_t;

void comm_fold_begin(comm_fold_t *fold, int64_t leaves, size_t count,
                     comm_type_t type);
/* [data] holds the subtree that comm_tree_view_end finds at [begin]. */
void comm_fold_push(comm_fold_t *fold, int64_t begin, int64_t end, void *data);
/* The total, in the memory of the first subtree; all leaves were pushed. */
void *comm_fold_total(const comm_fold_t *fold);

#endif
