/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/replica.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "comm/comm_vote.h"
#include "train/memory.h"
#include "train/start.h"

/* ---- teams -------------------------------------------------------------- */

nn_exec_t *train_replica_exec(const train_replica_t *replica, int64_t batch,
                              bool training)
{
    return train_team_exec(&replica->teams[0], batch, training);
}

dev_stream_t *train_replica_stream(const train_replica_t *replica)
{
    return replica->teams[0].stream;
}

static err_code_t teams_begin(train_replica_t *replica,
                              const train_replica_plan_t *plan, err_t *err)
{
    const nn_exec_config_t like = {
        .dev = replica->dev,
        .op_backend = dev_name(replica->dev),
        .compute_type = plan->compute_type,
        .recompute = plan->config->train.recompute == TRAIN_RECOMPUTE_BLOCKS,
        .overwrite = plan->config->train.accumulate == 1,
        .consume = true,
        .threads = plan->team_threads};
    err_code_t rc;

    rc = mem_new(train_team_t, (size_t)plan->teams, "teams", &replica->teams,
                 err);
    while (rc == ERR_OK && replica->team_count < plan->teams)
        rc = train_team_begin(replica->graph, &like, &plan->sizes,
                              &replica->teams[replica->team_count++], err);
    return rc;
}

static err_code_t teams_open(train_replica_t *replica,
                             const train_replica_plan_t *plan, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int t = 0; rc == ERR_OK && t < replica->team_count; t++)
        rc = train_team_settle(&replica->teams[t], err);
    if (rc == ERR_OK)
        rc = crew_open(plan->teams, "leaves", &replica->crew, err);
    if (rc == ERR_OK && plan->teams > 1)
        optim_crew(replica->crew);
    return rc;
}

/* nn calls this when a gradient is final for one backward. It is final for the
 * step only in the backward of the last micro-batch. */
static err_code_t on_grad_ready(void *context, int index, err_t *err)
{
    train_replica_t *replica = context;

    return replica->last_micro ? ddp_grad_ready(replica->ddp, index, err)
                               : ERR_OK;
}

static err_code_t on_reduce_small(void *context, double *sums, size_t count,
                                  err_t *err)
{
    return train_sync_reduce(((train_replica_t *)context)->sync, sums, count,
                             err);
}

static err_code_t on_reduce(void *context, double *sums, size_t count,
                            dev_stream_t *stream, err_t *err)
{
    train_replica_t *replica = context;

    check(stream == train_replica_stream(replica),
          "syncbatchnorm sums behind another stream than that of the step");
    return train_sync_reduce_on(replica->sync, sums, count, err);
}

/* The parameters that evaluations use. A sharded moving average is gathered in
 * the gradients' arena before an evaluation. */
static const float *eval_params(const train_replica_t *replica,
                                const train_replica_plan_t *plan)
{
    const optim_ema_t *ema = &plan->config->ema;

    if (ema->decay == 0 || !ema->evaluate)
        return replica->params;
    return replica->shard != NULL ? ddp_grads(replica->ddp)
                                  : optim_average(replica->optim);
}

static void teams_bind(train_replica_t *replica,
                       const train_replica_plan_t *plan)
{
    const train_sync_t *sync = replica->sync;
    nn_bind_t bind = {
        .params = replica->params,
        .grads = ddp_grads(replica->ddp),
        .buffers = replica->buffers,
        .results = train_tail_results(ddp_tail(replica->ddp)),
        .moments = ddp_tail(replica->ddp) +
                   train_tail_sums(nn_graph_losses(replica->graph)),
        .grad_ready = replica->tree == NULL ? on_grad_ready : NULL,
        .reduce_small =
            sync != NULL && !sync->enqueues ? on_reduce_small : NULL,
        .reduce_on = sync != NULL && sync->enqueues ? on_reduce : NULL,
        .context = replica,
        .step = &replica->io.there->step};

    for (int t = 0; t < replica->team_count; t++) {
        bind.trace = replica->traces == NULL ? NULL : replica->traces[t];
        train_team_bind(&replica->teams[t], &bind, eval_params(replica, plan));
    }
}

/* ---- opening ------------------------------------------------------------ */

