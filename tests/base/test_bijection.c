/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/bijection.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>

static bijection_t open_bijection(uint64_t count, uint64_t key)
{
    bijection_t bijection;
    rng_t rng;

    rng_open(&rng, 5, RNG_SHUFFLE, key, 0);
    bijection_open(&bijection, count, &rng);
    return bijection;
}

/* Does each number occur once, and is the inverse right? */
static bool is_permutation(const bijection_t *bijection)
{
    char *seen = calloc((size_t)bijection->count, 1);
    bool good = true;

    for (uint64_t i = 0; i < bijection->count && good; i++) {
        const uint64_t value = bijection_at(bijection, i);

        good = value < bijection->count && seen[value]++ == 0 &&
               bijection_place(bijection, value) == i;
    }
    free(seen);
    return good;
}

Test(bijection, all_small_sizes_are_permutations)
{
    for (uint64_t count = 1; count <= 600; count++)
        for (uint64_t key = 0; key < 3; key++) {
            const bijection_t bijection = open_bijection(count, key);

            cr_assert(is_permutation(&bijection), "%llu numbers, key %llu",
                      (unsigned long long)count, (unsigned long long)key);
        }
}

Test(bijection, larger_sizes_are_permutations)
{
    static const uint64_t counts[] = {4095, 4096, 4097, 65537, 100003};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const bijection_t bijection = open_bijection(counts[i], i);

        cr_assert(is_permutation(&bijection));
    }
}

/* Too large to look at all numbers: the inverse of a function that exists on
 * all of the range shows that the function is one-to-one. */
Test(bijection, huge_sizes_have_an_inverse)
{
    rng_t rng;

    rng_open(&rng, 6, RNG_BENCH, 0, 0);
    for (int bits = 20; bits <= 63; bits++)
        for (int i = 0; i < 50; i++) {
            const uint64_t top = UINT64_C(1) << bits;
            const uint64_t count = i == 0   ? top
                                   : i == 1 ? top - 1
                                            : top - rng_below(&rng, top / 2);
            const bijection_t bijection = open_bijection(count, (uint64_t)i);
            const uint64_t at = i == 2 ? count - 1 : rng_below(&rng, count);
            const uint64_t value = bijection_at(&bijection, at);

            cr_assert_lt(value, count);
            cr_assert_eq(bijection_place(&bijection, value), at);
        }
}

Test(bijection, keys_differ_and_repeat)
{
    const bijection_t a = open_bijection(1000, 1), b = open_bijection(1000, 2);
    const bijection_t again = open_bijection(1000, 1);
    int same = 0;

    for (uint64_t i = 0; i < 1000; i++) {
        same += bijection_at(&a, i) == bijection_at(&b, i);
        cr_assert_eq(bijection_at(&a, i), bijection_at(&again, i));
    }
    cr_assert_lt(same, 10);
}

/* The orders of released versions must never change: checkpoints within an
 * epoch depend on them. */
Test(bijection, keeps_its_numbers)
{
    const bijection_t small = open_bijection(10, 1);
    const bijection_t large = open_bijection(1000000007, 1);
    static const uint64_t smalls[10] = {5, 2, 6, 1, 4, 0, 7, 3, 9, 8};
    static const uint64_t larges[4] = {317017511, 757675947, 912424502,
                                       295624749};

    for (uint64_t i = 0; i < 10; i++)
        cr_assert_eq(bijection_at(&small, i), smalls[i]);
    for (uint64_t i = 0; i < 4; i++)
        cr_assert_eq(bijection_at(&large, i), larges[i]);
}

/* ---- statistics ----------------------------------------------------------
 * Chi-squared sums, of which 99.9 % are below the limits if all cases are
 * equally likely. The keys are fixed, and so are the results. */

/* Number of the permutation of [count] numbers in the list of all, from 0. */
static int permutation_number(const bijection_t *bijection)
{
    const int count = (int)bijection->count;
    uint64_t value[8];
    int number = 0;

    for (int i = 0; i < count; i++)
        value[i] = bijection_at(bijection, (uint64_t)i);
    for (int i = 0; i < count; i++) {
        int smaller = 0;

        for (int j = i + 1; j < count; j++)
            smaller += value[j] < value[i];
        number = number * (count - i) + smaller;
    }
    return number;
}

/* All 120 permutations of 5 numbers; 119 degrees of freedom. */
Test(bijection, all_permutations_of_five_are_equally_likely)
{
    double hits[120] = {0}, sum = 0;

    for (uint64_t key = 0; key < 12000; key++) {
        const bijection_t bijection = open_bijection(5, key);

        hits[permutation_number(&bijection)]++;
    }
    for (int i = 0; i < 120; i++)
        sum += (hits[i] - 100) * (hits[i] - 100) / 100;
    cr_assert_lt(sum, 172.5, "chi-squared %g", sum);
}

/* Where two places of [count] go, for [keys] keys: the sum has count (count -
 * 1) - 1 degrees of freedom, and stays below the mean and four standard
 * deviations. */
static void check_pairs(uint64_t count, uint64_t a, uint64_t b, uint64_t keys)
{
    const double cells = (double)(count * (count - 1));
    const double expected = (double)keys / cells;
    double *hits = calloc((size_t)(count * count), sizeof *hits);
    double sum = 0;

    for (uint64_t key = 0; key < keys; key++) {
        const bijection_t bijection = open_bijection(count, key);

        hits[bijection_at(&bijection, a) * count +
             bijection_at(&bijection, b)]++;
    }
    for (uint64_t i = 0; i < count * count; i++)
        if (i / count != i % count)
            sum += (hits[i] - expected) * (hits[i] - expected) / expected;
    free(hits);
    /* (sum - mean)^2 < 16 * 2 * mean, without a square root */
    cr_assert((sum < cells - 1) ||
                  (sum - cells + 1) * (sum - cells + 1) < 32 * (cells - 1),
              "%llu numbers, places %llu and %llu: chi-squared %g",
              (unsigned long long)count, (unsigned long long)a,
              (unsigned long long)b, sum);
}

Test(bijection, pairs_of_places_go_to_all_pairs)
{
    static const uint64_t counts[] = {12, 16, 33, 64, 65};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const uint64_t count = counts[i], keys = count * (count - 1) * 8;

        check_pairs(count, 0, 1, keys);
        check_pairs(count, count / 2 - 1, count - 1, keys);
    }
}
