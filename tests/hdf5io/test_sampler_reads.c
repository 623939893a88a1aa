/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Order 2 of the sampler: which rank needs which units, and when. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_plan.h"

#define UNITS 4 /* of a window */

/* What reading costs, over all ranks. */
typedef struct reads {
    int64_t units; /* pairs of a unit and a rank that needs it */
    int64_t live;  /* most units that a rank needs at a time */
} reads_t;

/* Add what one rank reads. A unit is live from its first use to its last one,
 * so this is what a rank holds that reads each unit once. */
static void rank_add(const plan_t *plan, int rank, int size,
                     const int64_t *unit, reads_t *reads)
{
    const int64_t units = hdf5io_units_count(plan->units);
    hdf5io_sampler_t *sampler = plan_sampler(plan, rank, size, 0);
    const int64_t steps = hdf5io_sampler_steps(sampler);
    const int64_t most = hdf5io_sampler_share_max(sampler);
    int64_t *index = calloc((size_t)most, sizeof *index);
    int64_t *last = calloc((size_t)units, sizeof *last);
    int64_t *change = calloc((size_t)steps + 1, sizeof *change);
    int64_t live = 0;

    for (int64_t s = 0; s < steps; s++) {
        const hdf5io_share_t share = hdf5io_sampler_share(sampler, s);

        hdf5io_sampler_index(sampler, share.first, share.count, index);
        for (int64_t i = 0; i < share.count; i++) {
            if (last[unit[index[i]]] == 0) {
                reads->units++;
                change[s]++;
            }
            last[unit[index[i]]] = s + 1;
        }
    }
    for (int64_t u = 0; u < units; u++)
        if (last[u] > 0)
            change[last[u]]--;
    for (int64_t s = 0; s < steps; s++) {
        live += change[s];
        reads->live = live > reads->live ? live : reads->live;
    }
    free(change);
    free(last);
    free(index);
    hdf5io_sampler_close(sampler);
}

static reads_t reads_of(const plan_t *plan, int size)
{
    int64_t *unit = plan_units(plan);
    reads_t reads = {0};

    for (int rank = 0; rank < size; rank++)
        rank_add(plan, rank, size, unit, &reads);
    free(unit);
    return reads;
}

/* Lanes of a whole number of units: no unit is read by two ranks. */
Test(sampler_reads, a_unit_is_read_by_one_rank)
{
    plan_t plan = plan_even((int64_t)64 * 16 * 32, 32, 256, 64);

    for (int size = 1; size <= 64; size *= 2) {
        const reads_t reads = reads_of(&plan, size);

        cr_assert_eq(reads.units, 64 * 16, "%d ranks read %lld units", size,
                     (long long)reads.units);
        /* While a lane goes from one window to the next it needs both. */
        cr_assert_leq(reads.live, 64 / size * 2 * UNITS,
                      "%d ranks hold %lld units", size, (long long)reads.live);
    }
    hdf5io_units_close(plan.units);
}

/* Otherwise ranks share the units in which their lanes meet. */
Test(sampler_reads, only_units_between_ranks_are_read_twice)
{
    static const int sizes[] = {1, 2, 4, 8, 16, 32, 64};
    plan_t plans[] = {plan_open(plan_uneven, PLAN_SPANS, 256, 64),
                      plan_open(plan_uneven, PLAN_SPANS, 100, 64),
                      plan_even(70001, 61, 256, 64), plan_even(100, 9, 256, 64),
                      plan_even(1000, 2000, 64, 64)};

    for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
        const int64_t units = hdf5io_units_count(plans[p].units);

        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const reads_t reads = reads_of(&plans[p], sizes[i]);

            cr_assert_geq(reads.units, units);
            cr_assert_leq(reads.units, units + sizes[i] - 1,
                          "plan %zu, %d ranks: %lld of %lld units", p, sizes[i],
                          (long long)reads.units, (long long)units);
            /* One more for each lane: a unit shared with its neighbour, whose
             * window is longer. */
            cr_assert_leq(reads.live, 64 / sizes[i] * (2 * UNITS + 1));
        }
        hdf5io_units_close(plans[p].units);
    }
}

/* Two lanes that meet within a unit need it at the same time, so a rank does
 * not hold such a unit for most of the epoch: it needs no more than the windows
 * of its lanes, and what comes while some of them go to the next one. */