/* List the parameters for the reducer and the optimizer. */
static err_code_t views_list(train_replica_t *replica, err_t *err)
{
    const nn_graph_t *graph = replica->graph;
    err_code_t rc;

    replica->view_count = nn_graph_params(graph);
    rc = mem_new(view_t, (size_t)replica->view_count, "parameter views",
                 &replica->views, err);
    for (int p = 0; rc == ERR_OK && p < replica->view_count; p++) {
        const nn_param_t *param = nn_graph_param(graph, p);

        replica->views[p] =
            (view_t){.name = param->name,
                     .offset = param->offset,
                     .count = param->count,
                     .ndim = param->ndim,
                     .rows = param->ndim > 0 ? (size_t)param->dims[0] : 0,
                     .unit = param->layer + 1};
    }
    return rc;
}

static err_code_t shard_open(train_replica_t *replica,
                             const train_replica_plan_t *plan, err_t *err)
{
    const ddp_layout_t layout = train_replica_layout(replica);
    const train_shard_plan_t shards = {.config = &plan->config->ddp,
                                       .layout = &layout,
                                       .dev = replica->dev,
                                       .group = plan->data,
                                       .rank = plan->rank,
                                       .size = plan->ranks};

    return plan->config->ddp.zero == 0
               ? ERR_OK
               : train_shard_open(&shards, &replica->shard, err);
}

static err_code_t reducer_open(train_replica_t *replica,
                               const train_replica_plan_t *plan, err_t *err)
{
    const ddp_layout_t layout = train_replica_layout(replica);
    err_code_t rc;

    rc = ddp_open(&plan->config->ddp, plan->group, plan->data, &layout,
                  &replica->ddp, err);
    if (rc == ERR_OK && plan->partials > 0)
        rc = mem_new(int64_t, 2 * (size_t)plan->ranks, "leaves of ranks",
                     &replica->ranges, err);
    if (rc == ERR_OK && plan->partials > 0)
        rc = ddp_tree_open(replica->ddp, replica->backend, plan->partials,
                           &replica->tree, err);
    return rc;
}

static err_code_t floats_new(dev_device_t *dev, size_t elems, const char *what,
                             float **out, err_t *err)
{
    void *block = NULL;
    err_code_t rc = dev_alloc(dev, elems * sizeof **out, what, &block, err);

    *out = block;
    return rc;
}

/* Open the arenas. Parameters that are sharded need an arena of comm for their
 * all-gather, which is opened later. */
static err_code_t arenas_open(train_replica_t *replica, bool sharded,
                              err_t *err)
{
    const size_t params = nn_graph_param_elems(replica->graph);
    const size_t buffers = nn_graph_buffer_elems(replica->graph);
    void *hash = NULL;
    err_code_t rc = ERR_OK;

    if (!sharded)
        rc = floats_new(replica->dev, params, "parameters", &replica->params,
                        err);
    if (rc == ERR_OK)
        rc = floats_new(replica->dev, buffers, "running statistics",
                        &replica->buffers, err);
    if (rc == ERR_OK)
        rc = dev_alloc(replica->dev, sizeof *replica->hash, "replica check",
                       &hash, err);
    replica->hash = hash;
    if (rc == ERR_OK && replica->shard != NULL)
        rc = train_shard_alloc(replica->shard, err);
    if (rc == ERR_OK)
        rc = train_io_open(replica->dev, replica->graph, replica->optim,
                           &replica->io, err);
    for (int t = 0; rc == ERR_OK && t < replica->team_count; t++)
        rc = train_team_alloc(&replica->teams[t], err);
    return rc;
}

/* Open the optimizer. [dev] NULL: without its state, for a plan. */
static err_code_t optimizer_open(train_replica_t *replica,
                                 const train_replica_plan_t *plan,
                                 dev_device_t *dev, err_t *err)
{
    optim_layout_t layout = {.dev = dev,
                             .views = replica->views,
                             .view_count = replica->view_count,
                             .elems = nn_graph_param_elems(plan->graph)};
    err_code_t rc;

    if (replica->shard != NULL) {
        layout.ranges = replica->shard->ranges;
        layout.range_count = replica->shard->range_count;
    }
    rc = optim_open(plan->config->optimizer, &plan->config->ema, &layout,
                    &replica->optim, err);
    if (rc != ERR_OK)
        return rc;
    optim_scale_lr(replica->optim, train_lr_factor(plan->config));
    if (dev == NULL)
        return ERR_OK;
    optim_clip_value(replica->optim, plan->config->train.clip_value);
    optim_place_team(optim_place(replica->optim), plan->threads);
    return ERR_OK;
}

