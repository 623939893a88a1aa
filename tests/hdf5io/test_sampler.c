/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/sampler.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const hdf5io_shuffle_t shuffles[] = {
    HDF5IO_SHUFFLE_NONE, HDF5IO_SHUFFLE_CHUNK, HDF5IO_SHUFFLE_FULL};

static hdf5io_sampler_t *open_sampler(int64_t samples, int64_t batch, int rank,
                                      int size, hdf5io_shuffle_t shuffle,
                                      uint64_t seed)
{
    hdf5io_sampler_config_t config = {.samples = samples,
                                      .batch = batch,
                                      .rank = rank,
                                      .size = size,
                                      .shuffle = shuffle,
                                      .seed = seed};
    hdf5io_sampler_t *sampler = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, &err), ERR_OK, "%s",
                 err.text);
    return sampler;
}

/* The complete order of an epoch for a single rank. */
static int64_t *order_of(int64_t samples, hdf5io_shuffle_t shuffle,
                         uint64_t seed, int64_t epoch)
{
    hdf5io_sampler_t *sampler = open_sampler(samples, 1, 0, 1, shuffle, seed);
    int64_t *order = calloc((size_t)samples, sizeof *order);

    hdf5io_sampler_epoch_set(sampler, epoch);
    hdf5io_sampler_index(sampler, 0, samples, order);
    hdf5io_sampler_close(sampler);
    return order;
}

static bool is_permutation(const int64_t *order, int64_t samples)
{
    char *seen = calloc((size_t)samples, 1);
    bool good = true;

    for (int64_t i = 0; i < samples; i++) {
        if (order[i] < 0 || order[i] >= samples || seen[order[i]]++)
            good = false;
    }
    free(seen);
    return good;
}

/* Sizes around multiples of chunks (256) and windows (16384), and others. */
static const int64_t sizes[] = {1,     2,     255,   256,   257,  1000,
                                16383, 16384, 16385, 33000, 70001};
#define SIZES (sizeof sizes / sizeof sizes[0])

Test(sampler, each_epoch_is_a_permutation)
{
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < SIZES; i++)
            for (int64_t epoch = 0; epoch < 5; epoch++) {
                int64_t *order = order_of(sizes[i], shuffles[s], 7, epoch);

                cr_assert(is_permutation(order, sizes[i]),
                          "shuffle %zu, %lld samples, epoch %lld", s,
                          (long long)sizes[i], (long long)epoch);
                free(order);
            }
}

/* Divide an epoch among [size] ranks and merge it again. */
static void check_ranks(hdf5io_shuffle_t shuffle, int64_t samples,
                        int64_t batch, int size)
{
    int64_t *whole = order_of(samples, shuffle, 3, 2);
    int64_t *dealt = calloc((size_t)samples, sizeof *dealt);
    int64_t at, steps = (samples + batch - 1) / batch;

    for (int rank = 0; rank < size; rank++) {
        hdf5io_sampler_t *sampler =
            open_sampler(samples, batch, rank, size, shuffle, 3);

        cr_assert_eq(hdf5io_sampler_steps(sampler), steps);
        hdf5io_sampler_epoch_set(sampler, 2);
        for (int64_t step = 0; step < steps; step++) {
            hdf5io_share_t share = hdf5io_sampler_share(sampler, step);

            cr_assert_leq(share.count, hdf5io_sampler_share_max(sampler));
            hdf5io_sampler_index(sampler, share.first, share.count,
                                 dealt + share.first);
            at = step * batch;
            for (int r = 0; r < size; r++) {
                hdf5io_share_t theirs =
                    hdf5io_sampler_share_of(sampler, step, r);

                cr_assert_eq(theirs.first, at, "shares are contiguous");
                cr_assert_eq(theirs.global, share.global);
                at += theirs.count;
            }
            cr_assert_eq(at, step * batch + share.global);
        }
        hdf5io_sampler_close(sampler);
    }
    cr_assert_arr_eq(dealt, whole, (size_t)samples * sizeof *whole);
    free(dealt);
    free(whole);
}

Test(sampler, any_number_of_ranks_takes_the_same_order_once)
{
    for (size_t s = 0; s < 3; s++)
        for (int size = 1; size <= 17; size++) {
            check_ranks(shuffles[s], 1003, 100, size);
            check_ranks(shuffles[s], 20, 7, size);
        }
    check_ranks(HDF5IO_SHUFFLE_CHUNK, 40001, 1000, 3);
}

Test(sampler, seeds_and_epochs_differ_and_repeat)
{
    for (size_t s = 1; s < 3; s++) {
        size_t bytes = 20000 * sizeof(int64_t);
        int64_t *a = order_of(20000, shuffles[s], 1, 0);
        int64_t *again = order_of(20000, shuffles[s], 1, 0);
        int64_t *epoch = order_of(20000, shuffles[s], 1, 1);
        int64_t *seed = order_of(20000, shuffles[s], 2, 0);

        cr_assert_eq(memcmp(a, again, bytes), 0);
        cr_assert_neq(memcmp(a, epoch, bytes), 0);
        cr_assert_neq(memcmp(a, seed, bytes), 0);
        cr_assert_neq(memcmp(epoch, seed, bytes), 0);
        free(seed);
        free(epoch);
        free(again);
        free(a);
    }
}

