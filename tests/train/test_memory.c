/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a run needs of its device: the numbers of each kind, a device that is
 * too small by one byte, refused before anything is allocated, and what --check
 * prints.
 */
#include "train/memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "dev/dev_far.h"
#include "lib/facts.h"
#include "train/data.h"
#include "train/harness.h"
#include "train/limits.h"

/* A run of one rank that is read and planned, but not opened. */
typedef struct rig {
    harness_t harness;
    tree_t *tree;
    train_config_t config;
    train_data_t train, valid;
    train_replica_plan_t plan;
    train_replica_t replica;
} rig_t;

static void rig_open(rig_t *rig, const char *device, const char *setting)
{
    train_split_t split = {.size = 1};
    nn_graph_t *graph = NULL;
    err_t err = ERR_INIT;

    memset(rig, 0, sizeof *rig);
    harness_open(&rig->harness, 48);
    rig->harness.settings[0] = "optimizer={adamw: {lr: 0.01}}";
    rig->harness.settings[1] = setting;
    cr_assert_eq(harness_config(&rig->harness, &rig->tree, &rig->config, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(
        nn_graph_open(rig->config.model, rig->config.loss, &graph, &err),
        ERR_OK, "%s", err.text);
    split.config = &rig->config;
    split.graph = graph;
    cr_assert_eq(train_data_open(&split, &rig->train, &err), ERR_OK, "%s",
                 err.text);
    rig->plan = (train_replica_plan_t){
        .config = &rig->config,
        .graph = graph,
        .ranks = 1,
        .threads = 1,
        .teams = 1,
        .team_threads = 1,
        .compute_type = OP_FLOAT32,
        .span = {.steps = 2, .epoch_steps = 2},
        .sizes = train_sizes_of(&rig->train, &rig->valid),
        .samples = train_samples_of(&rig->train, &rig->valid)};
    cr_assert_eq(dev_open(device, 0, &rig->plan.dev, &err), ERR_OK);
}

static void rig_close(rig_t *rig)
{
    train_replica_close(&rig->replica);
    train_data_close(&rig->train);
    nn_graph_close(rig->plan.graph);
    dev_close(rig->plan.dev);
    train_config_free(&rig->config);
    tree_free(rig->tree);
    harness_close(&rig->harness);
}

static err_code_t replica_open(rig_t *rig, err_t *err)
{
    err_code_t rc = train_replica_begin(&rig->plan, &rig->replica, err);

    return rc == ERR_OK ? train_replica_open(&rig->plan, &rig->replica, err)
                        : rc;
}

/* Bytes that the run needs of its device. */
static uint64_t plan_bytes(const char *device, const char *setting,
                           train_memory_t *memory)
{
    rig_t rig;
    err_t err = ERR_INIT;

    rig_open(&rig, device, setting);
    rig.plan.dry = true;
    cr_assert_eq(replica_open(&rig, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(train_memory_of(&rig.plan, &rig.replica, memory, &err), ERR_OK,
                 "%s", err.text);
    if (strcmp(device, "far") == 0)
        cr_expect_eq(dev_far_counts(rig.plan.dev).allocs, 0,
                     "a plan allocates");
    rig_close(&rig);
    return train_memory_total(memory);
}

/* With checkpoint.async a rank copies what it writes: all state, if it is the
 * only rank. On a device the mirror is the copy. */
Test(memory, the_copy_for_checkpoints)
{
    train_memory_t memory;

    plan_bytes("cpu", "checkpoint.async=false", &memory);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_SAVE], 0);
    plan_bytes("cpu", "checkpoint.async=true", &memory);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_SAVE],
                 memory.bytes[TRAIN_MEMORY_PARAMS] +
                     memory.bytes[TRAIN_MEMORY_OPTIMIZER] +
                     memory.bytes[TRAIN_MEMORY_BUFFERS]);
    plan_bytes("far", "checkpoint.async=true", &memory);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_SAVE], 0);
}

Test(memory, is_known_by_kind)
{
    const uint64_t params = sizeof(float) * (12 * 16 + 16 + 16 * 2 + 2);
    train_memory_t memory;
    uint64_t sum = 0;

    plan_bytes("far",
               "model={input: [12], layers: [{linear: {out: 16}}, relu, "
               "{linear: {out: 2}}]}",
               &memory);
    /* Views of the arena are padded. */
    cr_expect_geq(memory.bytes[TRAIN_MEMORY_PARAMS], params);
    cr_expect_lt(memory.bytes[TRAIN_MEMORY_PARAMS], params + 4 * 64);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_GRADS],
                 memory.bytes[TRAIN_MEMORY_PARAMS]);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_OPTIMIZER],
                 2 * memory.bytes[TRAIN_MEMORY_PARAMS]);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_BUFFERS], 0);
    cr_expect_gt(memory.bytes[TRAIN_MEMORY_ACTIVATIONS], 24 * 16 * 4);
    /* two batches of 24 samples, and one for evaluations: inputs, label and
     * number */
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_BATCHES],
                 3 * 24 * (12 * sizeof(float) + 2 * 8));
    for (int k = 0; k < TRAIN_MEMORY_KINDS; k++)
        sum += memory.bytes[k];
    cr_expect_eq(train_memory_total(&memory), sum);
}

