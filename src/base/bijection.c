/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Each round changes one half of the bits by a function of the other half, so
 * it can be undone whatever that function is. The rounds alternate between the
 * halves, whose widths may differ by one bit.
 *
 * With fewer than 64 numbers the halves would have so few bits that even many
 * rounds mix badly. So there are at least 6 bits, and small permutations walk
 * longer: for 2 numbers 32 times on average.
 */
#include "base/bijection.h"

#include "base/check.h"

#define BIJECTION_BITS_MIN 6

/* [bits] bits (0 .. 63) that depend on all of [half] and [key]. */
static uint64_t bijection_mix(uint64_t half, uint64_t key, int bits)
{
    uint64_t x = half + key;

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x >> (64 - bits);
}

void bijection_open(bijection_t *bijection, uint64_t count, rng_t *rng)
{
    int bits = BIJECTION_BITS_MIN;

    check(count >= 1 && count <= UINT64_C(1) << 63,
          "a permutation of %llu numbers", (unsigned long long)count);
    while (UINT64_C(1) << bits < count)
        bits++;
    bijection->count = count;
    bijection->left = bits / 2;
    bijection->right = bits - bits / 2;
    for (int i = 0; i < BIJECTION_ROUNDS; i++)
        bijection->keys[i] = rng_u64(rng);
}

static uint64_t bijection_forth(const bijection_t *b, uint64_t x)
{
    uint64_t left = x >> b->right;
    uint64_t right = x & ((UINT64_C(1) << b->right) - 1);

    for (int i = 0; i < BIJECTION_ROUNDS; i += 2) {
        left ^= bijection_mix(right, b->keys[i], b->left);
        right ^= bijection_mix(left, b->keys[i + 1], b->right);
    }
    return left << b->right | right;
}

static uint64_t bijection_back(const bijection_t *b, uint64_t x)
{
    uint64_t left = x >> b->right;
    uint64_t right = x & ((UINT64_C(1) << b->right) - 1);

    for (int i = BIJECTION_ROUNDS - 2; i >= 0; i -= 2) {
        right ^= bijection_mix(left, b->keys[i + 1], b->right);
        left ^= bijection_mix(right, b->keys[i], b->left);
    }
    return left << b->right | right;
}

uint64_t bijection_at(const bijection_t *bijection, uint64_t at)
{
    uint64_t x = at;

    check(at < bijection->count, "place %llu of %llu", (unsigned long long)at,
          (unsigned long long)bijection->count);
    do
        x = bijection_forth(bijection, x);
    while (x >= bijection->count);
    return x;
}

uint64_t bijection_place(const bijection_t *bijection, uint64_t value)
{
    uint64_t x = value;

    check(value < bijection->count, "number %llu of %llu",
          (unsigned long long)value, (unsigned long long)bijection->count);
    do
        x = bijection_back(bijection, x);
    while (x >= bijection->count);
    return x;
}
