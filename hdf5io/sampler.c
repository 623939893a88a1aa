/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The shares of ranks, and the choice of the kind that orders the samples
 * (sampler_priv.h). */
#include "hdf5io/sampler.h"

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/sampler_priv.h"

/* A kind and its state; kind NULL: file order. */
typedef struct sampler_way {
    const sampler_kind_t *kind;
    void *state;
} sampler_way_t;

struct hdf5io_sampler {
    hdf5io_sampler_config_t config;
    int64_t epoch; /* epoch whose order is prepared, -1: none yet */
    sampler_way_t usual;
    int64_t old_epoch;           /* the epoch in another order, -1: none */
    hdf5io_sampler_config_t was; /* its order */
    sampler_way_t old;
};

static bool sampler_has_lanes(const hdf5io_sampler_config_t *config)
{
    return config->order > HDF5IO_ORDER_FIRST &&
           config->shuffle == HDF5IO_SHUFFLE_CHUNK;
}

static err_code_t sampler_check(const hdf5io_sampler_config_t *config,
                                err_t *err)
{
    if (config->samples < 1)
        return err_set(err, ERR_DATA, "the dataset has no samples");
    if (config->batch < 1)
        return err_set(err, ERR_CONFIG,
                       "train.batch is %lld, expected at least 1",
                       (long long)config->batch);
    if (config->size < 1 || config->rank < 0 || config->rank >= config->size)
        return err_set(err, ERR_CONFIG, "rank %d of %d is out of range",
                       config->rank, config->size);
    if (sampler_has_lanes(config) &&
        (config->lanes < 1 || config->lanes > HDF5IO_LANES_MAX))
        return err_set(err, ERR_CONFIG, "data.lanes is %lld, expected 1 to %d",
                       (long long)config->lanes, HDF5IO_LANES_MAX);
    check(!sampler_has_lanes(config) ||
              (config->units != NULL &&
               hdf5io_units_samples(config->units) == config->samples),
          "the units are not those of %lld samples",
          (long long)config->samples);
    return ERR_OK;
}

/* The kind of order [version]. */
static const sampler_kind_t *sampler_kind(hdf5io_shuffle_t shuffle, int version)
{
    if (shuffle == HDF5IO_SHUFFLE_NONE)
        return NULL;
    if (version <= HDF5IO_ORDER_FIRST)
        return &sampler_tables;
    return shuffle == HDF5IO_SHUFFLE_FULL ? &sampler_whole : &sampler_lanes;
}

static err_code_t way_open(const hdf5io_sampler_config_t *config,
                           sampler_way_t *out, err_t *err)
{
    out->kind = sampler_kind(config->shuffle, config->order);
    return out->kind == NULL ? ERR_OK
                             : out->kind->open(config, &out->state, err);
}

static void way_close(sampler_way_t *way)
{
    if (way->kind != NULL)
        way->kind->close(way->state);
    *way = (sampler_way_t){0};
}

err_code_t hdf5io_sampler_open(const hdf5io_sampler_config_t *config,
                               hdf5io_sampler_t **out, err_t *err)
{
    hdf5io_sampler_t *sampler = NULL;
    err_code_t rc;

    rc = sampler_check(config, err);
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(hdf5io_sampler_t, 1, "the sampler", &sampler, err);
    if (rc != ERR_OK)
        return rc;
    sampler->config = *config;
    sampler->epoch = -1;
    sampler->old_epoch = -1;
    rc = way_open(config, &sampler->usual, err);
    if (rc != ERR_OK) {
        hdf5io_sampler_close(sampler);
        return rc;
    }
    *out = sampler;
    return ERR_OK;
}

void hdf5io_sampler_close(hdf5io_sampler_t *sampler)
{
    if (sampler == NULL)
        return;
    way_close(&sampler->old);
    way_close(&sampler->usual);
    mem_free(sampler);
}

/* The configuration of an epoch that was begun in [order]. */
static hdf5io_sampler_config_t config_of(const hdf5io_sampler_t *sampler,
                                         const hdf5io_order_t *order)
{
    hdf5io_sampler_config_t config = sampler->config;

    config.order = order->version > HDF5IO_ORDER_FIRST ? HDF5IO_ORDER_NEWEST
                                                       : HDF5IO_ORDER_FIRST;
    if (sampler_has_lanes(&config))
        config.lanes = order->lanes;
    return config;
}

err_code_t hdf5io_sampler_old_epoch(hdf5io_sampler_t *sampler, int64_t epoch,
                                    const hdf5io_order_t *order, err_t *err)
{
    const hdf5io_sampler_config_t *config = &sampler->config;
    sampler_way_t old = {0};
    err_code_t rc = ERR_OK;

    if (config->shuffle == HDF5IO_SHUFFLE_NONE ||
        config->order <= HDF5IO_ORDER_FIRST)
        return ERR_OK;
    if (epoch >= 0) {
        const hdf5io_sampler_config_t was = config_of(sampler, order);

        rc = sampler_check(&was, err);
        if (rc == ERR_OK)
            rc = way_open(&was, &old, err);
        if (rc != ERR_OK)
            return rc;
        sampler->was = was;
    }
    way_close(&sampler->old);
    sampler->old = old;
    sampler->old_epoch = epoch;
    sampler->epoch = -1;
    return ERR_OK;
}

