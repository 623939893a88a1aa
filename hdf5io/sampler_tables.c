/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Order 1. `full` keeps a permutation of all samples, 4 bytes
 * each, made by Fisher-Yates with the counter-based generator; every
 * permutation is equally likely. `chunk` keeps only a permutation of the
 * chunks, 4 bytes per 256 samples, and one window of shuffled samples at a
 * time. So it needs little memory, and files are read in larger pieces.
 *
 * The last chunk of the dataset may be short. It can be anywhere in the order,
 * so the window that holds it is short as well, and later windows start earlier
 * by the missing `gap` samples, from position `gap_at` on.
 */
#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"
#include "hdf5io/sampler_priv.h"

#define SAMPLER_CHUNK 256
#define SAMPLER_WINDOW 64 /* chunks per window */
#define SAMPLER_WINDOW_SAMPLES ((int64_t)SAMPLER_CHUNK * SAMPLER_WINDOW)

typedef struct tables {
    hdf5io_sampler_config_t config;
    int64_t epoch;     /* epoch of the order below */
    uint32_t *order;   /* full: sample numbers; chunk: chunk numbers */
    int64_t items;     /* length of [order] */
    int64_t gap_at;    /* chunk: first position after the short window */
    int64_t gap;       /* chunk: samples missing in the last chunk */
    int64_t *window;   /* chunk: the shuffled samples of one window */
    int64_t window_is; /* chunk: number of that window, -1: none */
} tables_t;

static void tables_close(void *state)
{
    tables_t *tables = state;

    if (tables == NULL)
        return;
    mem_free(tables->window);
    mem_free(tables->order);
    mem_free(tables);
}

static err_code_t tables_open(const hdf5io_sampler_config_t *config,
                              void **state, err_t *err)
{
    const bool chunk = config->shuffle == HDF5IO_SHUFFLE_CHUNK;
    const size_t room = chunk ? (size_t)SAMPLER_WINDOW_SAMPLES : 0;
    tables_t *tables = NULL;
    err_code_t rc;

    if (!chunk && config->samples > UINT32_MAX)
        return err_set(err, ERR_CONFIG,
                       "data.shuffle: full goes up to %lld samples, the "
                       "dataset has %lld: use shuffle: chunk",
                       (long long)UINT32_MAX, (long long)config->samples);
    rc = mem_new(tables_t, 1, "the sampler", &tables, err);
    if (rc != ERR_OK)
        return rc;
    tables->config = *config;
    tables->items =
        chunk ? (config->samples - 1) / SAMPLER_CHUNK + 1 : config->samples;
    rc = mem_new(uint32_t, (size_t)tables->items, "the order of an epoch",
                 &tables->order, err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, room, "the shuffle window", &tables->window, err);
    if (rc == ERR_OK)
        *state = tables;
    else
        tables_close(tables);
    return rc;
}

/* Find the position of the short chunk and set gap and gap_at. */
static void gap_find(tables_t *tables)
{
    int64_t last = tables->items - 1, at = 0;

    while (tables->order[at] != last)
        at++;
    tables->gap = tables->items * SAMPLER_CHUNK - tables->config.samples;
    tables->gap_at =
        (at / SAMPLER_WINDOW + 1) * SAMPLER_WINDOW_SAMPLES - tables->gap;
    check(tables->gap >= 0 && tables->gap < SAMPLER_CHUNK,
          "the last of %lld chunks lacks %lld samples",
          (long long)tables->items, (long long)tables->gap);
}

/* Does the order have the range, the sum and the exclusive or of all item
 * numbers, as a permutation has? */
static bool is_permuted(const tables_t *tables)
{
    uint64_t sum = 0, bits = 0;
    bool inside = true;

    for (int64_t i = 0; i < tables->items; i++) {
        inside = inside && tables->order[i] < (uint64_t)tables->items;
        sum += tables->order[i] - (uint64_t)i;
        bits ^= tables->order[i] ^ (uint64_t)i;
    }
    return inside && sum == 0 && bits == 0;
}

static void tables_epoch_set(void *state, int64_t epoch)
{
    tables_t *tables = state;
    rng_t rng;

    tables->epoch = epoch;
    tables->window_is = -1;
    rng_open(&rng, tables->config.seed, RNG_SHUFFLE, (uint64_t)epoch, 0);
    for (int64_t i = 0; i < tables->items; i++) {
        int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);

        tables->order[i] = tables->order[j];
        tables->order[j] = (uint32_t)i;
    }
    check(is_permuted(tables), "the order of epoch %lld of %lld items",
          (long long)epoch, (long long)tables->items);
    if (tables->config.shuffle == HDF5IO_SHUFFLE_CHUNK)
        gap_find(tables);
}

/* Number of the window that holds position [at]; *begin is its first
 * position. */
static int64_t window_of(const tables_t *tables, int64_t at, int64_t *begin)
{
    int64_t gap = at >= tables->gap_at ? tables->gap : 0;
    int64_t window = (at + gap) / SAMPLER_WINDOW_SAMPLES;

    *begin = window * SAMPLER_WINDOW_SAMPLES - gap;
    check(window * SAMPLER_WINDOW < tables->items,
          "position %lld is in window %lld of %lld chunks", (long long)at,
          (long long)window, (long long)tables->items);
    return window;
}

/* Shuffle the samples of [window], unless this is the current window. */
static void window_fill(tables_t *tables, int64_t window)
{
    int64_t chunk = window * SAMPLER_WINDOW, count = 0;
    int64_t stop = chunk + SAMPLER_WINDOW;
    rng_t rng;

    if (tables->window_is == window)
        return;
    if (stop > tables->items)
        stop = tables->items;
    rng_open(&rng, tables->config.seed, RNG_SHUFFLE, (uint64_t)tables->epoch,
             (uint64_t)window + 1);
    for (; chunk < stop; chunk++) {
        int64_t first = (int64_t)tables->order[chunk] * SAMPLER_CHUNK;

        for (int64_t i = 0; i < SAMPLER_CHUNK; i++) {
            int64_t j;

            if (first + i >= tables->config.samples)
                break;
            j = (int64_t)rng_below(&rng, (uint64_t)count + 1);
            tables->window[count] = tables->window[j];
            tables->window[j] = first + i;
            count++;
        }
    }
    check(count > 0 && count <= SAMPLER_WINDOW_SAMPLES,
          "window %lld has %lld samples", (long long)window, (long long)count);
    tables->window_is = window;
}

static void tables_index(void *state, int64_t first, int64_t count,
                         int64_t *index)
{
    tables_t *tables = state;

    for (int64_t i = 0; i < count; i++) {
        int64_t begin;

        if (tables->config.shuffle == HDF5IO_SHUFFLE_FULL) {
            index[i] = tables->order[first + i];
            continue;
        }
        window_fill(tables, window_of(tables, first + i, &begin));
        check(first + i >= begin && first + i - begin < SAMPLER_WINDOW_SAMPLES,
              "position %lld in the window from %lld on",
              (long long)(first + i), (long long)begin);
        index[i] = tables->window[first + i - begin];
    }
}

const sampler_kind_t sampler_tables = {.open = tables_open,
                                       .close = tables_close,
                                       .epoch_set = tables_epoch_set,
                                       .index = tables_index};
