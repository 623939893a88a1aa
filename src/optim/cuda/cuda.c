/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "optim/cuda/cuda.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

static err_code_t doubles_new(dev_device_t *dev, size_t count, double **out,
                              err_t *err)
{
    void *block = NULL;
    err_code_t rc =
        dev_alloc(dev, (count + 1) * sizeof(double), "norms", &block, err);

    *out = block;
    return rc;
}

static void cuda_close(optim_place_t *place)
{
    optim_cuda_t *cuda = (optim_cuda_t *)place;

    dev_free(place->dev, cuda->sums);
    dev_free(place->dev, cuda->chunks);
    mem_free(cuda);
}

static err_code_t cuda_open(dev_device_t *dev, size_t elems,
                            optim_place_t **out, err_t *err)
{
    optim_cuda_t *cuda = NULL;
    err_code_t rc = mem_new(optim_cuda_t, 1, "the optimizer", &cuda, err);

    if (rc != ERR_OK)
        return rc;
    cuda->base.dev = dev;
    cuda->blocks = (elems + OPTIM_BLOCK - 1) / OPTIM_BLOCK;
    rc = doubles_new(dev, cuda->blocks, &cuda->sums, err);
    if (rc == ERR_OK)
        /* Chunks, chunks of them, and so on. */
        rc = doubles_new(dev, 2 * (cuda->blocks / CUDA_CHUNK) + 4,
                         &cuda->chunks, err);
    if (rc != ERR_OK)
        cuda_close(&cuda->base);
    else
        *out = &cuda->base;
    return rc;
}

/* ---- tables -------------------------------------------------------------- */

static int64_t run_tiles(const optim_run_t *run)
{
    const size_t end = run->offset + run->elems;

    return run->freeze ? 0
                       : (int64_t)((end - 1) / OPTIM_BLOCK -
                                   run->offset / OPTIM_BLOCK + 1);
}

/* The arrays of the host that table_open copies to the device. */
typedef struct host_table {
    optim_cuda_run_t *runs;
    int32_t *tile_runs;
    int run_count;
} host_table_t;

static void run_add(const optim_run_t *run, host_table_t *host, int64_t tile)
{
    const int64_t tiles = run_tiles(run);

    check(run->sum_count <= (size_t)CUDA_CHUNK * CUDA_CHUNK,
          "a tensor has %zu blocks", run->sum_count);
    host->runs[host->run_count] = (optim_cuda_run_t){
        .offset = (int64_t)run->offset,
        .elems = (int64_t)run->elems,
        .state = (int64_t)run->state,
        .tile = tile,
        .tile_sum = (int64_t)(run->sums + run->offset / OPTIM_BLOCK -
                              run->tensor / OPTIM_BLOCK),
        .sums = (int64_t)run->sums,
        .sum_count = (int64_t)run->sum_count,
        .set = run->set,
        .adapts = run->adapts};
    for (int64_t t = 0; t < tiles; t++)
        host->tile_runs[tile + t] = host->run_count;
    host->run_count++;
}

static void parts_fill(const optim_table_t *table, host_table_t *host,
                       optim_cuda_table_t *out)
{
    out->wide = true;
    for (int p = 0; p < table->part_count; p++) {
        const optim_part_t *part = &table->parts[p];
        struct optim_cuda_part *mine = &out->parts[p];

        *mine = (struct optim_cuda_part){.tile = out->tiles,
                                         .run = host->run_count};
        for (int r = part->run; r < part->run + part->runs; r++) {
            const optim_run_t *run = &table->runs[r];

            if (run->freeze)
                continue;
            run_add(run, host, out->tiles);
            out->tiles += run_tiles(run);
            out->wide = out->wide && (run->state - run->offset) % 4 == 0;
        }
        mine->tiles = out->tiles - mine->tile;
        mine->runs = host->run_count - mine->run;
    }
}

