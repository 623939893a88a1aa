/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The fixed binary tree of comm_allreduce_tree_start (see there), described by
 * levels: at level k the nodes are the blocks [a 2^k, (a + 1) 2^k) cut off at
 * [leaves]. A node is the sum of its left and right child, or its left child if
 * the right one is empty. Only comm_tree_check is about ranks.
 */
#include <inttypes.h>

#include "comm/comm_ops.h"

int64_t comm_tree_view_end(int64_t begin, int64_t end, int64_t leaves)
{
    int64_t best = begin + 1;

    for (int64_t length = 2; begin % length == 0; length *= 2) {
        int64_t cut = length < leaves - begin ? begin + length : leaves;

        if (cut > end)
            break;
        best = cut;
        if (cut == leaves) /* larger blocks have the same leaves */
            break;
    }
    return best;
}

int comm_tree_views(int64_t first, int64_t held, int64_t leaves)
{
    int64_t end = first + held;
    int views = 0;

    while (first < end) {
        first = comm_tree_view_end(first, end, leaves);
        views++;
    }
    return views;
}

err_code_t comm_tree_check(const int64_t *ranges, int size, int64_t leaves,
                           uint64_t number, err_t *err)
{
    int64_t next = 0;

    for (int rank = 0; rank < size; rank++) {
        const int64_t first = ranges[2 * rank], held = ranges[2 * rank + 1];

        if (held > 0 && first != next)
            return err_set(err, ERR_CONFIG,
                           "tree all-reduce %" PRIu64 ": rank %d holds leaves "
                           "from %" PRId64 " on, but the ranks before it end "
                           "at %" PRId64,
                           number, rank, first, next);
        next += held;
    }
    if (next != leaves)
        return err_set(err, ERR_CONFIG,
                       "tree all-reduce %" PRIu64 ": the ranks hold %" PRId64
                       " leaves of %" PRId64,
                       number, next, leaves);
    return ERR_OK;
}

/* Return whether the two top entries, [left, middle) and [middle, right), are
 * the halves of a node. They are if the largest subtree that begins at [left]
 * and does not extend beyond [right] ends at [right]. */
static bool fold_siblings(const comm_fold_t *fold)
{
    int top = fold->depth - 1;

    return fold->depth >= 2 &&
           comm_tree_view_end(fold->stack[top - 1].begin, fold->stack[top].end,
                              fold->leaves) == fold->stack[top].end;
}

void comm_fold_begin(comm_fold_t *fold, int64_t leaves, size_t count,
                     comm_type_t type)
{
    fold->leaves = leaves;
    fold->count = count;
    fold->type = type;
    fold->add = NULL;
    fold->context = NULL;
    fold->depth = 0;
}

static void tops_add(const comm_fold_t *fold, void *to, const void *from)
{
    if (fold->add != NULL)
        fold->add(fold->context, to, from, fold->count, fold->type);
    else
        comm_reduce(to, to, from, fold->count, fold->type, COMM_SUM);
}

void comm_fold_push(comm_fold_t *fold, int64_t begin, int64_t end, void *data)
{
    fold->stack[fold->depth].begin = begin;
    fold->stack[fold->depth].end = end;
    fold->stack[fold->depth].data = data;
    fold->depth++;
    while (fold_siblings(fold)) {
        int top = fold->depth - 1;

        tops_add(fold, fold->stack[top - 1].data, fold->stack[top].data);
        fold->stack[top - 1].end = fold->stack[top].end;
        fold->depth--;
    }
}

void comm_fold_push_views(comm_fold_t *fold, int64_t first, int64_t held,
                          void *const *views, size_t offset)
{
    int64_t at = first, end = first + held;

    for (int i = 0; at < end; i++) {
        int64_t next = comm_tree_view_end(at, end, fold->leaves);

        comm_fold_push(fold, at, next, (char *)views[i] + offset);
        at = next;
    }
}

void *comm_fold_total(const comm_fold_t *fold)
{
    return fold->stack[0].data;
}
