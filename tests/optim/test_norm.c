/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The gradient norm and clipping. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "optim/arith.h"
#include "optim/optim_rig.h"

Test(norm, by_hand)
{
    float g[3] = {3, 0, -4};

    cr_expect_eq(optim_rig_norm(g, 3, 1), 5);
    cr_expect_eq(optim_rig_norm(g, 0, 1), 0);
    cr_expect_eq(optim_rig_norm(g, 1, 1), 3);
}

/* Lengths with partial blocks, full trees and several levels. */
Test(norm, agrees_with_a_plain_sum)
{
    static const size_t lengths[] = {7,     8,     4095,  4096,   4097,
                                     12288, 16384, 20481, 100000, 262144 + 3};
    const size_t most = 262144 + 3;
    float *g = malloc(most * sizeof *g);
    rng_t rng;

    rng_open(&rng, 1, RNG_ISING, 0, 0);
    for (size_t i = 0; i < most; i++)
        g[i] = (float)rng_normal(&rng);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        long double sum = 0;

        for (size_t i = 0; i < lengths[k]; i++)
            sum += (long double)g[i] * (long double)g[i];
        cr_expect_float_eq(optim_rig_norm(g, lengths[k], 1), (double)sqrtl(sum),
                           1e-13 * (double)sqrtl(sum), "length %zu",
                           lengths[k]);
    }
    free(g);
}

Test(norm, squares_do_not_overflow)
{
    float g[2] = {3e38f, 3e38f};

    cr_expect_float_eq(optim_rig_norm(g, 2, 1) / (3e38 * sqrt(2)), 1, 1e-6);
}

Test(norm, clip_scales_to_the_limit)
{
    float g[2] = {30, -40};

    cr_expect_eq(optim_rig_clip(g, 2, 5, 0, 1), 50);
    cr_expect_float_eq(g[0], 3, 1e-5);
    cr_expect_float_eq(g[1], -4, 1e-5);
    cr_expect_leq(optim_rig_norm(g, 2, 1), 5 * (1 + 1e-6));
}

/* torch.nn.utils.clip_grad_norm_ adds 1e-6 to the norm. */
Test(norm, clip_of_tiny_gradients_is_pytorchs)
{
    float g[2] = {3e-6f, 4e-6f};

    optim_rig_clip(g, 2, 3e-6, 0, 1);
    cr_expect_float_eq(g[0], 1.5e-6, 1e-12);
}

Test(norm, clip_leaves_small_gradients_and_no_limit_alone)
{
    float g[2] = {3, 4};

    cr_expect_eq(optim_rig_clip(g, 2, 5.1, 0, 1), 5);
    cr_expect_eq(optim_rig_clip(g, 2, 0, 0, 1), 5);
    cr_expect_eq(g[0], 3);
    cr_expect_eq(g[1], 4);
}

Test(norm, of_nan_or_infinity_makes_no_update)
{
    float g[2] = {1, NAN};

    cr_expect(isnan(optim_rig_clip(g, 2, 1, 0, 1)));
    cr_expect_eq(g[0], 1);
    g[1] = -INFINITY;
    cr_expect(isinf(optim_rig_clip(g, 2, 1, 0, 1)));
    cr_expect_eq(g[0], 1);
    cr_expect(isnan(optim_rig_verdict(NAN, 1).factor));
    cr_expect_not(optim_rig_verdict(NAN, 0).sound);
    cr_expect_not(optim_rig_verdict(INFINITY, 0).updates);
    cr_expect(optim_rig_verdict(1e300, 1).updates);
}

Test(norm, clip_value_clamps_each)
{
    float g[5] = {-3, -0.5f, 0, 0.25f, 7};

    optim_rig_clip(g, 5, 0, 0, 1);
    cr_expect_eq(g[4], 7);
    optim_rig_clip(g, 5, 0, 0.5, 1);
    cr_expect_eq(g[0], -0.5f);
    cr_expect_eq(g[1], -0.5f);
    cr_expect_eq(g[2], 0);
    cr_expect_eq(g[3], 0.25f);
    cr_expect_eq(g[4], 0.5f);
}

/* An update whose norm is not finite is not made, so only a place can show
 * this. */
Test(norm, clip_value_keeps_nan)
{
    cr_expect(isnan(optim_clamp(NAN, 0.5f)));
    cr_expect_eq(optim_clamp(INFINITY, 0.5f), 0.5f);
    cr_expect_eq(optim_clamp(-INFINITY, 0.5f), -0.5f);
}

/* Lengths with full trees, partial trees and partial blocks: a team of threads
 * changes no bit. */
Test(norm, threads_change_no_bit)
{
    static const size_t lengths[] = {
        1, 65536, 65537, 200000, 4096 * 33, 1 << 20, 3333333, 65536 * 300 + 5};
    const size_t most = 65536 * 300 + 5;
    float *g = malloc(most * sizeof *g), *h = malloc(most * sizeof *h);
    rng_t rng;

    rng_open(&rng, 1, RNG_ISING, 0, 0);
    for (size_t i = 0; i < most; i++)
        g[i] = (float)(rng_u32(&rng) >> 8) * 0x1p-20f - 8;
    memcpy(h, g, most * sizeof *h);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
        for (int threads = 2; threads <= 5; threads++)
            cr_expect_eq(optim_rig_norm(g, lengths[k], threads),
                         optim_rig_norm(g, lengths[k], 1), "%zu, %d",
                         lengths[k], threads);
    optim_rig_clip(g, most, 3, 0, 1);
    optim_rig_clip(h, most, 3, 0, 4);
    cr_expect_arr_eq(g, h, most * sizeof *g);
    optim_rig_clip(g, most, 0, 1e-4, 1);
    optim_rig_clip(h, most, 0, 1e-4, 3);
    cr_expect_arr_eq(g, h, most * sizeof *g);
    free(h);
    free(g);
}
