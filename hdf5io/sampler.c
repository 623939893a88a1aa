/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The order of an epoch. `full` keeps a permutation of all samples, 4 bytes
 * each, made by Fisher-Yates with the counter-based generator; every
 * permutation is equally likely. `chunk` keeps only a permutation of the
 * chunks, 4 bytes per 256 samples, and one window of shuffled samples at a
 * time. So it needs little memory, and files are read in larger pieces.
 *
 * The last chunk of the dataset may be short. It can be anywhere in the order,
 * so the window that holds it is short as well, and later windows start earlier
 * by the missing `gap` samples, from position `gap_at` on.
 */
#include "hdf5io/sampler.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"

#define SAMPLER_CHUNK 256
#define SAMPLER_WINDOW 64 /* chunks per window */
#define SAMPLER_WINDOW_SAMPLES ((int64_t)SAMPLER_CHUNK * SAMPLER_WINDOW)

struct hdf5io_sampler {
    hdf5io_sampler_config_t config;
    int64_t epoch;     /* epoch of the order below, -1: none yet */
    uint32_t *order;   /* full: sample numbers; chunk: chunk numbers */
    int64_t items;     /* length of [order] */
    int64_t gap_at;    /* chunk: first position after the short window */
    int64_t gap;       /* chunk: samples missing in the last chunk */
    int64_t *window;   /* chunk: the shuffled samples of one window */
    int64_t window_is; /* chunk: number of that window, -1: none */
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
    if (config->shuffle == HDF5IO_SHUFFLE_FULL && config->samples > UINT32_MAX)
        return err_set(err, ERR_CONFIG,
                       "data.shuffle: full goes up to %lld samples, the "
                       "dataset has %lld: use shuffle: chunk",
                       (long long)UINT32_MAX, (long long)config->samples);
    return ERR_OK;
}

static int64_t sampler_items(const hdf5io_sampler_config_t *config)
{
    switch (config->shuffle) {
    case HDF5IO_SHUFFLE_NONE:
        return 0;
    case HDF5IO_SHUFFLE_CHUNK:
        return (config->samples + SAMPLER_CHUNK - 1) / SAMPLER_CHUNK;
    case HDF5IO_SHUFFLE_FULL:
        return config->samples;
    }
    return 0;
}

err_code_t hdf5io_sampler_open(const hdf5io_sampler_config_t *config,
                               hdf5io_sampler_t **out, err_t *err)
{
    const size_t samples = (size_t)SAMPLER_WINDOW_SAMPLES;
    hdf5io_sampler_t *sampler = NULL;
    err_code_t rc;

    rc = sampler_check(config, err);
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(hdf5io_sampler_t, 1, "the sampler", &sampler, err);
    if (rc != ERR_OK)
        return rc;
    sampler->config = *config;
    sampler->items = sampler_items(config);
    sampler->epoch = -1;
    rc = mem_new(uint32_t, (size_t)sampler->items, "the order of an epoch",
                 &sampler->order, err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, samples, "the shuffle window", &sampler->window,
                     err);
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
    mem_free(sampler->window);
    mem_free(sampler->order);
    mem_free(sampler);
}

int64_t hdf5io_sampler_steps(const hdf5io_sampler_t *sampler)
{
    const hdf5io_sampler_config_t *config = &sampler->config;

    return (config->samples - 1) / config->batch + 1;
}

/* Find the position of the short chunk and set gap and gap_at. */
static void sampler_gap_find(hdf5io_sampler_t *sampler)
{
    int64_t last = sampler->items - 1, at = 0;

    while (sampler->order[at] != last)
        at++;
    sampler->gap = sampler->items * SAMPLER_CHUNK - sampler->config.samples;
    sampler->gap_at =
        (at / SAMPLER_WINDOW + 1) * SAMPLER_WINDOW_SAMPLES - sampler->gap;
    check(sampler->gap >= 0 && sampler->gap < SAMPLER_CHUNK,
          "the last of %lld chunks lacks %lld samples",
          (long long)sampler->items, (long long)sampler->gap);
}

/* Does the order have the range, the sum and the exclusive or of all item
 * numbers, as a permutation has? */