/* All that needs memory of a device is planned. If there is enough, open the
 * optimizer again, with its state. */
static err_code_t room_check(train_replica_t *replica,
                             const train_replica_plan_t *plan, err_t *err)
{
    err_code_t rc = train_memory_check(plan, replica, err);

    if (rc != ERR_OK || plan->dry)
        return rc;
    optim_close(replica->optim);
    replica->optim = NULL;
    return optimizer_open(replica, plan, replica->dev, err);
}

err_code_t train_replica_begin(const train_replica_plan_t *plan,
                               train_replica_t *replica, err_t *err)
{
    err_code_t rc;

    replica->graph = plan->graph;
    replica->dev = plan->dev;
    rc = ddp_hook_check(&plan->config->ddp, err);
    if (rc == ERR_OK)
        rc = op_backend_get(dev_name(replica->dev), &replica->backend, err);
    if (rc == ERR_OK && dev_host_visible(plan->dev))
        rc = train_memory_check(plan, replica, err);
    if (rc == ERR_OK)
        rc = teams_begin(replica, plan, err);
    return rc;
}

err_code_t train_replica_open(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err)
{
    const bool host = dev_host_visible(plan->dev);
    err_code_t rc = views_list(replica, err);

    if (rc == ERR_OK)
        rc = shard_open(replica, plan, err);
    if (rc == ERR_OK)
        rc = optimizer_open(replica, plan,
                            host && !plan->dry ? replica->dev : NULL, err);
    if (rc == ERR_OK)
        rc = optim_schedule_open(plan->config->schedule, &plan->span,
                                 &replica->schedule, err);
    if (rc == ERR_OK)
        rc = teams_open(replica, plan, err);
    if (rc == ERR_OK && !host)
        rc = room_check(replica, plan, err);
    if (rc == ERR_OK && !plan->dry)
        rc = arenas_open(replica, plan->config->ddp.zero != 0, err);
    return rc;
}

/* Open the mirror of all that a checkpoint keeps. */
static err_code_t mirror_open(train_replica_t *replica, err_t *err)
{
    const nn_graph_t *graph = replica->graph;
    const int slots = optim_slots(replica->optim);
    ddp_hook_part_t parts[DDP_HOOK_PARTS];
    const int count = ddp_hook_parts(replica->ddp, parts);
    err_code_t rc;

    rc = train_mirror_open(replica->dev, replica->teams[0].stream,
                           &replica->mirror, err);
    if (rc == ERR_OK)
        rc = train_mirror_add(replica->mirror, replica->params,
                              nn_graph_param_elems(graph), "parameters", err);
    if (rc == ERR_OK)
        rc = train_mirror_add(replica->mirror, replica->buffers,
                              nn_graph_buffer_elems(graph),
                              "running statistics", err);
    for (int s = 0; rc == ERR_OK && s < slots; s++)
        rc = train_mirror_add(
            replica->mirror, optim_slot_data(replica->optim, s),
            optim_state_bytes(replica->optim) / ((size_t)slots * sizeof(float)),
            "the optimizer's state", err);
    for (int p = 0; rc == ERR_OK && p < count; p++)
        if (parts[p].device)
            rc =
                train_mirror_add(replica->mirror, parts[p].data, parts[p].count,
                                 "state of the comm hook", err);
    return rc;
}

static err_code_t kept_open(train_replica_t *replica,
                            const train_config_t *config,
                            const comm_group_t *group, err_t *err)
{
    const train_kept_plan_t plan = {.config = config,
                                    .graph = replica->graph,
                                    .mirror = replica->mirror,
                                    .params = replica->params,
                                    .buffers = replica->buffers,
                                    .optim = replica->optim,
                                    .shard = replica->shard,
                                    .ddp = replica->ddp,
                                    .group = group};

    return train_kept_open(&plan, &replica->kept, err);
}

