/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Order 2 of the sampler. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bijection.h"
#include "base/rng.h"
#include "sampler_plan.h"

static bool is_permutation(const int64_t *order, int64_t samples)
{
    char *seen = calloc((size_t)samples, 1);
    bool good = true;

    for (int64_t i = 0; i < samples; i++)
        good = good && order[i] >= 0 && order[i] < samples &&
               seen[order[i]]++ == 0;
    free(seen);
    return good;
}

static void check_permutation(plan_t plan)
{
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        int64_t *order = plan_order(&plan, epoch);

        cr_assert(is_permutation(order, plan.samples),
                  "%lld samples, %lld units, batch %lld, %lld lanes",
                  (long long)plan.samples,
                  (long long)hdf5io_units_count(plan.units),
                  (long long)plan.batch, (long long)plan.lanes);
        free(order);
    }
    hdf5io_units_close(plan.units);
}

Test(sampler_lanes, every_size_is_a_permutation)
{
    static const int64_t units[] = {1, 2, 7, 64, 1000};
    static const int64_t lanes[] = {1, 2, 3, 64};

    for (int64_t samples = 1; samples <= 130; samples++)
        for (size_t u = 0; u < 5; u++)
            for (size_t l = 0; l < 4; l++)
                check_permutation(plan_even(samples, units[u],
                                            1 + samples * 7 % 40, lanes[l]));
    check_permutation(plan_even(70001, 256, 1000, 64));
    check_permutation(plan_even(65536, 64, 256, 64));
}

Test(sampler_lanes, uneven_shards_are_permutations)
{
    static const int64_t batches[] = {1, 3, 64, 100, 256, 4823, 10000};

    for (int count = 1; count <= PLAN_SPANS; count++)
        for (size_t b = 0; b < 7; b++) {
            check_permutation(plan_open(plan_uneven, count, batches[b], 64));
            check_permutation(plan_open(plan_uneven, count, batches[b], 5));
        }
}

Test(sampler_lanes, full_is_a_permutation)
{
    for (int64_t samples = 1; samples <= 2000; samples += 37) {
        plan_t plan = plan_even(samples, 10, 7, 64);

        plan.shuffle = HDF5IO_SHUFFLE_FULL;
        check_permutation(plan);
    }
}

/* Divide an epoch among [size] ranks, and put it together again. */
static void check_ranks(const plan_t *plan, int size)
{
    int64_t *whole = plan_order(plan, 2);
    int64_t *dealt = calloc((size_t)plan->samples, sizeof *dealt);

    for (int rank = 0; rank < size; rank++) {
        hdf5io_sampler_t *sampler = plan_sampler(plan, rank, size, 2);

        for (int64_t s = 0; s < hdf5io_sampler_steps(sampler); s++) {
            const hdf5io_share_t share = hdf5io_sampler_share(sampler, s);

            hdf5io_sampler_index(sampler, share.first, share.count,
                                 dealt + share.first);
        }
        hdf5io_sampler_close(sampler);
    }
    cr_assert_arr_eq(dealt, whole, (size_t)plan->samples * sizeof *whole,
                     "%d ranks, grain %lld", size, (long long)plan->grain);
    free(dealt);
    free(whole);
}

Test(sampler_lanes, any_number_of_ranks_takes_the_same_batches)
{
    plan_t plan = plan_open(plan_uneven, PLAN_SPANS, 100, 64);

    for (int size = 1; size <= 17; size++)
        for (plan.grain = 0; plan.grain <= 16; plan.grain += 8)
            check_ranks(&plan, size);
    hdf5io_units_close(plan.units);
}

/* ---- the mix ------------------------------------------------------------- */

Test(sampler_lanes, seeds_and_epochs_differ_and_repeat)
{
    for (int full = 0; full < 2; full++) {
        plan_t plan = plan_open(plan_uneven, PLAN_SPANS, 100, 64);
        const size_t bytes = (size_t)plan.samples * sizeof(int64_t);
        int64_t *a, *again, *epoch, *seed;

        if (full)
            plan.shuffle = HDF5IO_SHUFFLE_FULL;
        a = plan_order(&plan, 0);
        again = plan_order(&plan, 0);
        epoch = plan_order(&plan, 1);
        plan.seed = 4;
        seed = plan_order(&plan, 0);
        cr_assert_eq(memcmp(a, again, bytes), 0);
        cr_assert_neq(memcmp(a, epoch, bytes), 0);
        cr_assert_neq(memcmp(a, seed, bytes), 0);
        cr_assert_neq(memcmp(epoch, seed, bytes), 0);
        free(seed);
        free(epoch);
        free(again);
        free(a);
        hdf5io_units_close(plan.units);
    }
}

