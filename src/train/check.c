/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `--check`: opens what a run opens, as rank 0 of the given number of ranks,
 * plans every exec, and prints the plan. It writes nothing and needs no other
 * rank.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "comm/comm_staged.h"
#include "hdf5io/dataset_tell.h"
#include "nn/cost.h"
#include "train/data.h"
#include "train/device.h"
#include "train/init.h"
#include "train/lone.h"
#include "train/memory.h"
#include "train/replica.h"
#include "train/run.h"
#include "train/score.h"
#include "train/stage.h"
#include "train/ways.h"

/* Bytes that a run needs in addition to those of this process: stacks and heaps
 * of threads, the code of training, and what HDF5 needs to write. Measured:
 * 2.5 MiB, at any size of model and data (docs/benchmarks/io.md). */
#define PROGRAM_LATER ((uint64_t)5 << 19)

typedef struct check {
    const train_config_t *config;
    int ranks;
    nn_graph_t *graph;
    train_data_t train, valid;
    train_replica_t replica;
    train_device_t device;
    op_type_t compute_type;
    int teams;
    train_replica_plan_t plan;
    train_memory_t memory;
} check_t;

/* Will NCCL sum the gradients? The run of several ranks that --check describes
 * uses ucx for everything else. */
static bool by_nccl(const check_t *check)
{
    return check->ranks > 1 &&
           train_device_nccl(check->config, check->device.dev, "ucx");
}

/* Check that the metrics can be used with the losses. */
static err_code_t metrics_check(const check_t *check, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int k = 0; k < nn_graph_losses(check->graph) && rc == ERR_OK; k++) {
        train_scores_t *scores = NULL;

        rc = train_scores_open(check->config->metrics, check->graph, k, &scores,
                               err);
        train_scores_close(scores);
    }
    return rc;
}

static err_code_t splits_open(check_t *check, err_t *err)
{
    train_split_t split = {.config = check->config,
                           .graph = check->graph,
                           .size = check->ranks,
                           .cores = thread_cores()};
    const train_deal_t deal = {check->config, check->graph, &check->train,
                               check->ranks, true};
    unsigned lone = 0;
    err_code_t rc;

    rc = train_data_open(&split, &check->train, err);
    if (rc == ERR_OK)
        rc = train_lone_check(&deal, &lone, err);
    split.valid = true;
    if (rc == ERR_OK)
        rc = train_data_open(&split, &check->valid, err);
    return rc;
}

static err_code_t replica_open(check_t *check, err_t *err)
{
    const train_config_t *config = check->config;
    const int threads =
        config->train.threads > 0 ? (int)config->train.threads : thread_cores();
    err_code_t rc;

    check->teams =
        train_teams(config, &check->train,
                    dev_host_visible(check->device.dev) ? threads : 1);
    check->plan = (train_replica_plan_t){
        .config = config,
        .graph = check->graph,
        .ranks = check->ranks,
        .threads = 1,
        .team_threads = train_team_threads(config, 1),
        .dev = check->device.dev,
        .compute_type = check->compute_type,
        .dry = true,
        .span = {.steps = config->train.epochs * check->train.steps,
                 .epoch_steps = check->train.steps},
        .teams = check->teams,
        .sizes = train_sizes_of(&check->train, &check->valid),
        .samples = train_samples_of(&check->train, &check->valid),
        .partials =
            config->train.reproducible
                ? train_partials(&check->train, config->train.microbatch,
                                 config->train.batch, check->teams)
                : 0};
    rc = train_replica_begin(&check->plan, &check->replica, err);
    if (rc == ERR_OK)
        rc = train_replica_open(&check->plan, &check->replica, err);
    if (rc == ERR_OK)
        rc =
            train_memory_of(&check->plan, &check->replica, &check->memory, err);
    if (rc == ERR_OK && config->train.reproducible && by_nccl(check))
        check->memory.bytes[TRAIN_MEMORY_PARTIALS] += COMM_TREE_SCRATCH;
    return rc;
}

static err_code_t check_open(check_t *check, err_t *err)
{
    const train_config_t *config = check->config;
    err_code_t rc = train_device_open(config, NULL, 0, &check->device, err);

    if (rc == ERR_OK)
        rc = train_device_check(config, NULL, &check->device, err);
    if (rc == ERR_OK)
        rc = train_precision_choose(config, check->device.dev, NULL,
                                    &check->compute_type, err);
    if (rc == ERR_OK)
        rc = nn_graph_open(config->model, config->loss, &check->graph, err);
    if (rc == ERR_OK && train_init_given(config))
        rc = train_init_check(config, check->graph, err);
    if (rc == ERR_OK)
        rc = metrics_check(check, err);
    if (rc == ERR_OK)
        rc = splits_open(check, err);
    if (rc == ERR_OK)
        rc = replica_open(check, err);
    return rc;
}

