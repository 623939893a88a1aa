/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ZeRO-1 in whole runs: the last checkpoint has the bits of a run without
 * ZeRO-1, for every optimizer, clipping, average and group setting; optimizer
 * state can move between rank counts and to and from runs without shards; and
 * a rank keeps only its share of the state.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "lib/facts.h"
#include "optim/optim_rig.h"
#include "train/harness.h"
#include "train/shard.h"

/* 101 samples in batches of 24: the last step of an epoch has 5. */
#define SAMPLES 101

/* 22,402 parameters, which fill several units in several buckets. */
#define MODEL                                                              \
    "model={input: [12], layers: [{linear: {out: 160}}, batchnorm, relu, " \
    "{dropout: {rate: 0.1}}, {linear: {out: 120}}, relu, {linear: {out: 2}}]}"

#define DDP \
    "ddp={first_bucket_mb: 0.02, bucket_cap_mb: 0.04, last_bucket_mb: 0.02}"

/* Open with three settings of the test and then [more], which ends with NULL.
 */
static void zero_open(harness_t *harness, const char *zero,
                      const char *const *more)
{
    int count = 0;

    harness_open(harness, SAMPLES);
    harness->settings[count++] = MODEL;
    harness->settings[count++] = DDP;
    harness->settings[count++] = zero;
    for (; more != NULL && *more != NULL; more++)
        harness->settings[count++] = *more;
}

/* ---- the same run -------------------------------------------------------- */

typedef struct kind {
    const char *what;
    const char *settings[6];
} kind_t;

static const kind_t kinds[] = {
    {"adamw, clip, average",
     {"optimizer={adamw: {lr: 0.01}}", "train.clip_norm=0.5", "ema.decay=0.8"}},
    {"sgd, clip by value, accumulate",
     {"optimizer={sgd: {lr: 0.05, momentum: 0.9}}", "train.clip_value=0.01",
      "train.accumulate=3"}},
    {"adamw with amsgrad, clip by norm and by value",
     {"optimizer={adamw: {lr: 0.01, amsgrad: true}}", "train.clip_norm=0.5",
      "train.clip_value=0.01"}},
    {"sgd, dampening",
     {"optimizer={sgd: {lr: 0.05, momentum: 0.9, dampening: 0.5}}"}},
    {"lamb, groups",
     {"optimizer={lamb: {lr: 0.01}, groups: [{match: ['*.bias'], "
      "weight_decay: 0}, {match: ['linear1.*'], freeze: true}]}"}},
    {"lars, average not evaluated",
     {"optimizer={lars: {lr: 0.5, adapt_vectors: true}}", "ema.decay=0.8",
      "ema.evaluate=false"}},
    {"rmsprop, reproducible",
     {"optimizer={rmsprop: {lr: 0.001}}", "train.reproducible=true",
      "train.microbatch=5", "train.clip_norm=0.5"}},
    {"sgd, a comm hook",
     {"optimizer={sgd: {lr: 0.05, momentum: 0.9}}",
      "ddp.hook={powersgd: {rank: 2, start_step: 3}}"}},
    {"adam, replica check",
     {"optimizer={adam: {lr: 0.01}}", "ddp.check_every=2 steps"}},
};

static void kind_check(const kind_t *kind, int ranks)
{
    train_outcome_t one, two;
    harness_t plain, zero;

    zero_open(&plain, "ddp.zero=0", kind->settings);
    zero_open(&zero, "ddp.zero=1", kind->settings);
    harness_run_ok(&plain, ranks, &one);
    harness_run_ok(&zero, ranks, &two);
    harness_compare(&plain, &zero, 15, 0, kind->what);
    cr_expect_eq(memcmp(&one.loss, &two.loss, sizeof one.loss), 0,
                 "%s: loss %.17g and %.17g", kind->what, one.loss, two.loss);
    harness_close(&zero);
    harness_close(&plain);
}

Test(zero, has_the_bits_of_a_run_without_it, .timeout = 240)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        kind_check(&kinds[i], 2 + (int)i % 3);
    kind_check(&kinds[0], 1);
    kind_check(&kinds[2], 7);
}

/* ---- another number of ranks, and back ----------------------------------- */

/* In reproducible mode a change of the rank count, or from and to shards,
 * changes no bit. */