/* Every sample comes in every step equally often: chi-squared of the steps of
 * 64 samples over 4000 epochs. With 64 x 15 degrees of freedom 99.9 % are below
 * 1100. The seed is fixed, and so is the result. */
Test(sampler_lanes, samples_come_at_any_time)
{
    const plan_t plan = plan_even(64, 2, 4, 4);
    hdf5io_sampler_t *sampler = plan_sampler(&plan, 0, 1, 0);
    static double hits[64][16];
    double sum = 0;

    for (int64_t epoch = 0; epoch < 4000; epoch++) {
        int64_t order[64];

        hdf5io_sampler_epoch_set(sampler, epoch);
        hdf5io_sampler_index(sampler, 0, 64, order);
        for (int i = 0; i < 64; i++)
            hits[order[i]][i / 4]++;
    }
    for (int i = 0; i < 64; i++)
        for (int s = 0; s < 16; s++)
            sum += (hits[i][s] - 250) * (hits[i][s] - 250) / 250;
    cr_assert_lt(sum, 1100, "chi-squared %g", sum);
    hdf5io_sampler_close(sampler);
    hdf5io_units_close(plan.units);
}

/* Mean number of pairs of samples of one unit, in batches of [plan]. */
static double pairs_of(const plan_t *plan)
{
    const int64_t steps = plan->samples / plan->batch;
    int64_t *order = plan_order(plan, 0), *unit = plan_units(plan);
    int64_t pairs = 0;

    for (int64_t s = 0; s < steps; s++)
        for (int64_t i = 0; i < plan->batch; i++)
            for (int64_t k = 0; k < i; k++)
                pairs += unit[order[s * plan->batch + i]] ==
                         unit[order[s * plan->batch + k]];
    free(unit);
    free(order);
    return (double)pairs / (double)steps;
}

/* Of 32640 pairs in a batch, 384 are of the same lane, and 1 of 4 of these is
 * of the same unit: 96. With 16 lanes, the default, they are 1920 and 480. If
 * all samples were shuffled, it were 31. Order 1 mixes 64 chunks at a time: 1
 * of 64 pairs, which is 510. */
Test(sampler_lanes, batches_are_mixed)
{
    plan_t plan = plan_even(65536, 64, 256, 64);
    double lanes, few, full;

    lanes = pairs_of(&plan);
    plan.lanes = 16;
    few = pairs_of(&plan);
    plan.shuffle = HDF5IO_SHUFFLE_FULL;
    full = pairs_of(&plan);
    cr_assert_float_eq(full, 31, 3, "%g pairs", full);
    cr_assert_float_eq(lanes, 96, 10, "%g pairs", lanes);
    cr_assert_float_eq(few, 480, 48, "%g pairs", few);
    /* Printed with --verbose; docs/benchmarks/io.md has the numbers. */
    cr_log_info("pairs of one unit in a batch: %g with 64 lanes, %g with 16, "
                "%g in full",
                lanes, few, full);
    hdf5io_units_close(plan.units);
}

/* The orders of released versions must never change: checkpoints within an
 * epoch depend on them. */
Test(sampler_lanes, the_order_keeps_its_numbers)
{
    static const hdf5io_span_t spans[] = {{1000, 64}, {700, 64}};
    static const int64_t lanes[16] = {147,  410,  1531, 1080, 104,  13,
                                      537,  693,  1350, 819,  1164, 328,
                                      1651, 1664, 629,  636};
    static const int64_t full[16] = {1215, 524,  192,  13,  275, 1181,
                                     1147, 1362, 1208, 824, 887, 1387,
                                     634,  646,  344,  1658};
    plan_t plan = plan_open(spans, 2, 16, 8);

    plan.seed = 1;
    for (int k = 0; k < 2; k++) {
        hdf5io_sampler_t *sampler;
        int64_t index[16];

        plan.shuffle = k == 0 ? HDF5IO_SHUFFLE_CHUNK : HDF5IO_SHUFFLE_FULL;
        sampler = plan_sampler(&plan, 0, 1, 2);
        hdf5io_sampler_index(sampler, 160, 16, index);
        cr_assert_arr_eq(index, k == 0 ? lanes : full, sizeof index);
        hdf5io_sampler_close(sampler);
    }
    hdf5io_units_close(plan.units);
}