/* A resume needs no history: any position may be asked for, in any order. */
Test(sampler, any_position_can_be_asked_for)
{
    for (size_t s = 0; s < 3; s++) {
        int64_t *whole = order_of(40001, shuffles[s], 5, 3);
        hdf5io_sampler_t *sampler =
            open_sampler(40001, 64, 0, 1, shuffles[s], 5);
        int64_t piece[100];

        hdf5io_sampler_epoch_set(sampler, 1);
        hdf5io_sampler_epoch_set(sampler, 3);
        for (int64_t at = 39900; at >= 0; at -= 777) {
            hdf5io_sampler_index(sampler, at, 100, piece);
            cr_assert_arr_eq(piece, whole + at, sizeof piece);
        }
        hdf5io_sampler_close(sampler);
        free(whole);
    }
}

/* Chi-squared test of the first position of 12 samples over 6000 epochs: with
 * 11 degrees of freedom 99.9 % are below 31.3. The seed is fixed, and so is the
 * result. */
Test(sampler, full_shuffle_is_uniform)
{
    hdf5io_sampler_t *sampler =
        open_sampler(12, 12, 0, 1, HDF5IO_SHUFFLE_FULL, 11);
    double expected = 6000.0 / 12.0;

    for (int64_t position = 0; position < 12; position += 11) {
        int64_t hits[12] = {0};
        double sum = 0;

        for (int64_t epoch = 0; epoch < 6000; epoch++) {
            int64_t index;

            hdf5io_sampler_epoch_set(sampler, epoch);
            hdf5io_sampler_index(sampler, position, 1, &index);
            hits[index]++;
        }
        for (int i = 0; i < 12; i++)
            sum += ((double)hits[i] - expected) * ((double)hits[i] - expected) /
                   expected;
        cr_assert_lt(sum, 31.3);
    }
    hdf5io_sampler_close(sampler);
}

/* Within a window of 64 chunks, a chunk shuffle reads only these chunks. */
Test(sampler, chunk_shuffle_stays_within_its_window)
{
    int64_t *order = order_of(65536, HDF5IO_SHUFFLE_CHUNK, 1, 0);

    for (int64_t window = 0; window < 4; window++) {
        char used[256] = {0};
        int chunks = 0;

        for (int64_t i = 0; i < 16384; i++)
            used[order[window * 16384 + i] / 256] = 1;
        for (int i = 0; i < 256; i++)
            chunks += used[i];
        cr_assert_eq(chunks, 64);
    }
    free(order);
}

Test(sampler, a_step_beyond_the_epoch_is_empty)
{
    hdf5io_sampler_t *sampler =
        open_sampler(10, 4, 0, 1, HDF5IO_SHUFFLE_NONE, 1);

    cr_assert_eq(hdf5io_sampler_steps(sampler), 3);
    cr_assert_eq(hdf5io_sampler_share(sampler, 2).global, 2);
    cr_assert_eq(hdf5io_sampler_share(sampler, 3).global, 0);
    cr_assert_eq(hdf5io_sampler_share(sampler, -1).count, 0);
    hdf5io_sampler_close(sampler);
}

static void check_refused(hdf5io_sampler_config_t config, err_code_t code,
                          const char *text)
{
    hdf5io_sampler_t *sampler = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, &err), code);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    cr_assert_null(sampler);
}

Test(sampler, nonsense_is_refused)
{
    hdf5io_sampler_config_t good = {.samples = 10, .batch = 4, .size = 2};
    hdf5io_sampler_config_t bad = good;

    bad.samples = 0;
    check_refused(bad, ERR_DATA, "no samples");
    bad = good;
    bad.batch = 0;
    check_refused(bad, ERR_CONFIG, "train.batch is 0");
    bad = good;
    bad.rank = 2;
    check_refused(bad, ERR_CONFIG, "rank 2 of 2");
    bad = good;
    bad.samples = (int64_t)1 << 32;
    bad.shuffle = HDF5IO_SHUFFLE_FULL;
    check_refused(bad, ERR_CONFIG, "use shuffle: chunk");
}

/* Ranks get complete runs of [grain] samples, all of them, in order. */
static void check_grain(int64_t samples, int64_t batch, int64_t grain, int size)
{
    int64_t next = 0;

    for (int rank = 0; rank < size; rank++) {
        hdf5io_sampler_config_t config = {.samples = samples,
                                          .batch = batch,
                                          .rank = rank,
                                          .size = size,
                                          .grain = grain};
        hdf5io_sampler_t *sampler = NULL;
        err_t err = ERR_INIT;
        hdf5io_share_t share;

        cr_assert_eq(hdf5io_sampler_open(&config, &sampler, &err), ERR_OK);
        share = hdf5io_sampler_share(sampler, 0);
        if (share.count > 0) {
            cr_assert_eq(share.first, next);
            cr_assert_eq(share.first % grain, 0);
            cr_assert_leq(share.count, hdf5io_sampler_share_max(sampler));
            next += share.count;
        }
        cr_assert(next == share.global || next % grain == 0);
        if (rank == size - 1)
            cr_assert_eq(next, share.global);
        hdf5io_sampler_close(sampler);
    }
}

Test(sampler, grains_stay_together)
{
    for (int size = 1; size <= 9; size++)
        for (int64_t grain = 1; grain <= 20; grain++) {
            check_grain(101, 24, grain, size);
            check_grain(10, 24, grain, size);
        }
}