/* Bytes of decoded chunks and short rows of both splits, at most. */
static uint64_t chunks_most(const check_t *check)
{
    const hdf5io_dataset_t *const both[] = {check->train.dataset,
                                            check->valid.dataset};
    uint64_t bytes = 0;

    for (int i = 0; i < 2; i++)
        if (both[i] != NULL)
            bytes += hdf5io_dataset_chunks_most(both[i]);
    return bytes;
}

/* Bytes of the plans and the reads of both splits. */
static uint64_t reading_of(const check_t *check)
{
    return train_data_reading(&check->train) +
           train_data_reading(&check->valid);
}

static void shape_format(const int64_t *dims, int ndim, char *out, size_t room)
{
    size_t at = 0;

    for (int d = 0; d < ndim && at < room; d++)
        at += (size_t)snprintf(out + at, room - at, "%s%lld", d == 0 ? "" : "x",
                               (long long)dims[d]);
}

/* The training exec with the largest micro-batch; NULL if there is none. */
static const train_team_exec_t *largest_exec(const check_t *check)
{
    const train_team_t *team = &check->replica.teams[0];
    const train_team_exec_t *largest = NULL;

    for (int i = 0; i < team->exec_count; i++) {
        const train_team_exec_t *exec = &team->execs[i];

        if (exec->training && (largest == NULL || exec->batch > largest->batch))
            largest = exec;
    }
    return largest;
}

/* Write the plan of [layer], such as "blocked, bf16, in place, recomputed in
 * block 2" or "plain, by cuDNN", into [out]. */
static void layer_plan_format(const nn_graph_t *graph, const nn_exec_t *exec,
                              int layer, char *out, size_t room)
{
    const nn_layer_plan_t plan = nn_exec_layer_plan(exec, layer);
    size_t at;

    if (plan.joined >= 0)
        at = (size_t)snprintf(out, room, "computed with %s",
                              nn_graph_layer(graph, plan.joined).name);
    else
        at = (size_t)snprintf(
            out, room, "%s%s%s%s%s", plan.blocked ? "blocked" : "plain",
            plan.stored_as == OP_BFLOAT16 ? ", bf16" : "",
            plan.in_place ? ", in place" : "", plan.note != NULL ? ", " : "",
            plan.note != NULL ? plan.note : "");
    if (plan.recomputed && at < room)
        snprintf(out + at, room - at, ", recomputed in block %d", plan.block);
}

static void layers_print(const check_t *check)
{
    const nn_graph_t *graph = check->graph;
    const train_team_exec_t *largest = largest_exec(check);
    size_t total = 0;
    char text[64];

    str_print("%-20s %-12s %-18s %12s  %s\n", "layer", "kind", "output",
              "parameters", largest != NULL ? "storage of the output" : "");
    for (int i = 0; i < nn_graph_layers(graph); i++) {
        nn_layer_info_t layer = nn_graph_layer(graph, i);
        char params[32], plan[256] = "";

        shape_format(layer.dims, layer.ndim, text, sizeof text);
        if (largest != NULL)
            layer_plan_format(graph, largest->exec, i, plan, sizeof plan);
        str_print("%-20s %-12s %-18s %12s  %s\n", layer.name, layer.kind, text,
                  str_count(layer.params, params, sizeof params), plan);
        total += layer.params;
    }
    str_print("%-20s %-12s %-18s %12s\n", "total", "", "",
              str_count(total, text, sizeof text));
    for (int k = 0; k < nn_graph_losses(graph); k++) {
        nn_loss_info_t loss = nn_graph_loss_info(graph, k);

        str_print("loss: %s", loss.kind);
        if (nn_graph_losses(graph) > 1)
            str_print(", %s, weight %g, of target %s", loss.name, loss.weight,
                      nn_graph_target_info(graph, loss.target).name);
        if (loss.sample_weight >= 0)
            str_print(", weights of samples: %s",
                      nn_graph_target_info(graph, loss.sample_weight).name);
        str_print("\n");
    }
}

