/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/memory.h"

#include "base/str.h"
#include "train/device.h"
#include "train/feed.h"
#include "train/limits.h"

static const char *const names[TRAIN_MEMORY_KINDS] = {
    [TRAIN_MEMORY_PARAMS] = "parameters",
    [TRAIN_MEMORY_GRADS] = "gradients",
    [TRAIN_MEMORY_PARTIALS] = "partial gradients",
    [TRAIN_MEMORY_HOOK] = "comm hook",
    [TRAIN_MEMORY_OPTIMIZER] = "optimizer state",
    [TRAIN_MEMORY_NORM] = "gradient norm",
    [TRAIN_MEMORY_BUFFERS] = "running statistics",
    [TRAIN_MEMORY_ACTIVATIONS] = "activations, scratch",
    [TRAIN_MEMORY_BATCHES] = "batches",
    [TRAIN_MEMORY_CHUNKS] = "chunks, short rows",
    [TRAIN_MEMORY_READING] = "plan, reads",
    [TRAIN_MEMORY_SAVE] = "copy for checkpoints",
};

const char *train_memory_name(train_memory_kind_t kind)
{
    return names[kind];
}

uint64_t train_memory_batches(const train_replica_plan_t *plan, int64_t count)
{
    const nn_graph_t *graph = plan->graph;
    uint64_t sample = sizeof(uint64_t); /* its number */

    for (int k = 0; k < nn_graph_inputs(graph); k++)
        sample += sizeof(float) * (uint64_t)nn_graph_input_info(graph, k).elems;
    for (int k = 0; k < nn_graph_targets(graph); k++)
        sample += nn_graph_target_info(graph, k).bytes;
    return sample * (uint64_t)plan->samples * (uint64_t)count;
}

uint64_t train_memory_share(const train_replica_plan_t *plan,
                            const train_replica_t *replica)
{
    const uint64_t state = optim_state_bytes(replica->optim);
    uint64_t common = sizeof(float) * (nn_graph_param_elems(plan->graph) +
                                       nn_graph_buffer_elems(plan->graph));

    if (replica->shard == NULL)
        common += state;
    return common / (uint64_t)plan->ranks +
           (replica->shard == NULL ? 0 : state);
}

/* Bytes of the copy of what a rank writes. */
static uint64_t copy_bytes(const train_replica_plan_t *plan,
                           const train_replica_t *replica)
{
    return dev_host_visible(plan->dev) && train_config_async(plan->config)
               ? train_memory_share(plan, replica)
               : 0;
}

/* Do collectives of gradients only enqueue on the device? */
static bool sums_enqueue(const train_replica_plan_t *plan)
{
    return plan->data != NULL
               ? comm_group_enqueues(plan->data)
               : plan->ranks > 1 &&
                     train_device_nccl(plan->config, plan->dev, "ucx");
}

/* Count the memory of the comm hook. */
static err_code_t hook_count(const train_replica_plan_t *plan,
                             const train_replica_t *replica,
                             train_memory_t *memory, err_t *err)
{
    const ddp_config_t *config = &plan->config->ddp;
    const ddp_layout_t layout = train_replica_layout(replica);
    size_t bytes = 0;
    err_code_t rc = ddp_hook_bytes(config, &layout, plan->ranks, &bytes, err);

    if (dev_host_visible(plan->dev) ||
        ddp_hook_fits_device(config, plan->dev, sums_enqueue(plan)))
        memory->bytes[TRAIN_MEMORY_HOOK] = bytes;
    else if (ddp_hook_wanted(config))
        memory->hook_away = bytes + memory->bytes[TRAIN_MEMORY_GRADS];
    return rc;
}

err_code_t train_memory_of(const train_replica_plan_t *plan,
                           const train_replica_t *replica, train_memory_t *out,
                           err_t *err)
{
    const nn_graph_t *graph = plan->graph;
    const uint64_t params = nn_graph_param_elems(graph) * sizeof(float);
    const train_config_t *config = plan->config;
    const int64_t batches =
        dev_host_visible(plan->dev)
            ? config->data.prefetch + 1
            : TRAIN_FEED_SLOTS + (config->data.valid.count > 0);
    train_memory_t memory = {
        .bytes = {[TRAIN_MEMORY_PARAMS] = params,
                  [TRAIN_MEMORY_GRADS] = params,
                  [TRAIN_MEMORY_OPTIMIZER] = optim_state_bytes(replica->optim),
                  [TRAIN_MEMORY_BUFFERS] =
                      nn_graph_buffer_elems(graph) * sizeof(float),
                  [TRAIN_MEMORY_ACTIVATIONS] =
                      train_replica_activations(replica),
                  [TRAIN_MEMORY_BATCHES] = train_memory_batches(plan, batches),
                  [TRAIN_MEMORY_SAVE] = copy_bytes(plan, replica)}};

    if (replica->shard != NULL)
        memory.bytes[TRAIN_MEMORY_NORM] = train_shard_bytes(replica->shard);
    if (plan->partials > 0)
        memory.bytes[TRAIN_MEMORY_PARTIALS] =
            ddp_tree_bytes(nn_graph_param_elems(graph),
                           train_tail_doubles(graph), plan->partials);
    *out = memory;
    return hook_count(plan, replica, out, err);
}

uint64_t train_memory_total(const train_memory_t *memory)
{
    uint64_t total = 0;

    for (int k = 0; k < TRAIN_MEMORY_KINDS; k++)
        total += memory->bytes[k];
    return total;
}

/* ---- does it fit? -------------------------------------------------------- */

static err_code_t refuse(const train_memory_t *memory, const char *device,
                         size_t have, err_t *err)
{
    char needed[32], there[32];
    str_buf_t list = {0};

    for (int k = 0; k < TRAIN_MEMORY_KINDS; k++) {
        char bytes[32];

        if (memory->bytes[k] > 0)
            str_buf_add(&list, "%s%s %s", list.length > 0 ? "; " : "", names[k],
                        str_bytes(memory->bytes[k], bytes, sizeof bytes));
    }
    err_set(err, ERR_MEMORY,
            "a rank needs %s of its device (%s), but %s has %s free: try a "
            "smaller train.batch, a larger train.accumulate, or "
            "train.recompute: blocks",
            str_bytes(train_memory_total(memory), needed, sizeof needed),
            list.text, device, str_bytes(have, there, sizeof there));
    str_buf_free(&list);
    return ERR_MEMORY;
}

err_code_t train_memory_check(const train_replica_plan_t *plan,
                              const train_replica_t *replica, err_t *err)
{
    size_t have = 0, total = 0;
    train_memory_t memory;
    err_code_t rc;

    if (dev_host_visible(plan->dev)) {
        const slurm_memory_t limit = train_limits_node("");

        return train_limits_check(plan, &limit, err);
    }
    rc = dev_room(plan->dev, &have, &total, err);
    if (rc != ERR_OK)
        return rc;
    rc = train_memory_of(plan, replica, &memory, err);
    if (rc != ERR_OK)
        return rc;
    return train_memory_total(&memory) <= have
               ? ERR_OK
               : refuse(&memory, dev_name(plan->dev), have, err);
}
