/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Many numbers of a stream at once, in loops without branches that compilers
 * vectorize: generate blocks, collect the pairs inside the unit disc, then
 * apply the polar transform to those. The bits are those of rng_normal and
 * rng_uniform on every vector unit: each operation rounds correctly, none is
 * fused (-ffp-contract=off), and conversions from integers are exact.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/clones.h"
#include "base/rng.h"
#include "base/rng_log.h"
#include "base/rng_x86.h"

/* Blocks of the generator per iteration; their results fit the first-level
 * cache. */
#define BLOCKS 256

typedef struct blocks {
    uint32_t x[4][BLOCKS];
    double u[BLOCKS], v[BLOCKS]; /* uniform in [-1, 1), two per block */
    double square[BLOCKS];       /* u * u + v * v */
} blocks_t;

static uint64_t position_of(const rng_t *rng)
{
    return (uint64_t)rng->counter[1] << 32 | rng->counter[0];
}

static void position_set(rng_t *rng, uint64_t position)
{
    rng->counter[0] = (uint32_t)position;
    rng->counter[1] = (uint32_t)(position >> 32);
    rng->used = 4;
}

void rng_skip(rng_t *rng, uint64_t blocks)
{
    position_set(rng, position_of(rng) + blocks);
}

void rng_philox_many(const uint32_t key[2], const uint32_t counter[4],
                     size_t count, uint32_t *const out[4])
{
    uint32_t at[4], block[4];
    size_t i = rng_x86_philox(key, counter, count, out);

    memcpy(at, counter, sizeof at);
    for (; i < count; i++) {
        at[0] = counter[0] + (uint32_t)i;
        rng_philox(key, at, block);
        for (int k = 0; k < 4; k++)
            out[k][i] = block[k];
    }
}

/* Generate BLOCKS blocks from [position] on. */
static void blocks_draw(const rng_t *rng, uint64_t position, blocks_t *to)
{
    uint32_t counter[4];
    size_t done = 0;

    memcpy(counter, rng->counter, sizeof counter);
    /* Two iterations if the low half of the position overflows. */
    while (done < BLOCKS) {
        const uint64_t from = position + done;
        const uint64_t whole = UINT64_C(0x100000000) - (uint32_t)from;
        const size_t count =
            BLOCKS - done < whole ? BLOCKS - done : (size_t)whole;
        /* cppcheck takes these addresses for reads of values. */
        /* cppcheck-suppress uninitvar */
        uint32_t *const out[4] = {to->x[0] + done, to->x[1] + done,
                                  to->x[2] + done, to->x[3] + done};

        counter[0] = (uint32_t)from;
        counter[1] = (uint32_t)(from >> 32);
        rng_philox_many(rng->key, counter, count, out);
        done += count;
    }
}

/* 2 * rng_uniform - 1 for the 64-bit number [high] [low]: a multiple of 2^-52,
 * computed as the sum of two exact parts. */
static inline double two_sided(uint32_t low, uint32_t high)
{
    return (double)(int32_t)(high ^ 0x80000000u) * 0x1p-31 +
           (double)(int32_t)(low >> 11) * 0x1p-52;
}

BASE_CLONES static void rng_fill_pairs(blocks_t *to)
{
    for (int i = 0; i < BLOCKS; i++) {
        to->u[i] = two_sided(to->x[0][i], to->x[1][i]);
        to->v[i] = two_sided(to->x[2][i], to->x[3][i]);
        to->square[i] = to->u[i] * to->u[i] + to->v[i] * to->v[i];
    }
}

/* Does the polar method accept this pair? */
static inline int inside(double square)
{
    return (square < 1) & (square > 0);
}

/* Number of blocks in [0, count) that hold a normal number. */
static int pairs_count(const blocks_t *batch, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        kept += inside(batch->square[i]);
    return kept;
}

/* Move the pairs inside the disc, of blocks [0, count), to the front. */
static int pairs_gather(blocks_t *to, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++) {
        to->u[kept] = to->u[i];
        to->square[kept] = to->square[i];
        kept += inside(to->square[i]);
    }
    return kept;
}

BASE_CLONES static void rng_fill_polar(const blocks_t *from, int count,
                                       double mean, double scale, float *out)
{
    for (int i = 0; i < count; i++) {
        double square = from->square[i];
        double normal = from->u[i] * sqrt(-2 * rng_log(square) / square);

        out[i] = (float)(mean + scale * normal);
    }
}

/* Number of blocks up to the [wanted]-th pair inside the disc. */
static int blocks_until(const blocks_t *batch, size_t wanted)
{
    int i = 0;

    for (size_t kept = 0; kept < wanted; i++)
        kept += (size_t)inside(batch->square[i]);
    return i;
}

void rng_fill_normal(rng_t *rng, double mean, double scale, float *out,
                     size_t count)
{
    uint64_t position = position_of(rng);
    blocks_t batch;

    if (rng->used != 4) { /* in the middle of a block */
        for (size_t i = 0; i < count; i++)
            out[i] = (float)(mean + scale * rng_normal(rng));
        return;
    }
    while (count > 0) {
        int blocks = BLOCKS, kept;

        blocks_draw(rng, position, &batch);
        rng_fill_pairs(&batch);
        if (count < BLOCKS && (size_t)pairs_count(&batch, BLOCKS) >= count)
            blocks = blocks_until(&batch, count);
        kept = pairs_gather(&batch, blocks);
        rng_fill_polar(&batch, kept, mean, scale, out);
        check((size_t)kept <= count, "%d numbers for %zu places", kept, count);
        out += kept;
        count -= (size_t)kept;
        position += (uint64_t)blocks;
    }
    position_set(rng, position);
}

size_t rng_count_normal(const rng_t *rng, uint64_t blocks)
{
    uint64_t position = position_of(rng);
    blocks_t batch;
    size_t kept = 0;

    while (blocks > 0) {
        const int now = blocks < BLOCKS ? (int)blocks : BLOCKS;

        blocks_draw(rng, position, &batch);
        rng_fill_pairs(&batch);
        kept += (size_t)pairs_count(&batch, now);
        position += (uint64_t)now;
        blocks -= (uint64_t)now;
    }
    return kept;
}

BASE_CLONES static void rng_fill_spread(const blocks_t *from, double bound,
                                        float *out)
{
    for (int i = 0; i < BLOCKS; i++) {
        out[2 * i] = (float)(two_sided(from->x[0][i], from->x[1][i]) * bound);
        out[2 * i + 1] =
            (float)(two_sided(from->x[2][i], from->x[3][i]) * bound);
    }
}

void rng_fill_uniform(rng_t *rng, double bound, float *out, size_t count)
{
    uint64_t position = position_of(rng);
    blocks_t batch;

    if (rng->used == 4) {
        for (; count >= 2 * BLOCKS; count -= 2 * BLOCKS, out += 2 * BLOCKS) {
            blocks_draw(rng, position, &batch);
            rng_fill_spread(&batch, bound, out);
            position += BLOCKS;
        }
        position_set(rng, position);
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (float)((2 * rng_uniform(rng) - 1) * bound);
}
