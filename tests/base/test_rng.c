/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Known answers of philox4x32-10, as published with Random123. */
Test(rng, philox_gives_the_published_numbers)
{
    static const struct {
        uint32_t key[2], counter[4], answer[4];
    } known[] = {
        {{0, 0},
         {0, 0, 0, 0},
         {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0xa4093822, 0x299f31d0},
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t out[4];
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        rng_philox(known[i].key, known[i].counter, out);
        cr_assert_arr_eq(out, known[i].answer, sizeof out, "row %zu", i);
    }
}

Test(rng, the_same_key_gives_the_same_numbers_and_any_other_does_not)
{
    static const struct {
        uint64_t seed, a, b;
        uint32_t purpose;
    } keys[] = {
        {1, 0, 0, RNG_INIT},       {2, 0, 0, RNG_INIT},
        {1, 1, 0, RNG_INIT},       {1, 0, 1, RNG_INIT},
        {1, 0, 0, RNG_SHUFFLE},    {1, 1ull << 32, 0, RNG_INIT},
        {1ull << 32 | 1, 0, 0, 1}, {1, 0, 1ull << 32, RNG_INIT},
    };
    enum { COUNT = sizeof keys / sizeof keys[0] };
    uint64_t first[COUNT];
    rng_t rng;
    int i, j;

    for (i = 0; i < COUNT; i++) {
        rng_open(&rng, keys[i].seed, keys[i].purpose, keys[i].a, keys[i].b);
        first[i] = rng_u64(&rng);
        rng_open(&rng, keys[i].seed, keys[i].purpose, keys[i].a, keys[i].b);
        cr_assert_eq(rng_u64(&rng), first[i]);
        for (j = 0; j < i; j++)
            cr_assert_neq(first[i], first[j], "keys %d and %d", i, j);
    }
}

Test(rng, position_carries_into_the_next_word)
{
    rng_t rng;
    uint32_t high;
    int i;

    rng_open(&rng, 1, RNG_INIT, 0, 0);
    high = rng.counter[2];
    rng.counter[0] = UINT32_MAX;
    for (i = 0; i < 8; i++)
        rng_u32(&rng);
    cr_assert_eq(rng.counter[0], 1);
    cr_assert_eq(rng.counter[1], 1);
    cr_assert_eq(rng.counter[2], high);
}

Test(rng, uniform_fills_the_half_open_interval)
{
    double x, sum = 0, least = 1, most = 0;
    rng_t rng;
    int i;

    rng_open(&rng, 7, RNG_INIT, 0, 0);
    for (i = 0; i < 100000; i++) {
        x = rng_uniform(&rng);
        cr_assert(x >= 0 && x < 1);
        sum += x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    cr_assert_float_eq(sum / 100000, 0.5, 0.005);
    cr_assert(least < 1e-3 && most > 1 - 1e-3);
}

Test(rng, below_is_even_and_bounded)
{
    int seen[7] = {0}, i;
    rng_t rng;

    rng_open(&rng, 7, RNG_SHUFFLE, 0, 0);
    for (i = 0; i < 70000; i++)
        seen[rng_below(&rng, 7)]++;
    for (i = 0; i < 7; i++)
        cr_assert(abs(seen[i] - 10000) < 500, "%d came %d times", i, seen[i]);
    cr_assert_eq(rng_below(&rng, 1), 0);
    cr_assert_eq(rng_below(&rng, 0), 0);
    for (i = 0; i < 100; i++)
        cr_assert_leq(rng_below(&rng, (1ull << 63) + 1), 1ull << 63);
}

Test(rng, normal_has_the_right_moments_and_tails)
{
    enum { COUNT = 200000 };
    double x, sum = 0, square = 0, fourth = 0;
    int far = 0, i;
    rng_t rng;

    rng_open(&rng, 3, RNG_INIT, 0, 0);
    for (i = 0; i < COUNT; i++) {
        x = rng_normal(&rng);
        sum += x;
        square += x * x;
        fourth += x * x * x * x;
        far += fabs(x) > 2;
    }
    cr_assert_float_eq(sum / COUNT, 0, 0.01);
    cr_assert_float_eq(square / COUNT, 1, 0.02);
    cr_assert_float_eq(fourth / COUNT, 3, 0.15);
    cr_assert_float_eq((double)far / COUNT, 0.0455, 0.003);
}

/* The first numbers of a stream, frozen: checkpoints and shuffles of released
 * versions depend on them. */
Test(rng, normal_keeps_its_bits)
{
    rng_t rng;
    double u, v, s, expected, found;

    rng_open(&rng, 1, RNG_INIT, 2, 3);
    do {
        u = 2 * rng_uniform(&rng) - 1;
        v = 2 * rng_uniform(&rng) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    expected = u * sqrt(-2 * log(s) / s);
    rng_open(&rng, 1, RNG_INIT, 2, 3);
    found = rng_normal(&rng);
    cr_assert_float_eq(found, expected, 1e-14);
    /* and these very bits, on every machine */
    cr_assert_eq(found, -0x1.b67793499a52fp-1);
}
