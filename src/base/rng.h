/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Random numbers from a counter: Philox4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", SC'11). The same key and counter give the same
 * bits anywhere, so nothing depends on rank, thread or order of calls.
 */
#ifndef CDDP_BASE_RNG_H
#define CDDP_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* A stream: a key, and a 128-bit position. */
typedef struct rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4]; /* numbers of the current position */
    int used;          /* how many of block are spent; 4: none left */
} rng_t;

/* One Philox block: four 32-bit numbers of ([key], [counter]). Pure. */
void rng_philox(const uint32_t key[2], const uint32_t counter[4],
                uint32_t out[4]);

/* The same for [count] positions, counter[0] one more each time (modulo 2^32,
 * no carry), by the vector units: number k of block i goes to out[k][i]. */
void rng_philox_many(const uint32_t key[2], const uint32_t counter[4],
                     size_t count, uint32_t *const out[4]);

/* A stream keyed by [seed], [purpose] (a small constant that separates uses,
 * RNG_*) and two free numbers, such as epoch and layer. */
void rng_open(rng_t *rng, uint64_t seed, uint32_t purpose, uint64_t a,
              uint64_t b);

enum {
    RNG_INIT = 1,
    RNG_SHUFFLE = 2,
    RNG_DROPOUT = 3,
    RNG_ISING = 4,
    RNG_BENCH = 5,
    RNG_LOWRANK = 6,
    RNG_FIELDS = 7
};

uint32_t rng_u32(rng_t *rng);
uint64_t rng_u64(rng_t *rng);
double rng_uniform(rng_t *rng);                 /* [0, 1), 53 bits */
uint64_t rng_below(rng_t *rng, uint64_t bound); /* [0, bound), unbiased */
double rng_normal(rng_t *rng);                  /* mean 0, variance 1 */

/* Many at once, by the vector units; the numbers and the stream behind them are
 * those of as many calls, bit by bit: out[i] is
 * (float)(mean + scale * rng_normal) or (float)((2 * rng_uniform - 1) * bound).
 */
void rng_fill_normal(rng_t *rng, double mean, double scale, float *out,
                     size_t count);
void rng_fill_uniform(rng_t *rng, double bound, float *out, size_t count);

/* To share such work among threads, for a stream at the start of a block (as
 * opened): pass over [blocks] blocks of the generator. A block holds two
 * uniform numbers; of normal ones it holds one or none (rng_count_normal: how
 * many the next [blocks] hold; the stream stays). */
void rng_skip(rng_t *rng, uint64_t blocks);
size_t rng_count_normal(const rng_t *rng, uint64_t blocks);

#endif
