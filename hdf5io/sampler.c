/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The shares of ranks, and the choice of the kind that orders the samples
 * (sampler_priv.h). File order needs no kind. */
#include "hdf5io/sampler.h"

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/sampler_priv.h"

struct hdf5io_sampler {
    hdf5io_sampler_config_t config;
    int64_t epoch;              /* epoch that is set, -1: none yet */
    const sampler_kind_t *kind; /* NULL: file order */
    void *state;                /* of the kind */
};

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
    return ERR_OK;
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
    if (config->shuffle != HDF5IO_SHUFFLE_NONE)
        sampler->kind = &sampler_tables;
    if (sampler->kind != NULL)
        rc = sampler->kind->open(config, &sampler->state, err);
    if (rc != ERR_OK) {
        hdf5io_sampler_close(sampler);
        return rc;
    }
    hdf5io_sampler_epoch_set(sampler, 0);
    *out = sampler;
    return ERR_OK;
}

void hdf5io_sampler_close(hdf5io_sampler_t *sampler)
{
    if (sampler == NULL)
        return;
    if (sampler->kind != NULL)
        sampler->kind->close(sampler->state);
    mem_free(sampler);
}

int64_t hdf5io_sampler_steps(const hdf5io_sampler_t *sampler)
{
    const hdf5io_sampler_config_t *config = &sampler->config;

    return (config->samples - 1) / config->batch + 1;
}

void hdf5io_sampler_epoch_set(hdf5io_sampler_t *sampler, int64_t epoch)
{
    if (sampler->epoch == epoch)
        return;
    sampler->epoch = epoch;
    if (sampler->kind != NULL)
        sampler->kind->epoch_set(sampler->state, epoch);
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

    check(first >= 0 && count >= 0 && first + count <= samples,
          "positions %lld to %lld of %lld", (long long)first,
          (long long)(first + count), (long long)samples);
    if (sampler->kind != NULL)
        sampler->kind->index(sampler->state, first, count, index);
    for (int64_t i = 0; i < count; i++) {
        if (sampler->kind == NULL)
            index[i] = first + i;
        check(index[i] >= 0 && index[i] < samples,
              "position %lld is sample %lld of %lld", (long long)(first + i),
              (long long)index[i], (long long)samples);
    }
}