static bool sampler_permuted(const hdf5io_sampler_t *sampler)
{
    uint64_t sum = 0, bits = 0;
    bool inside = true;

    for (int64_t i = 0; i < sampler->items; i++) {
        inside = inside && sampler->order[i] < (uint64_t)sampler->items;
        sum += sampler->order[i] - (uint64_t)i;
        bits ^= sampler->order[i] ^ (uint64_t)i;
    }
    return inside && sum == 0 && bits == 0;
}

void hdf5io_sampler_epoch_set(hdf5io_sampler_t *sampler, int64_t epoch)
{
    rng_t rng;

    if (sampler->epoch == epoch)
        return;
    sampler->epoch = epoch;
    sampler->window_is = -1;
    if (sampler->items == 0)
        return;
    rng_open(&rng, sampler->config.seed, RNG_SHUFFLE, (uint64_t)epoch, 0);
    for (int64_t i = 0; i < sampler->items; i++) {
        int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);

        sampler->order[i] = sampler->order[j];
        sampler->order[j] = (uint32_t)i;
    }
    check(sampler_permuted(sampler), "the order of epoch %lld of %lld items",
          (long long)epoch, (long long)sampler->items);
    if (sampler->config.shuffle == HDF5IO_SHUFFLE_CHUNK)
        sampler_gap_find(sampler);
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

/* Number of the window that holds position [at]; *begin is its first
 * position. */
static int64_t sampler_window_of(const hdf5io_sampler_t *sampler, int64_t at,
                                 int64_t *begin)
{
    int64_t gap = at >= sampler->gap_at ? sampler->gap : 0;
    int64_t window = (at + gap) / SAMPLER_WINDOW_SAMPLES;

    *begin = window * SAMPLER_WINDOW_SAMPLES - gap;
    check(window * SAMPLER_WINDOW < sampler->items,
          "position %lld is in window %lld of %lld chunks", (long long)at,
          (long long)window, (long long)sampler->items);
    return window;
}

/* Shuffle the samples of [window], unless this is the current window. */
static void sampler_window_fill(hdf5io_sampler_t *sampler, int64_t window)
{
    int64_t chunk = window * SAMPLER_WINDOW, count = 0;
    int64_t stop = chunk + SAMPLER_WINDOW;
    rng_t rng;

    if (sampler->window_is == window)
        return;
    if (stop > sampler->items)
        stop = sampler->items;
    rng_open(&rng, sampler->config.seed, RNG_SHUFFLE, (uint64_t)sampler->epoch,
             (uint64_t)window + 1);
    for (; chunk < stop; chunk++) {
        int64_t first = (int64_t)sampler->order[chunk] * SAMPLER_CHUNK;

        for (int64_t i = 0; i < SAMPLER_CHUNK; i++) {
            int64_t j;

            if (first + i >= sampler->config.samples)
                break;
            j = (int64_t)rng_below(&rng, (uint64_t)count + 1);
            sampler->window[count] = sampler->window[j];
            sampler->window[j] = first + i;
            count++;
        }
    }
    check(count > 0 && count <= SAMPLER_WINDOW_SAMPLES,
          "window %lld has %lld samples", (long long)window, (long long)count);
    sampler->window_is = window;
}

void hdf5io_sampler_index(hdf5io_sampler_t *sampler, int64_t first,
                          int64_t count, int64_t *index)
{
    check(first >= 0 && count >= 0 && first + count <= sampler->config.samples,
          "positions %lld to %lld of %lld", (long long)first,
          (long long)(first + count), (long long)sampler->config.samples);
    for (int64_t i = 0; i < count; i++) {
        int64_t begin;

        switch (sampler->config.shuffle) {
        case HDF5IO_SHUFFLE_NONE:
            index[i] = first + i;
            break;
        case HDF5IO_SHUFFLE_CHUNK:
            sampler_window_fill(sampler,
                                sampler_window_of(sampler, first + i, &begin));
            check(first + i >= begin &&
                      first + i - begin < SAMPLER_WINDOW_SAMPLES,
                  "position %lld in the window from %lld on",
                  (long long)(first + i), (long long)begin);
            index[i] = sampler->window[first + i - begin];
            break;
        case HDF5IO_SHUFFLE_FULL:
            index[i] = sampler->order[first + i];
            break;
        }
        check(index[i] >= 0 && index[i] < sampler->config.samples,
              "position %lld is sample %lld of %lld", (long long)(first + i),
              (long long)index[i], (long long)sampler->config.samples);
    }
}
