/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/shard.h"

#include "base/check.h"
#include "base/mem.h"

/* ---- opening ------------------------------------------------------------- */

/* Check that the ranges of a rank are in order, do not overlap, and are within
 * the arena. */
static void ranges_check(const train_shard_t *shard, size_t elems)
{
    size_t end = 0;

    for (int b = 0; CHECK_ON && b < shard->range_count; b++) {
        const view_range_t range = shard->ranges[b];

        if (range.count == 0)
            continue;
        check(range.first >= end && range.first + range.count <= elems,
              "range %d: %zu elements from %zu, after %zu, of %zu", b,
              range.count, range.first, end, elems);
        end = range.first + range.count;
    }
}

static err_code_t tables_open(train_shard_t *shard, size_t elems, err_t *err)
{
    err_code_t rc;

    shard->range_count = ddp_shards_buckets(shard->cut);
    shard->block_count = optim_norm_blocks(elems);
    rc = mem_new(view_range_t, (size_t)shard->range_count + 1, "shards",
                 &shard->ranges, err);
    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++)
        shard->ranges[b] = ddp_shards_range(shard->cut, b, shard->rank);
    return rc;
}

err_code_t train_shard_open(const train_shard_plan_t *plan, train_shard_t **out,
                            err_t *err)
{
    train_shard_t *shard = NULL;
    err_code_t rc;

    rc = mem_new(train_shard_t, 1, "shards", &shard, err);
    if (rc != ERR_OK)
        return rc;
    shard->group = plan->group;
    shard->rank = plan->rank;
    shard->size = plan->size;
    shard->dev = plan->dev;
    rc = ddp_shards_open(plan->config, plan->layout, plan->size, OPTIM_UNIT,
                         &shard->cut, err);
    if (rc == ERR_OK)
        rc = tables_open(shard, plan->layout->grad_elems, err);
    if (rc == ERR_OK)
        ranges_check(shard, plan->layout->grad_elems);
    if (rc != ERR_OK)
        train_shard_close(shard);
    else
        *out = shard;
    return rc;
}

bool train_shard_enqueues(const train_shard_t *shard)
{
    return shard->size == 1 ||
           (shard->group != NULL && comm_group_enqueues(shard->group));
}

size_t train_shard_bytes(const train_shard_t *shard)
{
    return (shard->block_count + 1) * sizeof *shard->blocks;
}

err_code_t train_shard_alloc(train_shard_t *shard, err_t *err)
{
    void *blocks = NULL;
    err_code_t rc = dev_alloc(shard->dev, train_shard_bytes(shard),
                              "gradient norm", &blocks, err);

    shard->blocks = blocks;
    return rc == ERR_OK && shard->size > 1 && train_shard_enqueues(shard)
               ? dev_event_open(shard->dev, &shard->written, err)
               : rc;
}

void train_shard_close(train_shard_t *shard)
{
    if (shard == NULL)
        return;
    ddp_shards_close(shard->cut);
    mem_free(shard->parts);
    dev_event_close(shard->written);
    dev_free(shard->dev, shard->blocks);
    mem_free(shard->ranges);
    mem_free(shard);
}

/* ---- checkpoints --------------------------------------------------------- */

err_code_t train_shard_parts_open(train_shard_t *shard,
                                  const train_mirror_t *mirror, size_t params,
                                  size_t slots, err_t *err)
{
    /* In the arena of a slot, a part ends where a parameter ends or where a
     * range ends. */
    size_t ranges = (size_t)shard->range_count * (size_t)shard->size;

    shard->mirror = mirror;
    shard->part_limit = (int)(slots * (params + ranges));
    return mem_new(hdf5io_part_t, slots * (params + ranges) + 1,
                   "checkpoint table", &shard->parts, err);
}

/* The part of [param] that [rank] has in [bucket]; its count is 0 if there is
 * none. */
static hdf5io_part_t part_of(const train_shard_t *shard,
                             const nn_param_t *param, int bucket, int rank)
{
    const view_range_t range = ddp_shards_range(shard->cut, bucket, rank);
    const size_t end = param->offset + param->count;
    size_t from = range.first, to = range.first + range.count;

    from = from > param->offset ? from : param->offset;
    to = to < end ? to : end;
    if (from >= to)
        return (hdf5io_part_t){.count = 0};
    return (hdf5io_part_t){.rank = rank,
                           .first = (int64_t)(from - param->offset),
                           .count = (int64_t)(to - from)};
}