/* Open the arena of sharded parameters. Collective. */
static err_code_t param_arena_open(const train_replica_plan_t *plan,
                                   train_replica_t *replica, err_t *err)
{
    err_code_t rc = comm_arena_open(
        plan->data, nn_graph_param_elems(plan->graph) * sizeof(float),
        &replica->param_arena, err);

    if (rc == ERR_OK)
        replica->params = comm_arena_data(replica->param_arena);
    return rc;
}

/* Open what ranks open together. They vote after each part, so that the next
 * part is opened by all ranks, or by none. Collective. */
static err_code_t shared_open(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err)
{
    train_sync_plan_t sync = {
        .group = plan->group, .data = plan->data, .graph = plan->graph};
    err_t mine = ERR_INIT;
    err_code_t rc;

    (void)reducer_open(replica, plan, &mine);
    rc = comm_vote(plan->group, &mine, err);
    if (rc != ERR_OK)
        return rc;
    sync.ddp = replica->ddp;
    (void)train_sync_open(&sync, &replica->sync, &mine);
    rc = comm_vote(plan->group, &mine, err);
    return rc == ERR_OK && replica->shard != NULL
               ? param_arena_open(plan, replica, err)
               : rc;
}

err_code_t train_replica_join(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err)
{
    err_code_t rc = shared_open(plan, replica, err);

    if (rc == ERR_OK)
        rc = mirror_open(replica, err);
    if (rc == ERR_OK)
        rc = kept_open(replica, plan->config, plan->group, err);
    return rc;
}

err_code_t train_replica_start(const train_replica_plan_t *plan, bool restored,
                               train_replica_t *replica, err_t *err)
{
    err_code_t rc = ERR_OK;

    train_start_touch(plan, replica);
    if (!restored)
        rc = train_start_weights(plan, replica, err);
    if (rc == ERR_OK)
        rc = train_mirror_push(replica->mirror, err);
    if (rc == ERR_OK && !restored)
        rc = optim_start(replica->optim, replica->params,
                         train_replica_stream(replica), err);
    if (rc == ERR_OK)
        teams_bind(replica, plan);
    return rc;
}

err_code_t train_replica_hash(train_replica_t *replica, uint64_t *out,
                              err_t *err)
{
    const size_t elems = nn_graph_param_elems(replica->graph);
    dev_stream_t *stream = replica->teams[0].stream;
    err_code_t rc;

    if (dev_host_visible(replica->dev)) {
        *out = hash_bytes(replica->params, elems * sizeof(float));
        return ERR_OK;
    }
    rc = op_hash(replica->backend, replica->hash, replica->params, elems,
                 stream, err);
    if (rc == ERR_OK)
        rc = dev_copy(stream, out, replica->hash, sizeof *out, DEV_DEV_TO_HOST,
                      err);
    return rc == ERR_OK ? dev_stream_wait(stream, err) : rc;
}

void train_replica_idle(train_replica_t *replica)
{
    for (int t = 0; t < replica->team_count; t++)
        if (replica->teams[t].stream != NULL)
            dev_stream_wait(replica->teams[t].stream, NULL);
}

void train_replica_close(train_replica_t *replica)
{
    train_replica_idle(replica);
    train_touch_close(replica->touch);
    train_kept_close(&replica->kept);
    train_mirror_close(replica->mirror);
    mem_free(replica->views);
    optim_crew(NULL);
    crew_close(replica->crew);
    for (int t = 0; t < replica->team_count; t++)
        train_team_close(&replica->teams[t]);
    mem_free(replica->teams);
    ddp_tree_close(replica->tree);
    mem_free(replica->ranges);
    ddp_close(replica->ddp);
    train_sync_close(replica->sync);
    if (replica->param_arena != NULL) {
        comm_arena_close(replica->param_arena);
        replica->params = NULL;
    }
    train_shard_close(replica->shard);
    optim_schedule_close(replica->schedule);
    train_io_close(&replica->io);
    optim_close(replica->optim);
    if (replica->dev != NULL) {
        dev_free(replica->dev, replica->buffers);
        dev_free(replica->dev, replica->hash);
        dev_free(replica->dev, replica->params);
    }
    *replica = (train_replica_t){0};
}