/* Allocate the device's block, and copy the arrays to it. */
static err_code_t table_copy(dev_device_t *dev, const optim_table_t *table,
                             const host_table_t *host, optim_cuda_table_t *out,
                             err_t *err)
{
    const size_t runs = (size_t)host->run_count * sizeof *out->runs;
    const size_t rules = (size_t)table->rule_count * sizeof *out->rules;
    const size_t tiles = (size_t)out->tiles * sizeof *out->tile_runs;
    dev_stream_t *stream = NULL;
    char *at;
    err_code_t rc = dev_alloc(dev, runs + rules + tiles + 1,
                              "the optimizer's tables", &out->block, err);

    if (rc == ERR_OK)
        rc = dev_stream_open(dev, DEV_STREAM_COPY, &stream, err);
    if (rc != ERR_OK)
        return rc;
    at = out->block;
    out->runs = (optim_cuda_run_t *)(void *)at;
    out->rules = (optim_rule_t *)(void *)(at + runs);
    out->tile_runs = (int32_t *)(void *)(at + runs + rules);
    rc = dev_copy(stream, out->runs, host->runs, runs, DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = dev_copy(stream, out->rules, table->rules, rules, DEV_HOST_TO_DEV,
                      err);
    if (rc == ERR_OK)
        rc = dev_copy(stream, out->tile_runs, host->tile_runs, tiles,
                      DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(stream, err);
    dev_stream_close(stream);
    return rc;
}

static void table_close(optim_place_t *place, void *state)
{
    optim_cuda_table_t *table = state;

    if (table == NULL)
        return;
    dev_free(place->dev, table->block);
    mem_free(table->parts);
    mem_free(table);
}

static err_code_t table_open(optim_place_t *place, const optim_table_t *table,
                             void **out, err_t *err)
{
    const char *what = "the optimizer's tables";
    optim_cuda_table_t *own = NULL;
    host_table_t host = {0};
    int64_t tiles = 0;
    err_code_t rc = mem_new(optim_cuda_table_t, 1, what, &own, err);

    if (rc != ERR_OK)
        return rc;
    for (int r = 0; r < table->run_count; r++)
        tiles += run_tiles(&table->runs[r]);
    rc = mem_new(struct optim_cuda_part, (size_t)table->part_count + 1, what,
                 &own->parts, err);
    if (rc == ERR_OK)
        rc = mem_new(optim_cuda_run_t, (size_t)table->run_count + 1, what,
                     &host.runs, err);
    if (rc == ERR_OK)
        rc = mem_new(int32_t, (size_t)tiles + 1, what, &host.tile_runs, err);
    if (rc == ERR_OK) {
        parts_fill(table, &host, own);
        rc = table_copy(place->dev, table, &host, own, err);
    }
    mem_free(host.tile_runs);
    mem_free(host.runs);
    if (rc != ERR_OK)
        table_close(place, own);
    else
        *out = own;
    return rc;
}

/* ---- updates ------------------------------------------------------------- */

static bool aligned(const void *at)
{
    return (uintptr_t)at % 16 == 0;
}

static optim_cuda_pass_t pass_of(const optim_pass_t *pass)
{
    const optim_table_t *table = pass->table;
    const optim_cuda_table_t *own = pass->state;
    optim_cuda_pass_t out = {.runs = own->runs,
                             .rules = own->rules,
                             .tile_runs = own->tile_runs,
                             .tiles = own->tiles,
                             .params = pass->args.params,
                             .grads = pass->args.grads,
                             .average = table->average,
                             .sums = table->sums,
                             .ratios = table->ratios,
                             .in = pass->args.in,
                             .verdict = pass->args.verdict,
                             .fresh = table->fresh,
                             .most = pass->most};

    out.wide = own->wide && aligned(out.params) && aligned(out.grads);
    memcpy(out.slots, table->slots, sizeof out.slots);
    return out;
}

/* Clipping is a part of the kernels. */
static err_code_t cuda_measure(optim_place_t *place, const optim_pass_t *pass,
                               dev_stream_t *stream, err_t *err)
{
    const optim_cuda_pass_t own = pass_of(pass);

    (void)place;
    return pass->table->measures && own.tiles > 0
               ? optim_cuda_sums(&own, stream, err)
               : ERR_OK;
}

static err_code_t cuda_update(optim_place_t *place, const optim_pass_t *pass,
                              int index, dev_stream_t *stream, err_t *err)
{
    const optim_cuda_table_t *table = pass->state;
    const struct optim_cuda_part *part = &table->parts[index];
    optim_cuda_pass_t own = pass_of(pass);
    err_code_t rc = ERR_OK;

    (void)place;
    own.tile = part->tile;
    own.tiles = part->tiles;
    if (part->tiles == 0)
        return ERR_OK;
    if (pass->table->measures)
        rc = optim_cuda_ratios(&own, part->run, part->runs, stream, err);
    return rc == ERR_OK ? optim_cuda_tiles(&own, stream, err) : rc;
}

const optim_place_ops_t optim_cuda_place = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .table_open = table_open,
    .table_close = table_close,
    .norm = optim_cuda_norm,
    .norm_part = optim_cuda_norm_part,
    .norm_whole = optim_cuda_norm_whole,
    .norm_flag = optim_cuda_norm_flag,
    .scale = optim_cuda_scale,
    .judge = optim_cuda_judge,
    .measure = cuda_measure,
    .update = cuda_update,
};
