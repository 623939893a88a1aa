/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/bins.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

Test(bins, few_steps_stay_as_they_are)
{
    report_bins_t *bins = calloc(1, sizeof *bins);

    cr_assert_not_null(bins);
    for (int step = 1; step < REPORT_BINS; step++)
        report_bins_add(bins, step, 2.0 * step);
    cr_expect_eq(bins->shift, 0);
    cr_expect_eq(bins->used, REPORT_BINS);
    cr_expect_eq(bins->bins[0].count, 0, "there is no step 0");
    cr_expect_eq(bins->bins[7].count, 1);
    cr_expect_eq(bins->bins[7].least, 14);
    free(bins);
}

/* All steps are in one bin each, and no peak is lost. */
Test(bins, many_steps_are_merged)
{
    report_bins_t *bins = calloc(1, sizeof *bins);
    const int steps = 1000000;
    int64_t count = 0;
    double most = 0, sum = 0;

    cr_assert_not_null(bins);
    for (int step = 1; step <= steps; step++)
        report_bins_add(bins, step, step == 654321 ? 1e9 : 1);
    cr_expect_gt(bins->used, REPORT_BINS / 2 - 1);
    cr_expect_leq(bins->used, REPORT_BINS);
    for (int i = 0; i < bins->used; i++) {
        const report_bin_t *bin = &bins->bins[i];

        count += bin->count;
        sum += bin->sum;
        most = fmax(most, bin->most);
        cr_expect_eq(bin->least, 1);
    }
    cr_expect_eq(count, steps);
    cr_expect_eq(most, 1e9);
    cr_expect_eq(sum, 1e9 + steps - 1);
    cr_expect_eq(bins->bins[654321 >> bins->shift].most, 1e9);
    free(bins);
}

/* Steps may come in any order, and far behind. */
Test(bins, steps_in_any_order)
{
    report_bins_t *bins = calloc(1, sizeof *bins);

    cr_assert_not_null(bins);
    report_bins_add(bins, (int64_t)1 << 39, 5);
    report_bins_add(bins, 0, -5);
    report_bins_add(bins, 1, 7);
    cr_expect_eq(bins->bins[0].count, 2);
    cr_expect_eq(bins->bins[0].least, -5);
    cr_expect_eq(bins->bins[0].most, 7);
    cr_expect_eq(report_bin_mean(&bins->bins[0]), 1);
    cr_expect_eq(bins->bins[bins->used - 1].most, 5);
    free(bins);
}
