/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The fixed summation tree: subtrees of ranges, and sums over any partition of
 * the leaves. */
#include <criterion/criterion.h>
#include <string.h>

#include "comm/comm_ops.h"

Test(comm_tree, views_of_ranges)
{
    cr_assert_eq(comm_tree_views(0, 0, 8), 0);
    cr_assert_eq(comm_tree_views(0, 8, 8), 1);
    /* the root, which is incomplete */
    cr_assert_eq(comm_tree_views(0, 5, 5), 1);
    cr_assert_eq(comm_tree_views(0, 5, 6), 2); /* [0,4) [4,5) */
    cr_assert_eq(comm_tree_views(4, 2, 6), 1); /* an incomplete subtree */
    /* leaf 1, [2,4), [4,6), leaf 6 */
    cr_assert_eq(comm_tree_views(1, 6, 8), 4);
    cr_assert_eq(comm_tree_views(3, 4, 7), 2); /* leaf 3, [4,7) */
    cr_assert_eq(comm_tree_view_end(4, 7, 7), 7);
    cr_assert_eq(comm_tree_view_end(4, 6, 7), 6);
    cr_assert_eq(comm_tree_view_end(0, INT64_C(1) << 62, INT64_C(1) << 62),
                 INT64_C(1) << 62);
}

/* The tree sum, as comm.h defines it. */
static float tree_sum(const float *leaves, int64_t begin, int64_t end)
{
    int64_t split = 1;

    if (end - begin == 1)
        return leaves[begin];
    while (split * 2 < end - begin)
        split *= 2;
    return tree_sum(leaves, begin, begin + split) +
           tree_sum(leaves, begin + split, end);
}

/* Fold the leaves [begin, end) as ddp does, and push the sums of their subtrees
 * to [total]. */
static void push_range(comm_fold_t *total, const float *leaves, float *memory,
                       int64_t begin, int64_t end)
{
    while (begin < end) {
        int64_t next = comm_tree_view_end(begin, end, total->leaves);
        comm_fold_t local;

        comm_fold_begin(&local, total->leaves, 1, COMM_FLOAT32);
        for (int64_t i = begin; i < next; i++) {
            memory[i] = leaves[i];
            comm_fold_push(&local, i, i + 1, &memory[i]);
        }
        cr_assert_eq(local.depth, 1);
        comm_fold_push(total, begin, next, comm_fold_total(&local));
        begin = next;
    }
}

Test(comm_tree, any_partition_gives_the_same_bits)
{
    float leaves[70], memory[70], sum;
    comm_fold_t fold;

    for (int i = 0; i < 70; i++)
        leaves[i] = 1.0f / (float)(3 * i + 1) * (i % 3 ? 1e4f : -1e-3f);
    for (int64_t n = 1; n <= 70; n++)
        for (int64_t a = 0; a <= n; a += 3)
            for (int64_t b = a; b <= n; b += 5) {
                float expected = tree_sum(leaves, 0, n);

                comm_fold_begin(&fold, n, 1, COMM_FLOAT32);
                push_range(&fold, leaves, memory, 0, a);
                push_range(&fold, leaves, memory, a, b);
                push_range(&fold, leaves, memory, b, n);
                cr_assert_eq(fold.depth, 1);
                sum = *(float *)comm_fold_total(&fold);
                cr_assert(memcmp(&sum, &expected, sizeof sum) == 0,
                          "%ld leaves cut at %ld, %ld", (long)n, (long)a,
                          (long)b);
            }
}