hdf5io_order_t hdf5io_sampler_order(const hdf5io_sampler_t *sampler,
                                    int64_t epoch)
{
    const hdf5io_sampler_config_t *config =
        epoch >= 0 && epoch == sampler->old_epoch ? &sampler->was
                                                  : &sampler->config;
    hdf5io_order_t order = {.version = HDF5IO_ORDER_FIRST,
                            .shuffle = config->shuffle};

    if (config->order <= HDF5IO_ORDER_FIRST)
        return order;
    order.version = config->order;
    if (sampler_has_lanes(config)) {
        order.batch = config->batch;
        order.lanes =
            config->lanes < config->batch ? config->lanes : config->batch;
        order.units = hdf5io_units_hash(config->units);
    }
    return order;
}

int64_t hdf5io_sampler_units_used(const hdf5io_sampler_t *sampler)
{
    const int64_t size = sampler->config.size;
    int64_t lanes = hdf5io_sampler_order(sampler, -1).lanes, own;

    /* The ends of a rank's part may be in lanes that it shares. */
    own = lanes % size == 0 ? lanes / size : lanes / size + 2;
    return (own < lanes ? own : lanes) * SAMPLER_UNITS;
}

/* The way in which the samples of [epoch] are ordered. */
static const sampler_way_t *way_of(const hdf5io_sampler_t *sampler,
                                   int64_t epoch)
{
    return epoch == sampler->old_epoch ? &sampler->old : &sampler->usual;
}

int64_t hdf5io_sampler_steps(const hdf5io_sampler_t *sampler)
{
    const hdf5io_sampler_config_t *config = &sampler->config;

    return (config->samples - 1) / config->batch + 1;
}

void hdf5io_sampler_epoch_set(hdf5io_sampler_t *sampler, int64_t epoch)
{
    const sampler_way_t *way = way_of(sampler, epoch);

    if (sampler->epoch == epoch)
        return;
    sampler->epoch = epoch;
    if (way->kind != NULL)
        way->kind->epoch_set(way->state, epoch);
}

hdf5io_share_t hdf5io_sampler_share_of(const hdf5io_sampler_t *sampler,
                                       int64_t step, int rank)
{
    const hdf5io_sampler_config_t *config = &sampler->config;
    int64_t grain = config->grain > 1 ? config->grain : 1;
    hdf5io_share_t share = {0};
    int64_t begin, end, grains;

    if (step < 0 || step >= hdf5io_sampler_steps(sampler))
        return share;
    share.global = config->samples - step * config->batch;
    if (share.global > config->batch)
        share.global = config->batch;
    grains = (share.global - 1) / grain + 1;
    begin = grains * rank / config->size * grain;
    end = grains * (rank + 1) / config->size * grain;
    if (end > share.global)
        end = share.global;
    if (begin > end)
        begin = end;
    share.first = step * config->batch + begin;
    share.count = end - begin;
    check(share.count >= 0 && share.first + share.count <= config->samples,
          "rank %d of %d gets %lld samples from %lld on of %lld in step %lld",
          rank, config->size, (long long)share.count, (long long)share.first,
          (long long)config->samples, (long long)step);
    return share;
}

hdf5io_share_t hdf5io_sampler_share(const hdf5io_sampler_t *sampler,
                                    int64_t step)
{
    return hdf5io_sampler_share_of(sampler, step, sampler->config.rank);
}

int64_t hdf5io_sampler_share_max(const hdf5io_sampler_t *sampler)
{
    const hdf5io_sampler_config_t *config = &sampler->config;
    int64_t most =
        config->samples < config->batch ? config->samples : config->batch;
    int64_t grain = config->grain > 1 ? config->grain : 1;

    return (((most - 1) / grain) / config->size + 1) * grain;
}

void hdf5io_sampler_index(hdf5io_sampler_t *sampler, int64_t first,
                          int64_t count, int64_t *index)
{
    const int64_t samples = sampler->config.samples;
    const sampler_way_t *way;

    check(first >= 0 && count >= 0 && first + count <= samples,
          "positions %lld to %lld of %lld", (long long)first,
          (long long)(first + count), (long long)samples);
    if (sampler->epoch < 0)
        hdf5io_sampler_epoch_set(sampler, 0);
    way = way_of(sampler, sampler->epoch);
    if (way->kind != NULL)
        way->kind->index(way->state, first, count, index);
    for (int64_t i = 0; i < count; i++) {
        if (way->kind == NULL)
            index[i] = first + i;
        check(index[i] >= 0 && index[i] < samples,
              "position %lld is sample %lld of %lld", (long long)(first + i),
              (long long)index[i], (long long)samples);
    }
}
