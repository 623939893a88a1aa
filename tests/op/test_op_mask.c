/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Dropout masks depend on the key only, and have the right share of zeros. */
#include "op/op_mask.h"

#include <criterion/criterion.h>
#include <math.h>

#define BLOCKS 5000

static op_mask_t mask_of(double rate, uint64_t seed, uint64_t epoch,
                         uint64_t layer)
{
    op_config_t config = {.rate = rate};
    const op_step_t step = {.seed = seed, .epoch = epoch};
    const op_args_t args = {.step = &step, .layer = layer};

    return op_mask_make(&config, &args);
}

static double kept_share(const op_mask_t *mask, uint64_t sample)
{
    int kept = 0;

    for (uint32_t b = 0; b < BLOCKS; b++) {
        uint32_t random[4];

        op_mask_block(mask, sample, b, random);
        for (int j = 0; j < 4; j++)
            kept += random[j] >= mask->threshold;
    }
    return kept / (4.0 * BLOCKS);
}

Test(op_mask, rate)
{
    static const double rates[] = {0, 0.1, 0.5, 0.9};

    for (int i = 0; i < 4; i++) {
        double rate = rates[i];
        op_mask_t mask = mask_of(rate, 1, 2, 3);
        double sigma = sqrt(rate * (1 - rate) / (4 * BLOCKS));

        cr_expect_leq(fabs(kept_share(&mask, 17) - (1 - rate)), 4 * sigma);
        cr_expect_float_eq(mask.factor, 1 / (1 - rate), 1e-6);
    }
}

/* A change of any part of the key changes half of the bits. */
Test(op_mask, key)
{
    op_mask_t base = mask_of(0.5, 1, 2, 3);
    op_mask_t others[] = {mask_of(0.5, 1ull << 40, 2, 3), mask_of(0.5, 2, 2, 3),
                          mask_of(0.5, 1, 3, 3), mask_of(0.5, 1, 2, 4), base};
    uint64_t samples[] = {9, 9, 9, 9, 9 | 1ull << 35};

    for (int i = 0; i < 5; i++) {
        int differ = 0;

        for (uint32_t b = 0; b < BLOCKS; b++) {
            uint32_t one[4], two[4];

            op_mask_block(&base, 9, b, one);
            op_mask_block(&others[i], samples[i], b, two);
            for (int j = 0; j < 4; j++)
                differ +=
                    (one[j] >= base.threshold) != (two[j] >= base.threshold);
        }
        cr_expect_leq(fabs(differ / (4.0 * BLOCKS) - 0.5), 0.02,
                      "part %d: %d of %d differ", i, differ, 4 * BLOCKS);
    }
}

/* The bits must be equal in all versions of cddp, so that a resumed run goes on
 * as before. The expected bits are from another program, written from the
 * definition in op_mask.h. */
Test(op_mask, golden)
{
    op_mask_t mask = mask_of(0.5, 1, 2, 3);
    uint32_t random[4];

    op_mask_block(&mask, 17, 5, random);
    cr_expect_eq(mask.threshold, 0x80000000u);
    cr_expect_eq(random[0], 175912135u);
    cr_expect_eq(random[1], 4065949615u);
    cr_expect_eq(random[2], 2334221654u);
    cr_expect_eq(random[3], 3131835344u);
}
