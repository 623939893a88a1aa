/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/order.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../hdf5io/open.h"
#include "lib/ranks.h"

static const hdf5io_order_t lanes = {2, HDF5IO_SHUFFLE_CHUNK, 256, 64, 7};
static const hdf5io_order_t full = {2, HDF5IO_SHUFFLE_FULL, 0, 0, 0};
static bool lanes_chosen = true; /* the run file has data.lanes */
static const hdf5io_order_t old = {1, HDF5IO_SHUFFLE_CHUNK, 0, 0, 0};

/* Resume a run of 5000 samples, whose checkpoint is at sample [done] of an
 * epoch in the order [was]. Returns the message. */
static err_t check_at(int64_t done, const hdf5io_order_t *was,
                      const hdf5io_order_t *now, bool reproducible)
{
    static train_config_t config;
    const hdf5io_progress_t progress = {
        .samples = done, .order = *was, .data_samples = 5000};
    const train_resumed_t resumed = {
        .config = &config, .progress = &progress, .samples = 5000};
    err_t err = ERR_INIT;

    config.train.reproducible = reproducible;
    config.data.lanes_chosen = lanes_chosen;
    cr_assert_eq(train_order_check(&resumed, now, &err), err.code);
    return err;
}

static void check_refused(const hdf5io_order_t *was, const hdf5io_order_t *now,
                          const char *text)
{
    const err_t err = check_at(1024, was, now, false);

    cr_assert_eq(err.code, ERR_CONFIG, "%s", text);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    /* From the next epoch on everything is possible. */
    cr_assert_eq(check_at(0, was, now, true).code, ERR_OK);
    cr_assert_eq(check_at(5000, was, now, true).code, ERR_OK);
}

Test(order, another_one_is_refused_within_an_epoch)
{
    hdf5io_order_t now = lanes, later = lanes;

    now.batch = 128;
    check_refused(&lanes, &now,
                  "at sample 1024 of an epoch in the order of train.batch 256, "
                  "but it is 128 now: resume with 256 until the epoch is over, "
                  "or start with --fresh");
    now = lanes;
    now.lanes = 32;
    check_refused(&lanes, &now, "data.lanes 64, but it is 32 now");
    check_refused(&lanes, &old, "data.lanes 64, but it is 0 now");
    check_refused(&lanes, &full, "data.shuffle chunk, but it is full now");
    check_refused(&old, &full, "data.shuffle chunk, but it is full now");
    later.version = 3;
    check_refused(&later, &lanes,
                  "in order 3, but this cddp knows only orders");
}

/* The number of lanes is a default, and this default was another number when
 * the checkpoint was written. */
Test(order, a_new_default_changes_no_epoch)
{
    hdf5io_order_t was = lanes, now = lanes;

    lanes_chosen = false;
    was.lanes = 16;
    cr_assert_eq(check_at(1024, &was, &lanes, true).code, ERR_OK);
    now.batch = 128;
    check_refused(&was, &now, "train.batch 256, but it is 128 now");
}

Test(order, the_same_one_goes_on)
{
    static const hdf5io_order_t unknown = {0};

    cr_assert_eq(check_at(1024, &lanes, &lanes, true).code, ERR_OK);
    cr_assert_eq(check_at(1000, &full, &full, true).code, ERR_OK);
    /* These finish their epoch in order 1. */
    cr_assert_eq(check_at(1024, &old, &lanes, true).code, ERR_OK);
    cr_assert_eq(check_at(1024, &unknown, &lanes, true).code, ERR_OK);
}

Test(order, other_chunks_are_other_data)
{
    hdf5io_order_t now = lanes;
    err_t err;

    now.units = 8;
    cr_assert_eq(check_at(1024, &lanes, &now, false).code, ERR_OK);
    err = check_at(1024, &lanes, &now, true);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_not_null(strstr(err.text, "other chunks"), "%s", err.text);
}

Test(order, only_an_epoch_in_progress_is_an_old_one)
{
    hdf5io_progress_t progress = {.epoch = 3, .epoch_step = 5};

    cr_assert_eq(train_order_old(&progress, 20), 3);
    progress.order = old;
    cr_assert_eq(train_order_old(&progress, 20), 3);
    cr_assert_eq(train_order_old(&progress, 5), -1, "it is over");
    progress.epoch_step = 0;
    cr_assert_eq(train_order_old(&progress, 20), -1, "it has not begun");
    progress.epoch_step = 5;
    progress.order = lanes;
    cr_assert_eq(train_order_old(&progress, 20), 3);
    progress.order = full;
    cr_assert_eq(train_order_old(&progress, 20), -1);
}

/* ---- ranks whose copies of the data differ --------------------------------
 */

#define RANKS 3
#define ROWS 500
#define BATCH 16

typedef struct copies {
    train_config_t config;
    char *directory[RANKS];
    uint64_t own[RANKS]; /* hashes of the units of each rank's files */
    int64_t order[RANKS][BATCH];
} copies_t;

static int agree_main(const comm_oob_t *oob, void *argument)
{
    copies_t *copies = argument;
    const comm_config_t how = {.backend = "threads", .timeout = 20};
    const train_split_t split = {
        .config = &copies->config, .rank = oob->rank, .size = oob->size};
    train_data_t data = {0};
    comm_group_t *group = NULL;
    train_votes_t votes;
    open_setup_t setup;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&how, oob, &group, &err), err);
    votes = train_votes_of_group(group);
    open_setup(&setup, copies->directory[oob->rank], "*.h5");
    RANKS_OK(hdf5io_dataset_open(&setup.config, &data.dataset, &err), err);
    RANKS_OK(train_data_order(&split, NULL, &data, &err), err);
    copies->own[oob->rank] = hdf5io_units_hash(data.units);
    RANKS_OK(train_order_agree(&votes, &split, &data, &err), err);
    hdf5io_sampler_index(data.sampler, 0, BATCH, copies->order[oob->rank]);
    train_data_close(&data);
    open_setup_free(&setup);
    comm_group_close(group);
    return 0;
}

/* The order depends on the chunks, so ranks whose copies have others must take
 * those of rank 0. */
Test(order, copies_with_other_chunks_are_read_in_one_order)
{
    copies_t copies = {
        .config = {.data = {.shuffle = HDF5IO_SHUFFLE_CHUNK, .lanes = 4},
                   .train = {.batch = BATCH}}};

    for (int r = 0; r < RANKS; r++) {
        copies.directory[r] = files_make();
        open_write(copies.directory[r], "a.h5",
                   r == 1 ? FILES_GZIP : FILES_CONTIGUOUS, 0, ROWS);
        open_write(copies.directory[r], "b.h5",
                   r == 2 ? FILES_CHUNKED : FILES_CONTIGUOUS, ROWS, ROWS);
    }
    cr_assert_eq(ranks_threads(RANKS, agree_main, &copies), 0);
    cr_assert_neq(copies.own[0], copies.own[1]);
    cr_assert_neq(copies.own[0], copies.own[2]);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_arr_eq(copies.order[r], copies.order[0],
                         sizeof copies.order[0], "rank %d", r);
        files_remove(copies.directory[r]);
    }
}
