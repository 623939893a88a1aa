/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * syncbatchnorm in whole runs: on several ranks with shares of any sizes, a
 * run equals one with batchnorm on a single rank over the joined batch:
 * parameters, momentum (hence gradients) and running statistics. No rank waits
 * for ever when others have no samples, fewer micro-batches or an error.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/alloc_fail.h"
#include "lib/ranks.h"
#include "nn/fixture.h"
#include "train/harness.h"
#include "train/sync.h"

#define MODEL(norm)                                                         \
    "model={input: [12], layers: [{linear: {out: 16}}, {name: norm1, " norm \
    ": {}}, relu, {reshape: {shape: [4, 2, 2]}}, {name: norm2, " norm       \
    ": {momentum: 0.3}}, flatten, {linear: {out: 2}}]}"

#define SGD "optimizer={sgd: {lr: 0.02, momentum: 0.9}}"

static void sync_open(harness_t *harness, int samples, const char *model,
                      const char *more)
{
    harness_open(harness, samples);
    harness->settings[0] = model;
    harness->settings[1] = SGD;
    harness->settings[2] = more;
}

/* Compare runs over [samples] samples in batches of 24. In the last step of an
 * epoch some ranks may have one sample less than others, or none. */
static void check(int samples, int ranks, int64_t steps)
{
    harness_t one, many;
    train_outcome_t out;

    sync_open(&one, samples, MODEL("batchnorm"), NULL);
    sync_open(&many, samples, MODEL("syncbatchnorm"), NULL);
    harness_run_ok(&one, 1, &out);
    harness_run_ok(&many, ranks, &out);
    harness_compare(&one, &many, steps, 1e-5, "sync");
    harness_close(&many);
    harness_close(&one);
}

Test(sync, is_batchnorm_over_the_joined_batch, .timeout = 120)
{
    check(96, 2, 12);
    check(101, 3, 15);
    check(98, 5, 15); /* the last step has two samples for five ranks */
    check(101, 1, 15);
}

/* Shows that the comparison above notices statistics of single ranks. */
Test(sync, batchnorm_of_each_rank_is_something_else, .timeout = 60)
{
    harness_t one, many;
    train_outcome_t a, b;

    sync_open(&one, 96, MODEL("batchnorm"), NULL);
    sync_open(&many, 96, MODEL("batchnorm"), NULL);
    harness_run_ok(&one, 1, &a);
    harness_run_ok(&many, 4, &b);
    cr_assert_gt(a.loss > b.loss ? a.loss - b.loss : b.loss - a.loss, 1e-4);
    harness_close(&many);
    harness_close(&one);
}

Test(sync, ranks_may_have_other_numbers_of_micro_batches, .timeout = 60)
{
    harness_t harness, again;
    train_outcome_t out;

    sync_open(&harness, 98, MODEL("syncbatchnorm"), "train.accumulate=3");
    sync_open(&again, 98, MODEL("syncbatchnorm"), "train.accumulate=3");
    harness_run_ok(&harness, 5, &out);
    harness_run_ok(&again, 5, &out);
    harness_compare(&harness, &again, 15, 0, "accumulate");
    harness_close(&again);
    harness_close(&harness);
}

/* The first layer sums in forward only: its backward does not run. */
Test(sync, a_layer_without_backward_makes_no_sum_there, .timeout = 60)
{
    static const char model[] =
        "model={input: [12], layers: [{syncbatchnorm: {affine: false}}, "
        "{linear: {out: 16}}, syncbatchnorm, relu, {linear: {out: 2}}]}";
    harness_t harness, again;
    train_outcome_t out;

    sync_open(&harness, 98, model, "train.accumulate=3");
    sync_open(&again, 98, model, "train.accumulate=3");
    harness_run_ok(&harness, 5, &out);
    harness_run_ok(&again, 5, &out);
    harness_compare(&harness, &again, 15, 0, "accumulate");
    harness_close(&again);
    harness_close(&harness);
}

Test(sync, an_error_of_one_rank_ends_all, .timeout = 60)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    sync_open(&harness, 96, MODEL("syncbatchnorm"), NULL);
    harness_label_set(&harness, 30, 9);
    cr_assert_eq(harness_run(&harness, 3, &out, &err), ERR_DATA, "%s",
                 err.text);
    harness_close(&harness);
}

Test(sync, reproducible_mode_refuses_it)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    sync_open(&harness, 96, MODEL("syncbatchnorm"), "train.reproducible=true");
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    cr_assert(strstr(err.text, "syncbatchnorm"), "%s", err.text);
    harness_close(&harness);
}

/* ---- opening ------------------------------------------------------------- */

/* The last rank has no memory for one of four blocks; comm_split_open allocates
 * the fourth. */
static int memory_main(const comm_oob_t *oob, void *argument)
{
    static const char model[] =
        "model: {input: [4], layers: [{linear: {out: 3}}, syncbatchnorm]}\n"
        "loss: mse\n";
    const comm_config_t config = {.backend = "threads", .timeout = 60};
    nn_graph_t *graph = fixture_graph(model);
    train_sync_plan_t plan = {.graph = graph};
    train_sync_t *sync = NULL;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &plan.group, &err), err);
    plan.data = plan.group;
    for (long block = 1; block <= 4; block++) {
        if (oob->rank == oob->size - 1)
            alloc_fail(block);
        RANKS_CHECK(train_sync_open(&plan, &sync, &err) == ERR_MEMORY);
        RANKS_CHECK(alloc_fail_end() == (oob->rank == oob->size - 1));
        RANKS_CHECK(strncmp(err.text, "rank 2 on ", 10) == 0);
    }
    RANKS_OK(train_sync_open(&plan, &sync, &err), err);
    train_sync_close(sync);
    comm_group_close(plan.group);
    nn_graph_close(graph);
    return 0;
}

Test(sync, is_opened_by_all_ranks_or_by_none, .timeout = 60)
{
    cr_assert_eq(ranks_threads(3, memory_main, NULL), 0);
}