/* ---- resuming ------------------------------------------------------------ */

Test(sampler_lanes, any_position_can_be_asked_for)
{
    const plan_t plan = plan_open(plan_uneven, PLAN_SPANS, 64, 16);
    int64_t *whole = plan_order(&plan, 3), piece[100];
    hdf5io_sampler_t *sampler = plan_sampler(&plan, 0, 1, 1);

    hdf5io_sampler_epoch_set(sampler, 3);
    for (int64_t at = plan.samples - 100; at >= 0; at -= 77) {
        hdf5io_sampler_index(sampler, at, 100, piece);
        cr_assert_arr_eq(piece, whole + at, sizeof piece);
    }
    hdf5io_sampler_close(sampler);
    free(whole);
    hdf5io_units_close(plan.units);
}

/* Time of this thread, which a busy machine does not change much. */
static double cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Time of computing [count] numbers of a permutation, here and now. */
static double numbers_time(int count)
{
    const double begin = cpu_now();
    bijection_t bijection;
    uint64_t sum = 0;
    rng_t rng;

    rng_open(&rng, 1, RNG_ORDER, 0, 0);
    bijection_open(&bijection, 1000000, &rng);
    for (int i = 0; i < count; i++)
        sum += bijection_at(&bijection, (uint64_t)i);
    cr_assert_gt(sum, 0);
    return cpu_now() - begin;
}

/* 10^9 samples in 20000 shards, none of which is a whole number of units: what
 * a resume computes before it can read. The limit is about 50 ms where a
 * number takes 50 ns; a resume took 10 ms there. */
Test(sampler_lanes, a_resume_in_a_billion_samples_is_quick)
{
    const double limit = numbers_time(1000000);
    hdf5io_span_t *spans = calloc(20000, sizeof *spans);
    hdf5io_sampler_t *sampler;
    int64_t index[256];
    double begin, seconds;
    plan_t plan;

    for (int i = 0; i < 20000; i++)
        spans[i] = (hdf5io_span_t){50000 + i % 7 - 3, 1024};
    begin = cpu_now();
    plan = plan_open(spans, 20000, 256, 64);
    sampler = plan_sampler(&plan, 0, 1, 7);
    hdf5io_sampler_index(sampler, 500000000 - 500000000 % 256, 256, index);
    seconds = cpu_now() - begin;
    cr_assert_lt(seconds, limit, "%g s, %g s allowed", seconds, limit);
    hdf5io_sampler_close(sampler);
    hdf5io_units_close(plan.units);
    free(spans);
}

/* An epoch that an older version began is finished in order 1. */
Test(sampler_lanes, an_old_epoch_keeps_its_order)
{
    for (int full = 0; full < 2; full++) {
        plan_t plan = plan_even(5000, 64, 100, 64);
        hdf5io_sampler_t *sampler, *first;
        int64_t a[100], b[100];

        if (full)
            plan.shuffle = HDF5IO_SHUFFLE_FULL;
        sampler = plan_sampler(&plan, 0, 1, 0);
        cr_assert_eq(hdf5io_sampler_open(
                         &(hdf5io_sampler_config_t){.samples = 5000,
                                                    .batch = 100,
                                                    .size = 1,
                                                    .shuffle = plan.shuffle,
                                                    .seed = plan.seed},
                         &first, NULL),
                     ERR_OK);
        cr_assert_eq(hdf5io_sampler_old_epoch(
                         sampler, 4, &(hdf5io_order_t){.version = 1}, NULL),
                     ERR_OK);
        for (int64_t epoch = 3; epoch <= 5; epoch++) {
            hdf5io_sampler_epoch_set(sampler, epoch);
            hdf5io_sampler_epoch_set(first, epoch);
            hdf5io_sampler_index(sampler, 700, 100, a);
            hdf5io_sampler_index(first, 700, 100, b);
            cr_assert_eq(memcmp(a, b, sizeof a) == 0, epoch == 4);
            cr_assert_eq(hdf5io_sampler_order(sampler, epoch).version,
                         epoch == 4 ? 1 : 2);
        }
        hdf5io_sampler_close(first);
        hdf5io_sampler_close(sampler);
        hdf5io_units_close(plan.units);
    }
}