Test(sampler_reads, lanes_that_meet_read_a_unit_together)
{
    const plan_t plan = plan_even(70001, 61, 256, 64);
    const reads_t reads = reads_of(&plan, 1);

    cr_assert_eq(reads.units, hdf5io_units_count(plan.units));
    cr_assert_leq(reads.live, 64 * UNITS + 16, "%lld units are held",
                  (long long)reads.live);
    hdf5io_units_close(plan.units);
}

/* With any other number of ranks, at most size - 1 lanes are shared. */
Test(sampler_reads, other_numbers_of_ranks_read_few_units_twice)
{
    plan_t plan = plan_even((int64_t)64 * 16 * 32, 32, 256, 64);

    for (int size = 3; size <= 17; size += 2) {
        const reads_t reads = reads_of(&plan, size);

        cr_assert_leq(reads.units, 64 * 16 + (size - 1) * (16 + 1),
                      "%d ranks read %lld units", size, (long long)reads.units);
    }
    hdf5io_units_close(plan.units);
}

/* With train.reproducible ranks get whole leaves of [grain] samples. If leaves
 * and lanes fit together, only the last step of the epoch, which is divided
 * into fewer leaves, can cost more. */
Test(sampler_reads, leaves_of_lanes_are_read_by_one_rank)
{
    plan_t plan = plan_even((int64_t)64 * 16 * 32, 32, 256, 64);

    plan.grain = 16;
    for (int size = 1; size <= 16; size++)
        cr_assert_eq(reads_of(&plan, size).units, 64 * 16);
    hdf5io_units_close(plan.units);
    plan = plan_even((int64_t)64 * 16 * 32 + 100, 32, 256, 64);
    plan.grain = 16;
    for (int size = 1; size <= 16; size *= 2)
        cr_assert_leq(reads_of(&plan, size).units,
                      hdf5io_units_count(plan.units) + size - 1 + 100);
    hdf5io_units_close(plan.units);
}

/* ---- decodes, if a rank keeps the chunks that it used last ----------------
 */

/* Number of chunks that one rank decodes in an epoch if it keeps the chunks
 * that it used last, as many as it has in use at a time. */
static int64_t rank_decodes(const plan_t *plan, int rank, int size,
                            const int64_t *unit)
{
    hdf5io_sampler_t *sampler = plan_sampler(plan, rank, size, 0);
    const int64_t steps = hdf5io_sampler_steps(sampler);
    const int most = (int)hdf5io_sampler_units_used(sampler);
    int64_t *index =
        calloc((size_t)hdf5io_sampler_share_max(sampler), sizeof *index);
    int64_t *kept = calloc((size_t)most, sizeof *kept); /* the newest first */
    int64_t decodes = 0;
    int count = 0;

    for (int64_t s = 0; s < steps; s++) {
        const hdf5io_share_t share = hdf5io_sampler_share(sampler, s);

        hdf5io_sampler_index(sampler, share.first, share.count, index);
        for (int64_t i = 0; i < share.count; i++) {
            const int64_t wanted = unit[index[i]];
            int at = 0;

            while (at < count && kept[at] != wanted)
                at++;
            if (at == count) {
                decodes++;
                count += count < most;
                at = count - 1;
            }
            memmove(kept + 1, kept, (size_t)at * sizeof *kept);
            kept[0] = wanted;
        }
    }
    free(kept);
    free(index);
    hdf5io_sampler_close(sampler);
    return decodes;
}

/* With the default of data.lanes, the 64 chunks that a rank had in use in order
 * 1 are enough on any number of ranks; 64 lanes need 256 on one rank. A lane
 * that two ranks share is decoded by both. With --verbose the numbers are
 * printed; docs/benchmarks/io.md has them. */
Test(sampler_reads, few_chunks_are_decoded_twice)
{
    for (int lanes = 16; lanes <= 64; lanes += 48) {
        plan_t plan = plan_even((int64_t)64 * 16 * 32, 32, 256, lanes);
        const double units = (double)hdf5io_units_count(plan.units);
        int64_t *unit = plan_units(&plan);

        for (int size = 1; size <= 16; size++) {
            const double limit =
                1.1 + (lanes % size == 0 ? 0 : (double)(size - 1) / lanes);
            double decodes = 0;

            for (int rank = 0; rank < size; rank++)
                decodes += (double)rank_decodes(&plan, rank, size, unit);
            cr_log_info("%d lanes, %d ranks: %.3f decodes a chunk", lanes, size,
                        decodes / units);
            cr_assert_leq(decodes / units, limit, "%d lanes, %d ranks: %g",
                          lanes, size, decodes / units);
        }
        free(unit);
        hdf5io_units_close(plan.units);
    }
}
