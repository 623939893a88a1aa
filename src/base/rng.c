/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A stream uses the low half of its counter as position. Key and high half are
 * a Philox block of (seed, purpose, a, b), so the starts of streams differ in
 * 128 bits.
 */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/rng_log.h"
#include "base/rng_philox.h"

static void rng_round(uint32_t x[4], const uint32_t key[2])
{
    uint64_t first = (uint64_t)RNG_FIRST * x[0];
    uint64_t third = (uint64_t)RNG_THIRD * x[2];

    x[0] = (uint32_t)(third >> 32) ^ x[1] ^ key[0];
    x[1] = (uint32_t)third;
    x[2] = (uint32_t)(first >> 32) ^ x[3] ^ key[1];
    x[3] = (uint32_t)first;
}

void rng_philox(const uint32_t key[2], const uint32_t counter[4],
                uint32_t out[4])
{
    uint32_t x[4], k[2] = {key[0], key[1]};
    int round;

    memcpy(x, counter, sizeof x);
    for (round = 0; round < RNG_ROUNDS; round++) {
        rng_round(x, k);
        k[0] += RNG_STEP0;
        k[1] += RNG_STEP1;
    }
    memcpy(out, x, sizeof x);
}

void rng_open(rng_t *rng, uint64_t seed, uint32_t purpose, uint64_t a,
              uint64_t b)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {purpose, 0, 0, 0};
    uint32_t block[4];

    rng_philox(key, counter, block);
    counter[0] = (uint32_t)a;
    counter[1] = (uint32_t)(a >> 32);
    counter[2] = (uint32_t)b ^ block[2];
    counter[3] = (uint32_t)(b >> 32) ^ block[3];
    rng_philox(block, counter, block);
    memset(rng, 0, sizeof *rng);
    memcpy(rng->key, block, sizeof rng->key);
    memcpy(rng->counter + 2, block + 2, 2 * sizeof block[0]);
    rng->used = 4;
}

uint32_t rng_u32(rng_t *rng)
{
    if (rng->used == 4) {
        rng_philox(rng->key, rng->counter, rng->block);
        if (++rng->counter[0] == 0)
            rng->counter[1]++;
        rng->used = 0;
    }
    check(rng->used >= 0 && rng->used < 4, "%d numbers of a block are used",
          rng->used);
    return rng->block[rng->used++];
}

uint64_t rng_u64(rng_t *rng)
{
    uint64_t low = rng_u32(rng);

    return (uint64_t)rng_u32(rng) << 32 | low;
}

double rng_uniform(rng_t *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

/* Of the 2^64 numbers, 2^64 mod [bound] are rejected, so that each result has
 * the same number of them. */
uint64_t rng_below(rng_t *rng, uint64_t bound)
{
    uint64_t surplus, x;

    if (bound == 0)
        return 0;
    surplus = (0 - bound) % bound;
    do {
        x = rng_u64(rng);
    } while (x < surplus);
    return x % bound;
}

/* Marsaglia's polar method; only one number of each pair is used. */
double rng_normal(rng_t *rng)
{
    double u, v, square;

    do {
        u = 2 * rng_uniform(rng) - 1;
        v = 2 * rng_uniform(rng) - 1;
        square = u * u + v * v;
    } while (square >= 1 || square == 0);
    return u * sqrt(-2 * rng_log(square) / square);
}
