/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/base/rng_variant.h"

/* Known results of philox4x32-10, as published with Random123. */
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

Test(rng, many_blocks_are_those_of_single_calls)
{
    static const uint32_t begins[] = {0, 5, UINT32_MAX - 6};
    uint32_t key[2] = {3, 9}, counter[4] = {0, 1, 2, 3}, want[4];
    uint32_t room[4][21];
    uint32_t *const out[4] = {room[0], room[1], room[2], room[3]};

    for (size_t b = 0; b < sizeof begins / sizeof begins[0]; b++) {
        counter[0] = begins[b];
        rng_philox_many(key, counter, 21, out);
        for (uint32_t i = 0; i < 21; i++) {
            counter[0] = begins[b] + i; /* may overflow */
            rng_philox(key, counter, want);
            for (int k = 0; k < 4; k++)
                cr_assert_eq(room[k][i], want[k], "number %d of block %u", k,
                             i);
        }
    }
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

/* The first numbers of a stream must never change: checkpoints and shuffles of
 * released versions depend on them. */
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
    /* exactly these bits, on every machine */
    cr_assert_eq(found, -0x1.b67793499a52fp-1);
}

/* ---- many at once -------------------------------------------------------- */

static const rng_variant_t *const variants[] = {
    &rng_variant_plain, &rng_variant_avx2, &rng_variant_avx512,
    &(const rng_variant_t){.name = "the library",
                           .normal = rng_fill_normal,
                           .uniform = rng_fill_uniform,
                           .count = rng_count_normal}};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static const size_t counts[] = {0, 1, 2, 7, 200, 511, 512, 513, 70001};
enum { COUNTS = sizeof counts / sizeof counts[0], MOST = 70001 };

/* The message goes to stderr, since a warning of Criterion would make the
 * program's status 1. */
static bool variant_runs(const rng_variant_t *variant)
{
    const bool runs = variant->runs == NULL || variant->runs();

    if (!runs)
        fprintf(stderr, "test_rng: this CPU has no %s: not compared\n",
                variant->name);
    return runs;
}

/* A stream, [blocks] blocks after its start. */
static rng_t stream_at(uint64_t blocks)
{
    rng_t rng;

    rng_open(&rng, 11, RNG_INIT, 5, 0);
    rng_skip(&rng, blocks);
    return rng;
}

/* [variant] must fill [count] numbers from [from] on with the bits of single
 * calls, and leave the stream in the same state. */
static void expect_same(const rng_variant_t *variant, rng_t from, bool normal,
                        size_t count)
{
    static float found[MOST + 1], expected[MOST];
    rng_t one = from, many = from;

    for (size_t i = 0; i < count; i++)
        expected[i] = normal ? (float)(0.5 + 0.02 * rng_normal(&one))
                             : (float)((2 * rng_uniform(&one) - 1) * 0.3);
    found[count] = 77;
    if (normal)
        variant->normal(&many, 0.5, 0.02, found, count);
    else
        variant->uniform(&many, 0.3, found, count);
    cr_expect_eq(memcmp(found, expected, count * sizeof found[0]), 0,
                 "%s, %zu numbers", variant->name, count);
    cr_expect_eq(found[count], 77, "%s, %zu numbers", variant->name, count);
    cr_expect_eq(rng_u64(&many), rng_u64(&one), "%s behind %zu numbers",
                 variant->name, count);
}

Test(rng, many_at_once_are_those_of_one_by_one)
{
    /* the second start crosses the end of the counter's first 32 bits */
    const uint64_t starts[] = {0, UINT32_MAX - UINT64_C(20000),
                               UINT64_C(1) << 40};

    for (int v = 0; v < VARIANTS; v++)
        for (size_t s = 0; s < 3 && variant_runs(variants[v]); s++)
            for (size_t c = 0; c < COUNTS; c++) {
                rng_t within = stream_at(starts[s]);

                expect_same(variants[v], within, true, counts[c]);
                expect_same(variants[v], within, false, counts[c]);
                rng_uniform(&within); /* half of a block is used */
                expect_same(variants[v], within, true, counts[c]);
                expect_same(variants[v], within, false, counts[c]);
            }
}

/* Some counts are exactly what 256 blocks hold: the stream must stop after the
 * last number, not after blocks whose numbers are rejected. */
Test(rng, many_at_once_end_where_one_by_one_ends)
{
    for (int v = 0; v < VARIANTS; v++)
        for (uint64_t start = 0; start < 16 && variant_runs(variants[v]);
             start++)
            for (size_t count = 180; count <= 256; count++)
                expect_same(variants[v], stream_at(start), true, count);
}

Test(rng, blocks_are_counted_as_they_are_drawn)
{
    for (int v = 0; v < VARIANTS; v++)
        for (size_t c = 0; c < COUNTS && variant_runs(variants[v]); c++) {
            const rng_t start = stream_at(3);
            rng_t rng = start, end = stream_at(3 + counts[c]);
            size_t expected = 0;

            /* count the numbers whose block is before the end */
            for (;; expected++) {
                (void)rng_normal(&rng);
                if (rng.counter[0] > end.counter[0])
                    break;
            }
            cr_expect_eq(variants[v]->count(&start, counts[c]), expected,
                         "%s, %zu blocks", variants[v]->name, counts[c]);
        }
}

/* These bits must never change: initial weights of released versions depend on
 * them. */
Test(rng, a_million_numbers_keep_their_bits)
{
    enum { MANY = 1 << 20 };
    float *numbers = malloc(MANY * sizeof *numbers);
    rng_t rng = stream_at(0);

    rng_fill_normal(&rng, 0, 0.02, numbers, MANY);
    cr_expect_eq(hash_bytes(numbers, MANY * sizeof *numbers),
                 UINT64_C(0x9b822a198ba0f68d));
    rng_fill_uniform(&rng, 0.125, numbers, MANY);
    cr_expect_eq(hash_bytes(numbers, MANY * sizeof *numbers),
                 UINT64_C(0xf26281c326dff82c));
    free(numbers);
}
