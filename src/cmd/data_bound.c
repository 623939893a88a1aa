/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_bound.h"

#include <stdlib.h>

static int item_compare(const void *left, const void *right)
{
    int a = ((const cmd_bound_item_t *)left)->score;
    int b = ((const cmd_bound_item_t *)right)->score;

    return (a > b) - (a < b);
}

double cmd_bound_best(cmd_bound_item_t *items, int64_t count)
{
    /* number of correct answers; at first of the rule "always 0" */
    int64_t right = 0;
    int64_t best;

    qsort(items, (size_t)count, sizeof items[0], item_compare);
    for (int64_t i = 0; i < count; i++)
        right += items[i].label == 0;
    best = right;
    /* Raise the threshold past one score after another. Items with equal scores
     * get the same label, so the count is compared only after the last of them.
     */
    for (int64_t i = 0; i < count; i++) {
        right += items[i].label == 1 ? 1 : -1;
        if (i + 1 < count && items[i + 1].score == items[i].score)
            continue;
        if (right > best)
            best = right;
    }
    return (double)best / (double)count;
}
