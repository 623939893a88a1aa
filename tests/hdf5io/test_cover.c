/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Compares the sweep that finds holes between pieces with a test of each
 * element. */
#include "hdf5io/cover.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"

enum { EDGE = 7, PIECES = 12 };

/* Is [at] one of the positions of [side]? */
static bool side_has(const cover_side_t *side, uint64_t at)
{
    uint64_t used = 0;

    for (uint64_t k = 0; k < side->count && used < side->limit; k++) {
        uint64_t begin = side->start + k * side->stride;
        uint64_t left = side->limit - used;
        uint64_t length = side->block < left ? side->block : left;

        if (begin > at)
            return false;
        if (at - begin < length)
            return true;
        if (side->stride == 0)
            return false;
        used += length;
    }
    return false;
}

static bool piece_has(const cover_side_t *sides, int ndim, const uint64_t *at)
{
    for (int d = 0; d < ndim; d++)
        if (!side_has(&sides[d], at[d]))
            return false;
    return true;
}

/* Bit set of the rows that have an element in no piece. */
static unsigned rows_open(const cover_side_t *sides, int ndim, size_t count,
                          const uint64_t *extent)
{
    unsigned open = 0;
    uint64_t at[3];

    for (at[0] = 0; at[0] < extent[0]; at[0]++)
        for (at[1] = 0; at[1] < (ndim > 1 ? extent[1] : 1); at[1]++)
            for (at[2] = 0; at[2] < (ndim > 2 ? extent[2] : 1); at[2]++) {
                bool there = false;

                for (size_t i = 0; i < count && !there; i++)
                    there = piece_has(sides + i * (size_t)ndim, ndim, at);
                if (!there)
                    open |= 1U << at[0];
            }
    return open;
}

static cover_side_t side_draw(rng_t *rng)
{
    cover_side_t side = {.start = rng_below(rng, 3),
                         .stride = 1 + rng_below(rng, 4),
                         .count = 1 + rng_below(rng, 4),
                         .limit = COVER_ALL};

    side.block = 1 + rng_below(rng, side.stride);
    if (rng_below(rng, 3) == 0)
        side = (cover_side_t){0, 1, 1, COVER_ALL, COVER_ALL};
    if (rng_below(rng, 5) == 0)
        side.count = COVER_ALL;
    if (rng_below(rng, 5) == 0)
        side.limit = rng_below(rng, EDGE + 2);
    return side;
}

Test(cover, random_pieces)
{
    int whole_seen = 0, open_seen = 0;
    rng_t rng;

    rng_open(&rng, 1, RNG_ISING, 0, 0);
    for (int round = 0; round < 20000; round++) {
        const int ndim = 1 + (int)rng_below(&rng, 3);
        const size_t count = rng_below(&rng, PIECES + 1);
        cover_side_t sides[PIECES * 3];
        uint64_t extent[3], hole[2] = {0, 0};
        bool whole = false;
        err_t err = ERR_INIT;
        unsigned open;

        for (int d = 0; d < ndim; d++)
            extent[d] = 1 + rng_below(&rng, EDGE);
        for (size_t i = 0; i < count * (size_t)ndim; i++)
            sides[i] = side_draw(&rng);
        cr_assert_eq(
            hdf5io_cover_check(&(cover_pieces_t){extent, ndim, sides, count},
                               &whole, hole, &err),
            ERR_OK, "%s", err.text);
        open = rows_open(sides, ndim, count, extent);
        cr_assert_eq(whole, open == 0, "round %d", round);
        whole_seen += whole;
        open_seen += !whole;
        if (whole)
            continue;
        cr_assert_lt(hole[0], hole[1]);
        cr_assert_leq(hole[1], extent[0]);
        cr_assert_eq(hole[0], (uint64_t)__builtin_ctz(open),
                     "the hole that is named is the first one");
        for (uint64_t row = hole[0]; row < hole[1]; row++)
            cr_assert_neq(open >> row & 1, 0U);
    }
    cr_assert_gt(whole_seen, 1000);
    cr_assert_gt(open_seen, 1000);
}

Test(cover, numbers_near_the_end_of_all)
{
    const uint64_t extent[] = {UINT64_MAX - 1, 4};
    const cover_side_t sides[] = {
        {0, 1, 1, UINT64_MAX / 2, COVER_ALL},
        {0, 1, 1, 4, COVER_ALL},
        {UINT64_MAX / 2, UINT64_MAX, 3, UINT64_MAX - 5, COVER_ALL},
        {0, 1, 4, 1, COVER_ALL}};
    uint64_t hole[2];
    bool whole = false;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_cover_check(&(cover_pieces_t){extent, 2, sides, 2},
                                    &whole, hole, &err),
                 ERR_OK);
    cr_assert(whole, "%llu", (unsigned long long)hole[0]);
    cr_assert_eq(hdf5io_cover_check(&(cover_pieces_t){extent, 2, sides, 1},
                                    &whole, hole, &err),
                 ERR_OK);
    cr_assert_not(whole);
    cr_assert_eq(hole[0], UINT64_MAX / 2);
}

Test(cover, what_is_too_much_is_said)
{
    const uint64_t extent[] = {UINT64_MAX - 1, 4};
    const cover_side_t sides[] = {{0, 2, COVER_ALL, 1, COVER_ALL},
                                  {0, 1, 1, 4, COVER_ALL}};
    uint64_t hole[2];
    bool whole = false;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_cover_check(&(cover_pieces_t){extent, 2, sides, 1},
                                    &whole, hole, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "blocks"), "%s", err.text);
}