static void split_print(const char *name, const train_data_t *data,
                        const train_config_t *config)
{
    char samples[32];
    char bytes[32];
    char steps[32];
    str_buf_t ways = {0};

    if (data->dataset == NULL) {
        str_print("%s: none\n", name);
        return;
    }
    str_print("%s: %s samples in %d shard%s, %s per sample; an epoch is %s "
              "steps of %lld samples\n",
              name,
              str_count((uint64_t)hdf5io_dataset_samples(data->dataset),
                        samples, sizeof samples),
              hdf5io_dataset_shards(data->dataset),
              hdf5io_dataset_shards(data->dataset) == 1 ? "" : "s",
              str_bytes(hdf5io_dataset_sample_bytes(data->dataset), bytes,
                        sizeof bytes),
              str_count((uint64_t)data->steps, steps, sizeof steps),
              (long long)config->train.batch);
    train_ways_add(name, data, &ways);
    str_print("%s", ways.text);
    str_buf_free(&ways);
}

static void stage_print(const check_t *check)
{
    str_buf_t text = {0};

    train_stage_add(check->config, &check->train, &check->valid, &text);
    if (text.length > 0)
        str_print("%s", text.text);
    str_buf_free(&text);
}

static void optimizer_print(const check_t *check)
{
    const optim_t *optim = check->replica.optim;
    char frozen[32];

    str_print("optimizer: %s, learning rate %.6g", optim_name(optim),
              optim_lr(optim));
    if (check->config->train.scale_lr != TRAIN_SCALE_NONE)
        str_print(" (scaled by %.6g for the batch)",
                  train_lr_factor(check->config));
    if (optim_frozen(optim) > 0)
        str_print(", %s parameters frozen",
                  str_count(optim_frozen(optim), frozen, sizeof frozen));
    str_print("\n");
}

static void memory_line(const char *what, uint64_t bytes)
{
    char text[32];

    str_print("  %-22s %12s\n", what, str_bytes(bytes, text, sizeof text));
}

/* Print what the host's memory holds besides, if the rank computes on another
 * device. */
static void host_print(const check_t *check)
{
    const uint64_t *bytes = check->memory.bytes;
    const uint64_t chunks = chunks_most(check);

    if (dev_host_visible(check->device.dev))
        return;
    str_print("memory of the host per rank:\n");
    memory_line("copy for checkpoints", bytes[TRAIN_MEMORY_PARAMS] +
                                            bytes[TRAIN_MEMORY_OPTIMIZER] +
                                            bytes[TRAIN_MEMORY_BUFFERS]);
    memory_line(
        "batches, pinned",
        train_memory_batches(&check->plan, check->config->data.prefetch + 2));
    if (chunks > 0)
        memory_line(train_memory_name(TRAIN_MEMORY_CHUNKS), chunks);
    memory_line(train_memory_name(TRAIN_MEMORY_READING), reading_of(check));
    if (check->ranks > 1 && !by_nccl(check))
        memory_line("staged sums, pinned", comm_staged_bytes(check->ranks));
    if (check->memory.hook_away > 0)
        memory_line(train_memory_name(TRAIN_MEMORY_HOOK),
                    check->memory.hook_away);
}

/* Print what local checkpoints need on a node, in memory or on a disk. */
static void local_print(const check_t *check)
{
    const uint64_t share = train_memory_share(&check->plan, &check->replica);

    if (check->config->checkpoint.local[0] == '\0')
        return;
    str_print("two local checkpoints per rank in %s:\n",
              check->config->checkpoint.local);
    memory_line("its own parts", 2 * share);
    if (check->ranks > 1)
        memory_line("if several nodes, copies", 2 * share);
}