Test(zero, moves_between_rank_counts_and_runs_without_shards, .timeout = 240)
{
    static const struct {
        int ranks;
        const char *zero;
    } lives[] = {{3, "ddp.zero=1"},
                 {2, "ddp.zero=1"},
                 {4, "ddp.zero=0"},
                 {5, "ddp.zero=1"},
                 {1, "ddp.zero=1"}};
    static const char *const more[] = {"optimizer={lamb: {lr: 0.01}}",
                                       "train.reproducible=true",
                                       "train.microbatch=5",
                                       "train.clip_norm=0.5",
                                       "ema.decay=0.8",
                                       NULL};
    harness_t straight, stopped;
    train_outcome_t one, two;
    err_t err = ERR_INIT;
    err_code_t rc;
    int life = 0;

    zero_open(&straight, "ddp.zero=0", more);
    harness_run_ok(&straight, 2, &one);
    zero_open(&stopped, "ddp.zero=1", more);
    do {
        stopped.settings[2] = lives[life % 5].zero;
        harness_interrupt(&stopped, 4 * lives[life % 5].ranks);
        rc = harness_run(&stopped, lives[life % 5].ranks, &two, &err);
        cr_assert(rc == ERR_OK || rc == ERR_REQUEUE, "%s", err.text);
        cr_assert_lt(++life, 100);
    } while (rc == ERR_REQUEUE);
    cr_assert_geq(life, 5);
    harness_compare(&straight, &stopped, 15, 0, "interrupted");
    cr_expect_eq(memcmp(&one.loss, &two.loss, sizeof one.loss), 0);
    harness_close(&stopped);
    harness_close(&straight);
}

/* ---- errors and memory --------------------------------------------------- */

Test(zero, a_bad_label_still_ends_all_ranks)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;

    zero_open(&harness, "ddp.zero=1", NULL);
    harness_label_set(&harness, 17, 9);
    cr_assert_eq(harness_run(&harness, 3, &out, &err), ERR_DATA);
    cr_assert(strstr(err.text, "17"), "%s", err.text);
    harness_close(&harness);
}

Test(zero, a_gradient_that_is_no_number_ends_all_ranks)
{
    static const char *const more[] = {
        "optimizer={sgd: {lr: 1.0e6, momentum: 0.9}}", "schedule=constant",
        NULL};
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;

    zero_open(&harness, "ddp.zero=1", more);
    cr_assert_eq(harness_run(&harness, 3, &out, &err), ERR_DIVERGED, "%s",
                 err.text);
    FACTS(err.text, " became ", " in step ",
          ": lower the optimizer's lr, warm up longer or set train.clip_norm");
    harness_close(&harness);
}

/* Bytes of optimizer state of rank [rank] of [size] for the parameters of
 * [layout]. */
static size_t state_bytes(int rank, int size, const ddp_layout_t *layout,
                          const tree_t *optimizer)
{
    const ddp_config_t config = {
        .first_bucket_mb = 1, .bucket_cap_mb = 4, .last_bucket_mb = 1};
    const train_shard_plan_t plan = {.config = &config,
                                     .layout = layout,
                                     .dev = optim_rig_dev(),
                                     .rank = rank,
                                     .size = size};
    train_shard_t *shard = NULL;
    optim_t *optim = NULL;
    size_t bytes;
    err_t err = ERR_INIT;

    cr_assert_eq(train_shard_open(&plan, &shard, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(
        optim_open(optimizer, NULL,
                   &(optim_layout_t){.dev = optim_rig_dev(),
                                     .views = layout->views,
                                     .view_count = layout->view_count,
                                     .elems = layout->grad_elems,
                                     .ranges = shard->ranges,
                                     .range_count = shard->range_count},
                   &optim, &err),
        ERR_OK, "%s", err.text);
    bytes = optim_state_bytes(optim);
    optim_close(optim);
    train_shard_close(shard);
    return bytes;
}

Test(zero, a_rank_keeps_its_share_of_the_state)
{
    enum { VIEWS = 40, EACH = 100000 };
    view_t views[VIEWS];
    const ddp_layout_t layout = {.views = views,
                                 .view_count = VIEWS,
                                 .grad_elems = (size_t)VIEWS * EACH};
    const size_t whole = 2 * layout.grad_elems * sizeof(float);
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    for (int v = 0; v < VIEWS; v++)
        views[v] = (view_t){
            .name = "w", .offset = (size_t)v * EACH, .count = EACH, .ndim = 2};
    cr_assert_eq(conf_parse("o.yaml", "optimizer: adamw", &tree, &err), ERR_OK);
    for (int size = 1; size <= 16; size++) {
        size_t sum = 0, fair = whole / (size_t)size;

        for (int r = 0; r < size; r++) {
            size_t bytes =
                state_bytes(r, size, &layout, tree_get(tree, "optimizer"));

            cr_expect_leq(bytes, fair + fair / 4, "rank %d of %d: %zu", r, size,
                          bytes);
            sum += bytes;
        }
        cr_expect_eq(sum, whole);
    }
    tree_free(tree);
}
