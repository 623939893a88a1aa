/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_bound.h"

#include <criterion/criterion.h>

#include "base/rng.h"

/* The best accuracy over all thresholds that can differ, each counted
 * separately. */
static double brute_force(const cmd_bound_item_t *items, int count, int lowest,
                          int highest)
{
    int best = 0;

    for (int threshold = lowest - 1; threshold <= highest; threshold++) {
        int right = 0;

        for (int i = 0; i < count; i++)
            right += (items[i].score <= threshold) == (items[i].label == 1);
        best = right > best ? right : best;
    }
    return (double)best / count;
}

Test(bound, equals_brute_force_with_many_ties)
{
    rng_t rng;

    for (uint64_t trial = 0; trial < 200; trial++) {
        cmd_bound_item_t items[60];
        int count;
        double expected;

        rng_open(&rng, 5, RNG_ISING, trial, 0);
        count = 1 + (int)rng_below(&rng, 60);
        for (int i = 0; i < count; i++) {
            items[i].score = (int)rng_below(&rng, 12) - 6;
            items[i].label = rng_uniform(&rng) < 0.5 - items[i].score * 0.07;
        }
        expected = brute_force(items, count, -6, 6);
        cr_assert_float_eq(cmd_bound_best(items, count), expected, 1e-15,
                           "trial %d", (int)trial);
    }
}

Test(bound, one_sided_data)
{
    cmd_bound_item_t ones[] = {{3, 1}, {1, 1}}, none[] = {{3, 0}, {1, 0}};
    cmd_bound_item_t tie[] = {{2, 1}, {2, 0}, {2, 1}};

    cr_expect_float_eq(cmd_bound_best(ones, 2), 1.0, 0);
    cr_expect_float_eq(cmd_bound_best(none, 2), 1.0, 0);
    cr_expect_float_eq(cmd_bound_best(tie, 3), 2.0 / 3, 1e-15);
}
