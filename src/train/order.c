/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/order.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"

/* Set *alike to whether all ranks have the same units. Collective. */
static err_code_t units_compare(const train_votes_t *votes,
                                const train_data_t *data, bool *alike,
                                err_t *err)
{
    const uint64_t mine = hdf5io_units_hash(data->units);
    uint64_t *all = NULL;
    err_code_t rc = mem_new(uint64_t, (size_t)votes->size, "units", &all, err);

    if (rc == ERR_OK)
        rc = votes->exchange(votes->context, &mine, sizeof mine, all, err);
    *alike = true;
    for (int r = 1; r < votes->size && rc == ERR_OK; r++)
        *alike = *alike && all[r] == all[0];
    mem_free(all);
    return rc;
}

/* Take the units of rank 0. Collective. */
static err_code_t units_take(const train_votes_t *votes,
                             const train_split_t *split, train_data_t *data,
                             err_t *err)
{
    const size_t shards = (size_t)hdf5io_dataset_shards(data->dataset);
    int64_t *rows = NULL;
    err_code_t rc = mem_new(int64_t, shards, "units", &rows, err);

    if (rc != ERR_OK)
        return rc;
    hdf5io_dataset_unit_rows(data->dataset, rows);
    rc = train_tell(votes, 0, rows, shards * sizeof *rows, err);
    if (rc == ERR_OK)
        rc = train_data_order(split, rows, data, err);
    mem_free(rows);
    return rc;
}

err_code_t train_order_agree(const train_votes_t *votes,
                             const train_split_t *split, train_data_t *data,
                             err_t *err)
{
    bool alike = true, speaker;
    err_code_t rc;

    if (votes->size == 1 || data->units == NULL)
        return ERR_OK;
    rc = units_compare(votes, data, &alike, err);
    if (rc != ERR_OK || alike)
        return rc;
    if (votes->rank == 0)
        log_warn("train",
                 "data.train has other chunks on some ranks than on rank 0, "
                 "whose chunks give the order of samples: ranks with others "
                 "read a chunk several times");
    rc = units_take(votes, split, data, err);
    return train_vote(votes, rc, &speaker, err);
}

/* Refuse a setting that would change the order within an epoch. */
static err_code_t order_refuse(const train_resumed_t *resumed, const char *key,
                               const char *was, const char *now, err_t *err)
{
    return err_set(err, ERR_CONFIG,
                   "the checkpoint is at sample %lld of an epoch in the order "
                   "of %s %s, but it is %s now: resume with %s until the epoch "
                   "is over, or start with --fresh",
                   (long long)resumed->progress->samples, key, was, now, was);
}

static err_code_t number_check(const train_resumed_t *resumed, const char *key,
                               int64_t was, int64_t now, err_t *err)
{
    char there[32], here[32];

    if (was == now)
        return ERR_OK;
    snprintf(there, sizeof there, "%lld", (long long)was);
    snprintf(here, sizeof here, "%lld", (long long)now);
    return order_refuse(resumed, key, there, here, err);
}

/* The chunks of the data differ. If the number of samples does, too, this was
 * said before (train_resumed_data). */
static err_code_t units_check(const train_resumed_t *resumed, err_t *err)
{
    const hdf5io_progress_t *was = resumed->progress;
    const char *text = "data.train is divided into other chunks or shards than "
                       "when the checkpoint was written: %s";

    if (was->data_samples != 0 && was->data_samples != resumed->samples)
        return ERR_OK;
    if (resumed->config->train.reproducible)
        return err_set(err, ERR_DATA, text,
                       "train.reproducible cannot hold over that; restore the "
                       "data or start with --fresh");
    if (resumed->logs)
        log_warn("train", text,
                 "the order of samples changes from here on, and this epoch "
                 "may see some twice or not at all");
    return ERR_OK;
}

/* Log that the next epochs have another number of lanes than this one. */
static void lanes_say(const train_resumed_t *resumed, int64_t was, int64_t now)
{
    if (was != now && resumed->logs)
        log_info("train",
                 "this epoch was begun with data.lanes %lld and is finished "
                 "with %lld; the next epochs have %lld, the default",
                 (long long)was, (long long)was, (long long)now);
}

err_code_t train_order_check(const train_resumed_t *resumed,
                             const hdf5io_order_t *now, err_t *err)
{
    const int64_t done = resumed->progress->samples;
    const hdf5io_order_t *was = &resumed->progress->order;
    err_code_t rc;

    if (done == 0 || done >= resumed->samples || was->version == 0)
        return ERR_OK;
    if (was->version > HDF5IO_ORDER_NEWEST)
        return err_set(err, ERR_CONFIG,
                       "the checkpoint is at sample %lld of an epoch in order "
                       "%d, but this cddp knows only orders 1 to %d: resume "
                       "with the version of cddp that wrote it, or start with "
                       "--fresh",
                       (long long)done, was->version, HDF5IO_ORDER_NEWEST);
    if (was->shuffle != now->shuffle)
        return order_refuse(resumed, "data.shuffle",
                            train_config_shuffle((int)was->shuffle),
                            train_config_shuffle((int)now->shuffle), err);
    if (was->version == HDF5IO_ORDER_FIRST || was->lanes == 0)
        return ERR_OK;
    rc =
        now->version == HDF5IO_ORDER_FIRST
            ? ERR_OK /* data.lanes is 0 */
            : number_check(resumed, "train.batch", was->batch, now->batch, err);
    if (rc == ERR_OK && resumed->config->data.lanes_chosen)
        rc = number_check(resumed, "data.lanes", was->lanes, now->lanes, err);
    else if (rc == ERR_OK)
        lanes_say(resumed, was->lanes, now->lanes);
    return rc == ERR_OK && was->units != now->units ? units_check(resumed, err)
                                                    : rc;
}

int64_t train_order_old(const hdf5io_progress_t *progress, int64_t steps)
{
    const hdf5io_order_t *order = &progress->order;
    const bool within =
        progress->epoch_step > 0 && progress->epoch_step < steps;

    return within && (order->version <= HDF5IO_ORDER_FIRST || order->lanes > 0)
               ? progress->epoch
               : -1;
}