void train_shard_parts(train_shard_t *shard, optim_t *optim, int slot,
                       const nn_param_t *param, hdf5io_tensor_t *tensor)
{
    const int first = shard->part_count;
    int64_t covered = 0;

    for (int b = 0; b < shard->range_count; b++) {
        const view_range_t whole = ddp_shards_whole(shard->cut, b);

        if (whole.first >= param->offset + param->count ||
            whole.first + whole.count <= param->offset)
            continue;
        for (int r = 0; r < shard->size; r++) {
            hdf5io_part_t part = part_of(shard, param, b, r);

            if (part.count == 0)
                continue;
            if (r == shard->rank)
                part.data = train_mirror_host(
                    shard->mirror,
                    optim_slot_at(optim, slot,
                                  param->offset + (size_t)part.first));
            covered += part.count;
            shard->parts[shard->part_count++] = part;
        }
    }
    check(covered == (int64_t)param->count, "%s: parts of %lld of %zu elements",
          param->name, (long long)covered, param->count);
    check(shard->part_count <= shard->part_limit, "%d parts of %d",
          shard->part_count, shard->part_limit);
    tensor->data = NULL;
    tensor->parts = shard->parts + first;
    tensor->part_count = shard->part_count - first;
}

/* ---- one update ---------------------------------------------------------- */

/* Sum [count] numbers on the device over the ranks, after the work that is in
 * [stream]. The host waits only if the group of the ranks needs it: [stream]
 * may be capturing the step. */
static err_code_t ranks_sum(const train_shard_t *shard, double *numbers,
                            size_t count, dev_stream_t *stream, err_t *err)
{
    err_code_t rc;

    if (shard->size == 1)
        return ERR_OK;
    if (train_shard_enqueues(shard))
        return comm_sum_on(shard->group, numbers, count, shard->written, stream,
                           err);
    rc = dev_stream_wait(stream, err);
    return rc == ERR_OK ? comm_allreduce(shard->group, numbers, count,
                                         COMM_FLOAT64, COMM_SUM, err)
                        : rc;
}

err_code_t train_shard_norm(train_shard_t *shard, optim_place_t *place,
                            const float *grads, double *norm,
                            dev_stream_t *stream, err_t *err)
{
    err_code_t rc = dev_fill(stream, shard->blocks, 0,
                             shard->block_count * sizeof *shard->blocks, err);

    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++)
        rc = optim_norm_part(place, grads, shard->ranges[b], shard->blocks,
                             stream, err);
    /* One rank has the square sum of a block, all others have 0 there, so the
     * order of this sum over ranks does not matter. */
    if (rc == ERR_OK)
        rc = ranks_sum(shard, shard->blocks, shard->block_count, stream, err);
    return rc == ERR_OK
               ? optim_norm_whole(place, shard->blocks, shard->block_count,
                                  norm, stream, err)
               : rc;
}

/* Prepare the update, and add the sums of its tensors over the ranks. */
static err_code_t sums_take(train_shard_t *shard,
                            const train_shard_step_t *step, err_t *err)
{
    size_t count;
    double *sums = optim_sums(step->optim, &count);
    err_code_t rc = optim_prepare(step->optim, step->args, step->stream, err);

    return rc == ERR_OK ? ranks_sum(shard, sums, count, step->stream, err) : rc;
}

err_code_t train_shard_update(train_shard_t *shard,
                              const train_shard_step_t *step, err_t *err)
{
    err_code_t rc = sums_take(shard, step, err), waited;

    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++) {
        rc = optim_apply(step->optim, b, step->args, step->stream, err);
        if (rc == ERR_OK)
            rc = ddp_share(step->ddp, b, step->args->params, step->stream, err);
    }
    waited =
        ddp_share_wait_on(step->ddp, step->stream, rc == ERR_OK ? err : NULL);
    return rc != ERR_OK ? rc : waited;
}

err_code_t train_shard_average(const train_shard_t *shard, ddp_t *ddp,
                               const optim_t *optim, dev_stream_t *stream,
                               err_t *err)
{
    float *arena = ddp_grads(ddp);
    err_code_t rc = optim_average_store(optim, arena, stream, err), waited;

    for (int b = 0; rc == ERR_OK && b < shard->range_count; b++)
        rc = ddp_share(ddp, b, arena, stream, err);
    waited = ddp_share_wait_on(ddp, stream, rc == ERR_OK ? err : NULL);
    return rc != ERR_OK ? rc : waited;
}