Test(memory, of_the_host_has_the_batches_that_are_read_ahead)
{
    train_memory_t far, cpu;

    plan_bytes("far", "data.prefetch=7", &far);
    plan_bytes("cpu", "data.prefetch=7", &cpu);
    cr_expect_eq(3 * cpu.bytes[TRAIN_MEMORY_BATCHES],
                 8 * far.bytes[TRAIN_MEMORY_BATCHES]);
    cr_expect_eq(cpu.bytes[TRAIN_MEMORY_PARAMS],
                 far.bytes[TRAIN_MEMORY_PARAMS]);
    cr_expect_eq(cpu.bytes[TRAIN_MEMORY_ACTIVATIONS],
                 far.bytes[TRAIN_MEMORY_ACTIVATIONS]);
}

Test(memory, a_device_that_is_too_small_is_refused_with_the_numbers)
{
    train_memory_t memory;
    const uint64_t need = plan_bytes("far", NULL, &memory);
    rig_t rig;
    err_t err = ERR_INIT;

    rig_open(&rig, "far", NULL);
    dev_far_room(rig.plan.dev, need - 1);
    cr_expect_eq(replica_open(&rig, &err), ERR_MEMORY);
    FACTS(err.text, "parameters", "optimizer state", "activations", "far",
          "train.recompute: blocks");
    cr_expect_eq(dev_far_counts(rig.plan.dev).allocs, 0,
                 "allocated before it was refused");
    rig_close(&rig);

    rig_open(&rig, "far", NULL);
    dev_far_room(rig.plan.dev, need);
    cr_expect_eq(replica_open(&rig, &err), ERR_OK, "%s", err.text);
    cr_expect_gt(dev_far_counts(rig.plan.dev).allocs, 0);
    rig_close(&rig);
}

Test(memory, shards_count_their_norm_and_allocate_it_after_the_check)
{
    train_memory_t memory;
    rig_t rig;
    err_t err = ERR_INIT;

    plan_bytes("far", NULL, &memory);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_NORM], 0);
    plan_bytes("far", "ddp={zero: 1}", &memory);
    cr_expect_gt(memory.bytes[TRAIN_MEMORY_NORM], 0);

    rig_open(&rig, "far", "ddp={zero: 1}");
    dev_far_room(rig.plan.dev, train_memory_total(&memory) - 1);
    cr_expect_eq(replica_open(&rig, &err), ERR_MEMORY);
    FACTS(err.text, "gradient norm");
    cr_expect_eq(dev_far_counts(rig.plan.dev).allocs, 0,
                 "allocated before it was refused");
    rig_close(&rig);
}

/* A hook of the device is part of what the device needs. A hook of the host
 * works on a copy of the gradients in the memory of the host. */