static err_code_t memory_print(check_t *check, err_t *err)
{
    const bool host = dev_host_visible(check->device.dev);
    /* What this process needs before a replica is there, and later. */
    const uint64_t program = host ? (uint64_t)mem_peak() + PROGRAM_LATER : 0;
    size_t have = 0, all = 0;
    err_code_t rc = dev_room(check->device.dev, &have, &all, err);

    if (rc != ERR_OK)
        return rc;
    if (host) {
        check->memory.bytes[TRAIN_MEMORY_CHUNKS] = chunks_most(check);
        check->memory.bytes[TRAIN_MEMORY_READING] = reading_of(check);
    }
    str_print("memory per rank (%d ranks", check->ranks);
    if (check->config->train.reproducible)
        str_print(", %d micro-batches side by side", check->teams);
    if (!host)
        str_print(", on %s", check->device.name);
    str_print("):\n");
    for (int k = 0; k < TRAIN_MEMORY_KINDS; k++) {
        const uint64_t bytes = check->memory.bytes[k];

        if (bytes == 0 &&
            (k == TRAIN_MEMORY_PARTIALS || k == TRAIN_MEMORY_HOOK ||
             k == TRAIN_MEMORY_NORM || k == TRAIN_MEMORY_CHUNKS ||
             k == TRAIN_MEMORY_READING || k == TRAIN_MEMORY_SAVE))
            continue;
        memory_line(host && k == TRAIN_MEMORY_BATCHES ? "batches read ahead"
                                                      : train_memory_name(k),
                    bytes);
    }
    if (program > 0)
        memory_line("program, libraries", program);
    memory_line("total", train_memory_total(&check->memory) + program);
    if (!host)
        memory_line("free there", have);
    host_print(check);
    local_print(check);
    return ERR_OK;
}

static void recompute_print(const check_t *check,
                            const train_team_exec_t *largest,
                            const nn_plan_facts_t *facts, const nn_cost_t *cost)
{
    if (check->config->train.recompute == TRAIN_RECOMPUTE_NONE)
        return;
    if (facts->recomputed == 0)
        str_print("  recompute: nothing, as no blocks of layers would save "
                  "memory\n");
    else
        str_print("  recompute: %d layers in %d blocks (the last block keeps "
                  "all); %.4g MFLOP\n  more per sample\n",
                  facts->recomputed, facts->recomputed_blocks,
                  cost->again_flops / (double)largest->batch * 1e-6);
}

/* Print the plan of the largest micro-batch. */
static void plan_print(const check_t *check)
{
    const train_team_exec_t *largest = largest_exec(check);
    nn_plan_facts_t facts;
    nn_cost_t cost;

    if (largest == NULL)
        return;
    facts = nn_exec_facts(largest->exec);
    cost = nn_exec_cost(largest->exec, 1, 1);
    str_print("plan of %lld samples at once, %s:\n", (long long)largest->batch,
              check->compute_type == OP_FLOAT32    ? "fp32"
              : check->compute_type == OP_BFLOAT16 ? "products in bf16"
                                                   : "products in tf32");
    str_print("  per sample: %.4g MFLOP forward, %.4g MFLOP backward\n",
              cost.forward_flops / (double)largest->batch * 1e-6,
              cost.backward_flops / (double)largest->batch * 1e-6);
    recompute_print(check, largest, &facts, &cost);
    memory_line("kept for backward", facts.kept);
    memory_line("without reuse", facts.apart);
    memory_line("workspace of an op", facts.scratch);
    str_print(
        "  of %d layers %d work in place, %d have outputs in blocked layout, "
        "%d add their bias\n  within the product, %d are computed with "
        "another layer\n",
        facts.layers, facts.in_place, facts.blocked, facts.biases, facts.fused);
    if (check->compute_type == OP_BFLOAT16)
        str_print(
            "  stored as bf16: the outputs of %d layers, forward and backward; "
            "of %d more,\n  which products read, forward only\n",
            facts.bf16, facts.bf16_output);
}

err_code_t train_check(const train_config_t *config, int ranks, err_t *err)
{
    check_t check = {.config = config, .ranks = ranks};
    err_code_t rc = ERR_OK;

    if (config->train.batch < ranks)
        return err_set(err, ERR_CONFIG,
                       "train.batch is %lld, smaller than the %d ranks: some "
                       "would never have a sample; raise it or start fewer "
                       "ranks",
                       (long long)config->train.batch, ranks);
    rc = check_open(&check, err);
    if (rc == ERR_OK) {
        layers_print(&check);
        optimizer_print(&check);
        split_print("train", &check.train, config);
        split_print("valid", &check.valid, config);
        stage_print(&check);
        rc = memory_print(&check, err);
    }
    if (rc == ERR_OK) {
        plan_print(&check);
        str_print("updates: %lld in %lld epoch%s\n",
                  (long long)(config->train.epochs * check.train.steps),
                  (long long)config->train.epochs,
                  config->train.epochs == 1 ? "" : "s");
    }
    train_replica_close(&check.replica);
    train_data_close(&check.valid);
    train_data_close(&check.train);
    nn_graph_close(check.graph);
    dev_close(check.device.dev);
    return rc;
}
