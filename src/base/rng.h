/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", SC'11). Equal key and counter give equal bits
 * everywhere, so nothing depends on rank, thread or order of calls.
 */
#ifndef CDDP_BASE_RNG_H
#define CDDP_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* A stream: a key and a 128-bit position. */
typedef struct rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4]; /* numbers of the current block */
    int used;          /* used numbers of [block]; 4: all */
} rng_t;

/* One Philox block: four 32-bit numbers for ([key], [counter]). Pure. */
void rng_philox(const uint32_t key[2], const uint32_t counter[4],
                uint32_t out[4]);

/* rng_philox for [count] counters with vector instructions; counter[0]
 * increases by one each time (modulo 2^32, without carry). Number k of block i
 * is written to out[k][i]. */
void rng_philox_many(const uint32_t key[2], const uint32_t counter[4],
                     size_t count, uint32_t *const out[4]);

/* What a stream is for. The numbers are part of the key: another number would
 * change the results of a seed. */
enum {
    RNG_INIT = 1,
    RNG_SHUFFLE = 2,
    RNG_DROPOUT = 3,
    RNG_ISING = 4,
    RNG_BENCH = 5,
    RNG_LOWRANK = 6,
    RNG_FIELDS = 7,
    RNG_ORDER = 8,
    RNG_SPLIT = 9,
    RNG_AUGMENT = 10
};

/* Start a stream for [seed], [purpose] (RNG_*) and two free numbers, such as
 * epoch and layer. */
void rng_open(rng_t *rng, uint64_t seed, uint32_t purpose, uint64_t a,
              uint64_t b);

/* The next number of the stream. */
uint32_t rng_u32(rng_t *rng);
uint64_t rng_u64(rng_t *rng);
double rng_uniform(rng_t *rng);                 /* [0, 1), 53 bits */
uint64_t rng_below(rng_t *rng, uint64_t bound); /* [0, bound), unbiased */
double rng_normal(rng_t *rng);                  /* mean 0, variance 1 */

/* Fill an array with vector instructions. The numbers and the following state
 * of the stream are, bit by bit, those of single calls: out[i] is (float)(mean
 * + scale * rng_normal) or (float)((2 * rng_uniform - 1) * bound). */
void rng_fill_normal(rng_t *rng, double mean, double scale, float *out,
                     size_t count);
void rng_fill_uniform(rng_t *rng, double bound, float *out, size_t count);

/* For dividing such work among threads. The stream must be at the start of a
 * block (as opened). rng_skip passes [blocks] blocks of the generator. A block
 * holds two uniform numbers, and one normal number or none: rng_count_normal
 * counts those of the next [blocks] blocks without changing the stream. */
void rng_skip(rng_t *rng, uint64_t blocks);
size_t rng_count_normal(const rng_t *rng, uint64_t blocks);

#endif