Test(memory, a_comm_hook_counts_where_it_works)
{
    train_memory_t memory;
    rig_t rig;
    err_t err = ERR_INIT;

    plan_bytes("far", "ddp={hook: bf16}", &memory);
    cr_expect_eq(memory.bytes[TRAIN_MEMORY_HOOK], 0);
    cr_expect_gt(memory.hook_away, memory.bytes[TRAIN_MEMORY_GRADS]);
    plan_bytes("cpu", "ddp={hook: bf16}", &memory);
    cr_expect_gt(memory.bytes[TRAIN_MEMORY_HOOK], 0);
    cr_expect_eq(memory.hook_away, 0);

    rig_open(&rig, "far", "ddp={hook: bf16, backend: nccl}");
    rig.plan.ranks = 2;
    rig.plan.dry = true;
    cr_assert_eq(replica_open(&rig, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(train_memory_of(&rig.plan, &rig.replica, &memory, &err),
                 ERR_OK);
    cr_expect_gt(memory.bytes[TRAIN_MEMORY_HOOK], 0);
    cr_expect_eq(memory.hook_away, 0);
    rig_close(&rig);

    rig_open(&rig, "far", "ddp={hook: bf16, backend: nccl}");
    rig.plan.ranks = 2;
    dev_far_room(rig.plan.dev, train_memory_total(&memory) - 1);
    cr_expect_eq(replica_open(&rig, &err), ERR_MEMORY);
    FACTS(err.text, "comm hook");
    cr_expect_eq(dev_far_counts(rig.plan.dev).allocs, 0,
                 "allocated before it was refused");
    rig_close(&rig);
}

enum { SAMPLES = 4096, CHUNK = 16 };

/* What --check prints for [ranks] ranks; free() it. Not NULL: [memory] is a
 * setting of data.memory, and the training data is in chunks. */
static char *check_print(const char *device, const char *memory, int ranks)
{
    char path[] = "/tmp/cddp-check-XXXXXX";
    const int old = dup(STDOUT_FILENO), catcher = mkstemp(path);
    harness_t harness;
    train_config_t config;
    tree_t *tree;
    err_t err = ERR_INIT;
    err_code_t rc;
    char *text;

    harness_open(&harness, memory == NULL ? 48 : SAMPLES);
    harness.settings[0] = device;
    harness.settings[1] = "data.threads=3";
    if (memory != NULL) {
        harness_chunks_add(&harness, "/c", CHUNK, false);
        harness.settings[2] = memory;
        harness.settings[3] = "data.input={path: /c}";
        harness.settings[4] = "data.valid=[]";
    }
    cr_assert_eq(harness_config(&harness, &tree, &config, &err), ERR_OK, "%s",
                 err.text);
    fflush(stdout);
    dup2(catcher, STDOUT_FILENO);
    rc = train_check(&config, ranks, &err);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    close(catcher);
    cr_assert_eq(rc, ERR_OK, "%s", err.text);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    unlink(path);
    train_config_free(&config);
    tree_free(tree);
    harness_close(&harness);
    return text;
}

Test(memory, check_prints_that_of_the_device_and_of_the_host)
{
    char *far = check_print("train.device=far", NULL, 1);
    char *two = check_print("train.device=far", NULL, 2);
    char *cpu = check_print("train.device=cpu", NULL, 1);
    char *one = check_print("checkpoint.local=/dev/shm", NULL, 1);
    char *local = check_print("checkpoint.local=/dev/shm", NULL, 2);

    cr_expect_null(strstr(cpu, "local checkpoints"));
    FACTS(one, "two local checkpoints per rank in /dev/shm", "its own parts");
    cr_expect_null(strstr(one, "if several nodes"));
    FACTS(local, "if several nodes, copies");
    FACTS(far, "on far", "activations, scratch", "free there", "1.0 TiB");
    FACTS(far, "workspace of an op");
    FACTS(far, "memory of the host", "copy for checkpoints", "batches, pinned");
    /* One rank alone has no sums to stage. */
    cr_expect_null(strstr(far, "staged sums"));
    FACTS(two, "staged sums, pinned");
    FACTS(cpu, "parameters", "batches read ahead", "total");
    cr_expect_null(strstr(cpu, "memory of the host"));
    cr_expect_null(strstr(cpu, "gradient norm"));
    FACTS(cpu, "  train input /x: pread\n", "  valid target /y: pread\n",
          "  train: 2 threads read ahead\n");
    /* This is for the targets: the inputs are contiguous and have long rows. */
    FACTS(cpu, "chunks, short rows");
    free(local);
    free(one);
    free(cpu);
    free(two);
    free(far);
}

/* The number behind the name of a kind in [text], as it is printed. */
static void kind_expect(char *text, const char *name, const char *number)
{
    const char *line = strstr(text, name);
    char found[64] = "";

    cr_assert_not_null(line, "no %s in %s", name, text);
    sscanf(line + strlen(name), " %63[^\n]", found);
    cr_expect_str_eq(found, number);
    free(text);
}

Test(memory, of_decoded_chunks_is_bounded_by_data_memory)
{
    const char *const name = "chunks, short rows";

    /* All chunks fit into the default; the labels take 16 KiB of it. */
    kind_expect(check_print("train.device=cpu", "data.memory=0", 1), name,
                "208.0 KiB");
    kind_expect(check_print("train.device=cpu", "data.memory=65536", 1), name,
                "64.0 KiB");
    kind_expect(check_print("train.device=far", "data.memory=65536", 1), name,
                "64.0 KiB");
}

Test(memory, of_decoded_chunks_is_a_part_of_that_of_the_node)
{
    slurm_memory_t limit = {.bytes = UINT64_C(64) << 30};

    cr_expect_eq(train_limits_ranks(NULL, 0, 4), 4);
    cr_expect_eq(train_limits_pool(&limit, 4), UINT64_C(1) << 30);
    cr_expect_eq(train_limits_pool(&limit, 1), UINT64_C(4) << 30);
    limit.bytes = UINT64_C(1) << 30;
    cr_expect_eq(train_limits_pool(&limit, 4), UINT64_C(128) << 20);
}
