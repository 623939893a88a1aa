/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/shard.h"

#include <string.h>

#include "base/mem.h"

/* ---- opening ------------------------------------------------------------- */

static err_code_t tables_open(train_shard_t *shard, size_t elems, err_t *err)
{
    err_code_t rc;

    shard->range_count = ddp_shards_buckets(shard->cut);
    shard->block_count = optim_norm_blocks(elems);
    rc = mem_new(view_range_t, (size_t)shard->range_count + 1, "shards",
                 &shard->ranges, err);
    if (rc == ERR_OK)
        rc = mem_new(double, shard->block_count + 1, "gradient norm",
                     &shard->blocks, err);
    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++)
        shard->ranges[b] = ddp_shards_range(shard->cut, b, shard->rank);
    return rc;
}

err_code_t train_shard_open(const ddp_config_t *config,
                            const ddp_layout_t *layout, int rank, int size,
                            train_shard_t **out, err_t *err)
{
    train_shard_t *shard = NULL;
    err_code_t rc;

    rc = mem_new(train_shard_t, 1, "shards", &shard, err);
    if (rc != ERR_OK)
        return rc;
    shard->rank = rank;
    shard->size = size;
    rc = ddp_shards_open(config, layout, size, OPTIM_UNIT, &shard->cut, err);
    if (rc == ERR_OK)
        rc = tables_open(shard, layout->grad_elems, err);
    if (rc != ERR_OK)
        train_shard_close(shard);
    else
        *out = shard;
    return rc;
}

void train_shard_close(train_shard_t *shard)
{
    if (shard == NULL)
        return;
    ddp_shards_close(shard->cut);
    mem_free(shard->parts);
    mem_free(shard->blocks);
    mem_free(shard->ranges);
    mem_free(shard);
}

/* ---- checkpoints --------------------------------------------------------- */

err_code_t train_shard_parts_open(train_shard_t *shard, size_t params,
                                  size_t slots, err_t *err)
{
    /* In a slot's arena, a part ends where a parameter or a range does. */
    size_t ranges = (size_t)shard->range_count * (size_t)shard->size;

    return mem_new(hdf5io_part_t, slots * (params + ranges) + 1,
                   "checkpoint table", &shard->parts, err);
}

static void part_add(train_shard_t *shard, optim_t *optim, int slot,
                     const nn_param_t *param, int bucket, int rank)
{
    const view_range_t range = ddp_shards_range(shard->cut, bucket, rank);
    const size_t end = param->offset + param->count;
    size_t from = range.first, to = range.first + range.count;

    from = from > param->offset ? from : param->offset;
    to = to < end ? to : end;
    if (from >= to)
        return;
    shard->parts[shard->part_count++] = (hdf5io_part_t){
        .rank = rank,
        .first = (int64_t)(from - param->offset),
        .count = (int64_t)(to - from),
        .data = rank == shard->rank ? optim_slot_at(optim, slot, from) : NULL};
}

void train_shard_parts(train_shard_t *shard, optim_t *optim, int slot,
                       const nn_param_t *param, hdf5io_tensor_t *tensor)
{
    const int first = shard->part_count;

    for (int b = 0; b < shard->range_count; b++) {
        const view_range_t whole = ddp_shards_whole(shard->cut, b);

        if (whole.first >= param->offset + param->count ||
            whole.first + whole.count <= param->offset)
            continue;
        for (int r = 0; r < shard->size; r++)
            part_add(shard, optim, slot, param, b, r);
    }
    tensor->data = NULL;
    tensor->parts = shard->parts + first;
    tensor->part_count = shard->part_count - first;
}

/* ---- one update ---------------------------------------------------------- */

err_code_t train_shard_clip(train_shard_t *shard, comm_group_t *group,
                            float *grads, double limit, int threads,
                            double *norm, err_t *err)
{
    err_code_t rc;

    memset(shard->blocks, 0, shard->block_count * sizeof *shard->blocks);
    for (int b = 0; b < shard->range_count; b++)
        optim_norm_part(grads, shard->ranges[b], shard->blocks, threads);
    /* One rank's number and zeros: this sum has no order. */
    rc = comm_allreduce(group, shard->blocks, shard->block_count, COMM_FLOAT64,
                        COMM_SUM, err);
    if (rc != ERR_OK)
        return rc;
    *norm = optim_norm_whole(shard->blocks, shard->block_count);
    for (int b = 0; b < shard->range_count; b++)
        optim_clip_by(grads + shard->ranges[b].first, shard->ranges[b].count,
                      *norm, limit, threads);
    return ERR_OK;
}

void train_shard_clip_value(const train_shard_t *shard, float *grads,
                            double limit, int threads)
{
    for (int b = 0; b < shard->range_count; b++)
        optim_clip_value(grads + shard->ranges[b].first, shard->ranges[b].count,
                         limit, threads);
}

static err_code_t tensor_norms(comm_group_t *group, optim_t *optim, err_t *err)
{
    size_t count;
    double *sums = optim_sums(optim, &count);

    return comm_allreduce(group, sums, count, COMM_FLOAT64, COMM_SUM, err);
}

err_code_t train_shard_update(train_shard_t *shard, comm_group_t *group,
                              ddp_t *ddp, optim_t *optim, float *params,
                              double lr, int64_t update, err_t *err)
{
    const float *grads = ddp_grads(ddp);
    err_code_t rc, waited;

    optim_prepare(optim, params, grads, update);
    rc = tensor_norms(group, optim, err);
    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++) {
        optim_apply(optim, b, params, grads, lr, update);
        rc = ddp_share(ddp, b, params, err);
    }
    waited = ddp_share_wait(ddp, rc == ERR_OK ? err : NULL);
    return rc != ERR_OK ? rc : waited;
}

err_code_t train_shard_average(const train_shard_t *shard, ddp_t *ddp,
                               const optim_t *optim, err_t *err)
{
    float *arena = ddp_grads(ddp);
    err_code_t rc = ERR_OK, waited;

    optim_average_store(optim, arena);
    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++)
        rc = ddp_share(ddp, b, arena, err);
    waited = ddp_share_wait(ddp, rc == ERR_OK ? err : NULL);
    return rc != ERR_OK ? rc : waited;
}
