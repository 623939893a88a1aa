/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * bijection: a pseudo-random permutation of the numbers 0 .. count - 1, given
 * by keys instead of a table. Any element is computed alone, in both
 * directions, so an order of 10^9 samples needs 96 bytes, and may be entered
 * anywhere. An element takes 45 to 80 ns (AMD EPYC, one thread, busy machine),
 * bijection_open 0.5 us.
 *
 * It is a Feistel network (Luby and Rackoff, "How to construct pseudorandom
 * permutations from pseudorandom functions", SIAM J. Comput. 17, 1988) on the
 * smallest power of 2 that is not below [count], and at least 64. Numbers that
 * leave the range are mapped again until one is inside ("cycle walking": Black
 * and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), at most
 * twice on average for count > 32. The same construction shuffles arrays on
 * GPUs (Mitchell et al., "Bandwidth-optimal random shuffling for GPUs", ACM
 * TOPC 9, 2022). The rounds mix by the finalizer of SplitMix64 (Steele et al.,
 * "Fast splittable pseudorandom number generators", OOPSLA 2014).
 *
 * This is no encryption: it serves statistics only.
 *
 * Thread rule: constant after bijection_open; any thread.
 */
#ifndef CDDP_BASE_BIJECTION_H
#define CDDP_BASE_BIJECTION_H

#include <stdint.h>

#include "base/rng.h"

/* With 10 rounds of at least 64 numbers, no statistic of the tests tells the
 * permutations from those of Fisher-Yates; with 6 rounds pairs do. Another
 * number changes the order of all epochs. */
#define BIJECTION_ROUNDS 10

typedef struct bijection {
    uint64_t count;
    int left, right; /* bits of the two halves */
    uint64_t keys[BIJECTION_ROUNDS];
} bijection_t;

/* A permutation of [count] numbers (1 .. 2^63), whose keys are the next numbers
 * of [rng]: equal streams give equal permutations on every machine. */
void bijection_open(bijection_t *bijection, uint64_t count, rng_t *rng);

/* The number at place [at] of the permutation; at < count. Pure. */
uint64_t bijection_at(const bijection_t *bijection, uint64_t at);

/* The place of number [value]: the inverse of bijection_at. Pure. */
uint64_t bijection_place(const bijection_t *bijection, uint64_t value);

#endif