/* Are the first samples of [epoch] equal in both? */
static bool epoch_same(hdf5io_sampler_t *one, hdf5io_sampler_t *other,
                       int64_t epoch)
{
    int64_t a[100], b[100];

    hdf5io_sampler_epoch_set(one, epoch);
    hdf5io_sampler_epoch_set(other, epoch);
    hdf5io_sampler_index(one, 700, 100, a);
    hdf5io_sampler_index(other, 700, 100, b);
    return memcmp(a, b, sizeof a) == 0;
}

/* An epoch that was begun with other lanes is finished with them. */
Test(sampler_lanes, an_old_epoch_keeps_its_lanes)
{
    plan_t plan = plan_even(5000, 64, 100, 64), few = plan;
    hdf5io_sampler_t *sampler = plan_sampler(&plan, 0, 1, 0), *was;
    const hdf5io_order_t old = {.version = 2, .batch = 100, .lanes = 16};

    few.lanes = 16;
    was = plan_sampler(&few, 0, 1, 0);
    /* The second call replaces what the first one set. */
    for (int64_t begun = 2; begun <= 4; begun += 2) {
        cr_assert_eq(hdf5io_sampler_old_epoch(sampler, begun, &old, NULL),
                     ERR_OK);
        for (int64_t epoch = 1; epoch <= 5; epoch++) {
            cr_assert_eq(epoch_same(sampler, was, epoch), epoch == begun);
            cr_assert_eq(hdf5io_sampler_order(sampler, epoch).lanes,
                         epoch == begun ? 16 : 64);
        }
    }
    cr_assert_eq(hdf5io_sampler_old_epoch(sampler, -1, &old, NULL), ERR_OK);
    cr_assert_not(epoch_same(sampler, was, 4));
    cr_assert_eq(hdf5io_sampler_order(sampler, 4).lanes, 64);
    hdf5io_sampler_close(was);
    hdf5io_sampler_close(sampler);
    hdf5io_units_close(plan.units);
}

Test(sampler_lanes, the_order_says_what_it_depends_on)
{
    plan_t plan = plan_even(5000, 64, 50, 64);
    hdf5io_sampler_t *sampler = plan_sampler(&plan, 0, 1, 0);
    hdf5io_order_t order = hdf5io_sampler_order(sampler, 0);

    cr_assert_eq(order.version, 2);
    cr_assert_eq(order.shuffle, HDF5IO_SHUFFLE_CHUNK);
    cr_assert_eq(order.batch, 50);
    cr_assert_eq(order.lanes, 50, "at most the batch");
    cr_assert_eq(order.units, hdf5io_units_hash(plan.units));
    hdf5io_sampler_close(sampler);
    plan.shuffle = HDF5IO_SHUFFLE_FULL;
    sampler = plan_sampler(&plan, 0, 1, 0);
    order = hdf5io_sampler_order(sampler, 0);
    cr_assert_eq(order.version, 2);
    cr_assert_eq(order.batch, 0, "full does not depend on it");
    hdf5io_sampler_close(sampler);
    hdf5io_units_close(plan.units);
}

Test(sampler_lanes, lanes_out_of_range_are_refused)
{
    plan_t plan = plan_even(5000, 64, 50, 64);
    hdf5io_sampler_config_t config = {.samples = 5000,
                                      .batch = 50,
                                      .size = 1,
                                      .shuffle = HDF5IO_SHUFFLE_CHUNK,
                                      .order = 2,
                                      .units = plan.units};
    hdf5io_sampler_t *sampler = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "data.lanes is 0"), "%s", err.text);
    config.lanes = HDF5IO_LANES_MAX + 1;
    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, &err), ERR_CONFIG);
    cr_assert_null(sampler);
    hdf5io_units_close(plan.units);
}
