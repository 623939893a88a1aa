/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Makes one shard after the other, as volumes are large: only one is in memory
 * at a time. */
#include "cmd/make_fields.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/data_fields.h"
#include "cmd/data_shard.h"
#include "cmd/make_team.h"

/* Samples [first, first + rows) of a split: one shard. */
typedef struct part {
    cmd_fields_spec_t spec;
    size_t cells;
    int64_t first, rows;
    float *density, *params, *scaled;
    uint8_t *web;
} part_t;

static void part_free(part_t *part)
{
    mem_free(part->density);
    mem_free(part->params);
    mem_free(part->scaled);
    mem_free(part->web);
}

static err_code_t part_alloc(part_t *part, err_t *err)
{
    const size_t rows = (size_t)part->rows;
    const size_t params = CMD_FIELDS_PARAMS;
    err_code_t rc =
        mem_new(float, rows * part->cells, "densities", &part->density, err);

    if (rc == ERR_OK)
        rc = mem_new(uint8_t, rows * part->cells, "kinds of cells", &part->web,
                     err);
    if (rc == ERR_OK)
        rc = mem_new(float, rows *params, "parameters", &part->params, err);
    if (rc == ERR_OK)
        rc = mem_new(float, rows *params, "parameters", &part->scaled, err);
    return rc;
}

static err_code_t part_draw(void *context, int64_t i, err_t *err)
{
    part_t *part = context;
    const uint64_t number = (uint64_t)(part->first + i);
    double params[CMD_FIELDS_PARAMS];

    cmd_fields_draw_params(&part->spec, number, params,
                           part->scaled + i * CMD_FIELDS_PARAMS);
    for (int p = 0; p < CMD_FIELDS_PARAMS; p++)
        part->params[i * CMD_FIELDS_PARAMS + p] = (float)params[p];
    return cmd_fields_draw(&part->spec, number,
                           part->density + (size_t)i * part->cells,
                           part->web + (size_t)i * part->cells, err);
}

static err_code_t part_write(const part_t *part, const char *directory,
                             int shard, int64_t *bytes, err_t *err)
{
    static const char *const names[] = {"train", "valid"};
    const int64_t edge = part->spec.edge;
    const cmd_shard_field_t fields[] = {
        {"/density", CMD_SHARD_FLOAT32, 3, {edge, edge, edge}, part->density},
        {"/web", CMD_SHARD_UINT8, 3, {edge, edge, edge}, part->web},
        {"/parameters",
         CMD_SHARD_FLOAT32,
         1,
         {CMD_FIELDS_PARAMS},
         part->params},
        {"/scaled", CMD_SHARD_FLOAT32, 1, {CMD_FIELDS_PARAMS}, part->scaled},
    };
    const cmd_shard_t content = {
        .rows = part->rows,
        .fields = fields,
        .field_count = (int)(sizeof fields / sizeof fields[0]),
        .seeded = true,
        .seed = part->spec.seed,
        .bound = NAN,
    };

    return cmd_shards_put(directory, names[part->spec.split], shard, &content,
                          bytes, err);
}

/* What was written of a split. */
typedef struct made {
    int64_t bytes;
    int64_t webs[CMD_FIELDS_WEBS]; /* number of cells of each kind */
} made_t;

/* Draw and write one shard, and add it to [made]. */
static err_code_t part_make(part_t *part, const cmd_fields_config_t *config,
                            int shard, made_t *made, err_t *err)
{
    err_code_t rc = part_alloc(part, err);

    if (rc == ERR_OK)
        rc = cmd_team_draw("fields", config->threads, part->rows, part_draw,
                           part, err);
    if (rc == ERR_OK)
        rc = part_write(part, config->directory, shard, &made->bytes, err);
    for (size_t i = 0; rc == ERR_OK && i < (size_t)part->rows * part->cells;
         i++)
        made->webs[part->web[i]]++;
    part_free(part);
    return rc;
}

/* Make all shards of a split, and add them to [made]. */
static err_code_t split_make(const cmd_fields_config_t *config, int split,
                             int shards, made_t *made, err_t *err)
{
    const int64_t rows = split == 0 ? config->train : config->valid;
    const size_t edge = (size_t)config->edge;
    err_code_t rc = ERR_OK;

    for (int shard = 0; shard < shards && rc == ERR_OK; shard++) {
        part_t part = {.spec = {.seed = config->seed,
                                .split = (uint64_t)split,
                                .edge = config->edge},
                       .cells = edge * edge * edge,
                       .first = rows * shard / shards};

        part.rows = rows * (shard + 1) / shards - part.first;
        rc = part_make(&part, config, shard, made, err);
    }
    return rc;
}

static double best_guess(const int64_t webs[CMD_FIELDS_WEBS])
{
    int64_t all = 0, most = 0;

    for (int i = 0; i < CMD_FIELDS_WEBS; i++) {
        all += webs[i];
        most = webs[i] > most ? webs[i] : most;
    }
    return (double)most / (double)all;
}

err_code_t cmd_make_fields(const cmd_fields_config_t *config,
                           cmd_fields_report_t *report, err_t *err)
{
    cmd_fields_report_t result = {
        .train_shards = config->shards,
        .valid_shards = config->shards > 1 ? config->shards / 2 : 1};
    made_t train = {0}, valid = {0};
    err_code_t rc = cmd_shards_begin(config->directory, config->force, err);

    if (rc == ERR_OK)
        rc = split_make(config, 0, result.train_shards, &train, err);
    if (rc == ERR_OK)
        rc = split_make(config, 1, result.valid_shards, &valid, err);
    if (rc == ERR_OK)
        rc = file_sync(config->directory, err);
    if (rc != ERR_OK)
        return rc;
    result.bytes = train.bytes + valid.bytes;
    result.web_guess = best_guess(valid.webs);
    *report = result;
    return ERR_OK;
}
