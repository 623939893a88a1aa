/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A split (train or valid) is drawn in memory as a whole by a team of threads,
 * then written as shards. Each sample is a function of (seed, split, number),
 * so the number of threads does not change the data.
 */
#include "cmd/make_ising.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/data_bound.h"
#include "cmd/data_ising.h"
#include "cmd/data_shard.h"
#include "cmd/make_team.h"

typedef struct split {
    const char *name; /* "train", "valid" */
    uint64_t number;  /* 0 or 1; part of the key of random streams */
    uint64_t seed;
    int64_t count;
    int shards;
    int8_t *spins;
    int8_t *phase;
    float *temperature, *site; /* site: energy per site */
    cmd_bound_item_t *energy, *magnet;
} split_t;

static void split_free(split_t *split)
{
    mem_free(split->spins);
    mem_free(split->phase);
    mem_free(split->temperature);
    mem_free(split->site);
    mem_free(split->energy);
    mem_free(split->magnet);
}

static err_code_t split_alloc(split_t *split, err_t *err)
{
    const size_t count = (size_t)split->count;
    const char *what = "Ising samples";
    err_code_t rc =
        mem_new(int8_t, CMD_ISING_SITES * count, what, &split->spins, err);

    if (rc == ERR_OK)
        rc = mem_new(int8_t, count, what, &split->phase, err);
    if (rc == ERR_OK)
        rc = mem_new(float, count, what, &split->temperature, err);
    if (rc == ERR_OK)
        rc = mem_new(float, count, what, &split->site, err);
    if (rc == ERR_OK)
        rc = mem_new(cmd_bound_item_t, count, what, &split->energy, err);
    if (rc == ERR_OK)
        rc = mem_new(cmd_bound_item_t, count, what, &split->magnet, err);
    return rc;
}

static err_code_t split_draw(void *context, int64_t i, err_t *err)
{
    split_t *split = context;
    cmd_ising_sample_t sample;

    (void)err;
    cmd_ising_draw(split->seed, split->number, (uint64_t)i,
                   split->spins + i * CMD_ISING_SITES, &sample);
    split->phase[i] = sample.phase;
    split->temperature[i] = sample.temperature;
    split->site[i] = (float)sample.energy / CMD_ISING_SITES;
    split->energy[i] = (cmd_bound_item_t){sample.energy, sample.phase};
    split->magnet[i] = (cmd_bound_item_t){-abs(sample.magnet), sample.phase};
    return ERR_OK;
}

/* Write shard [shard] of the split: its equal part of the rows. */
static err_code_t shard_write(const split_t *split, const char *directory,
                              int shard, double bound, int64_t *bytes,
                              err_t *err)
{
    int64_t first = split->count * shard / split->shards;
    int64_t end = split->count * (shard + 1) / split->shards;
    const cmd_shard_field_t fields[] = {
        {"/spins",
         CMD_SHARD_INT8,
         2,
         {CMD_ISING_SIDE, CMD_ISING_SIDE},
         split->spins + first * CMD_ISING_SITES},
        {"/phase", CMD_SHARD_INT8, 0, {0}, split->phase + first},
        {"/temperature", CMD_SHARD_FLOAT32, 0, {0}, split->temperature + first},
        {"/energy", CMD_SHARD_FLOAT32, 0, {0}, split->site + first},
    };
    const cmd_shard_t content = {
        .rows = end - first,
        .fields = fields,
        .field_count = (int)(sizeof fields / sizeof fields[0]),
        .seeded = true,
        .seed = split->seed,
        .bound = bound,
        .bound_by = "best energy threshold",
    };

    return cmd_shards_put(directory, split->name, shard, &content, bytes, err);
}

static err_code_t split_write(const split_t *split, const char *directory,
                              double bound, int64_t *bytes, err_t *err)
{
    for (int shard = 0; shard < split->shards; shard++) {
        err_code_t rc = shard_write(split, directory, shard, bound, bytes, err);

        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

static err_code_t split_make(split_t *split, const cmd_ising_config_t *config,
                             cmd_ising_report_t *report, err_t *err)
{
    bool valid = split->number == 1;
    double bound = NAN;
    err_code_t rc = split_alloc(split, err);

    if (rc == ERR_OK)
        rc = cmd_team_draw("ising", config->threads, split->count, split_draw,
                           split, err);
    if (rc != ERR_OK)
        goto out;
    if (valid) {
        bound = cmd_bound_best(split->energy, split->count);
        report->energy_bound = bound;
        report->magnet_bound = cmd_bound_best(split->magnet, split->count);
    }
    rc = split_write(split, config->directory, bound, &report->bytes, err);
out:
    split_free(split);
    return rc;
}

err_code_t cmd_make_ising(const cmd_ising_config_t *config,
                          cmd_ising_report_t *report, err_t *err)
{
    int valid_shards = config->shards > 1 ? config->shards / 2 : 1;
    split_t train = {.name = "train",
                     .number = 0,
                     .seed = config->seed,
                     .count = config->train,
                     .shards = config->shards};
    split_t valid = {.name = "valid",
                     .number = 1,
                     .seed = config->seed,
                     .count = config->valid,
                     .shards = valid_shards};
    cmd_ising_report_t result = {.train_shards = config->shards,
                                 .valid_shards = valid_shards};
    err_code_t rc = cmd_shards_begin(config->directory, config->force, err);

    if (rc == ERR_OK)
        rc = split_make(&train, config, &result, err);
    if (rc == ERR_OK)
        rc = split_make(&valid, config, &result, err);
    if (rc == ERR_OK)
        rc = file_sync(config->directory, err);
    if (rc == ERR_OK)
        *report = result;
    return rc;
}
