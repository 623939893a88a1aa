/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A single NaN or infinity is found wherever it is, and finite numbers are
 * never reported. */
#include "train/finite.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#define COUNT 9001 /* more than two blocks, and a remainder */

Test(finite, one_bad_number_is_found_anywhere)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const int places[] = {0, 1, 4095, 4096, 8191, 8192, COUNT - 1};
    static float data[COUNT];

    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++)
        for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
            const int at = places[p];

            data[at] = bad[b];
            cr_expect_not(train_all_finite(data, COUNT), "%g at %d", bad[b],
                          at);
            cr_expect_not(train_all_finite(data + at, 1));
            cr_expect(train_all_finite(data, at), "numbers after the last one");
            cr_expect(train_all_finite(data + at + 1, COUNT - at - 1));
            data[at] = 0;
        }
}

Test(finite, the_largest_and_the_smallest_are_numbers)
{
    const float data[] = {FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, -0.0F, 1};

    cr_expect(train_all_finite(data, 5));
    cr_expect(train_all_finite(data, 0));
}
