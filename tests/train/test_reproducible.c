/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reproducible mode: model, optimizer state and logged losses have the
 * same bits for 1, 2, 3, 4 and 8 ranks and any number of threads, with batch
 * norm, dropout, an uneven last batch and accumulation, also when the run is
 * interrupted and goes on with another number of ranks and threads.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "ddp/tree.h"
#include "hdf5io/checkpoint.h"
#include "train/harness.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifndef THREAD_SANITIZER
#define THREAD_SANITIZER 0
#endif
#if THREAD_SANITIZER || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* 101 samples in batches of 24 and leaves of 5: a full step has 5 leaves, the
 * last of 4 samples; the epoch's last step has one leaf of 5. */
#define SAMPLES 101

static void mode_open(harness_t *harness, const char *extra)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "train.reproducible=true";
    harness->settings[1] = "train.microbatch=5";
    harness->settings[2] = extra;
}

/* All numbers of a checkpoint's tensors in one array. Whole checkpoints cannot
 * be compared, as a manifest depends on time and rank count. */
typedef struct state {
    float values[4096];
} state_t;

typedef struct part {
    const char *name;
    int ndim;
    int64_t dims[2];
    bool trained; /* has optimizer state */
} part_t;

static const part_t parts[] = {
    {"linear1.weight", 2, {16, HARNESS_FEATURES}, true},
    {"linear1.bias", 1, {16}, true},
    {"batchnorm1.weight", 1, {16}, true},
    {"batchnorm1.bias", 1, {16}, true},
    {"batchnorm1.running_mean", 1, {16}, false},
    {"batchnorm1.running_var", 1, {16}, false},
    {"linear2.weight", 2, {2, 16}, true},
    {"linear2.bias", 1, {2}, true}};

#define PARTS (sizeof parts / sizeof *parts)

/* Let *tensor describe [part] with its data at [at]. Returns the place of the
 * next tensor's data. */
static float *tensor_place(hdf5io_tensor_t *tensor, const char *prefix,
                           const part_t *part, float *at)
{
    *tensor = (hdf5io_tensor_t){.name = str_printf("%s%s", prefix, part->name),
                                .ndim = part->ndim,
                                .dims = {part->dims[0], part->dims[1]},
                                .data = at};
    return at + part->dims[0] * (part->ndim == 2 ? part->dims[1] : 1);
}

static int tensors_place(hdf5io_tensor_t *tensors, float *at)
{
    int count = 0;

    for (size_t i = 0; i < PARTS; i++) {
        at = tensor_place(&tensors[count++], "model/", &parts[i], at);
        if (!parts[i].trained)
            continue;
        at = tensor_place(&tensors[count++], "optimizer/exp_avg/", &parts[i],
                          at);
        at = tensor_place(&tensors[count++], "optimizer/exp_avg_sq/", &parts[i],
                          at);
    }
    return count;
}

static err_code_t alone(void *context, const void *mine, size_t bytes,
                        void *all, err_t *err)
{
    (void)context;
    (void)err;
    memcpy(all, mine, bytes);
    return ERR_OK;
}

static void state_read(const harness_t *harness, state_t *out)
{
    hdf5io_votes_t votes = {.size = 1, .exchange = alone};
    char directory[300];
    hdf5io_checkpoint_config_t config = {
        .directory = directory, .votes = &votes, .keep = 3};
    hdf5io_tensor_t tensors[3 * PARTS];
    int count = tensors_place(tensors, out->values);
    hdf5io_checkpoint_info_t info;
    bool found = false;
    err_t err = ERR_INIT;

    memset(out, 0, sizeof *out);
    snprintf(directory, sizeof directory, "%s/run/checkpoints", harness->dir);
    cr_assert_eq(hdf5io_checkpoint_read(&config, NULL, tensors, count, &found,
                                        &info, &err),
                 ERR_OK, "%s", err.text);
    cr_assert(found);
    cr_assert_eq(info.progress.step, 15);
    for (int i = 0; i < count; i++)
        free((char *)tensors[i].name);
}

/* Step and loss of every row of metrics.jsonl that has a loss, as text; to be
 * freed. */
static char *losses_read(const harness_t *harness)
{
    char path[300];
    char *text = NULL;
    str_buf_t losses = {0};
    err_t err = ERR_INIT;

    snprintf(path, sizeof path, "%s/run/metrics.jsonl", harness->dir);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *step = strstr(line, "\"step\":");
        const char *loss = strstr(line, "\"loss\":");

        if (loss != NULL)
            str_buf_add(&losses, "%.12s %.30s\n", step, loss);
    }
    free(text);
    return losses.text;
}

static void same(const state_t *a, const char *a_losses, const state_t *b,
                 const char *b_losses, const char *what)
{
    cr_assert_eq(memcmp(a, b, sizeof *a), 0, "%s: the state differs", what);
    cr_assert_str_eq(a_losses, b_losses, "%s: logged losses differ", what);
}

/* Run on [ranks] ranks with [threads] threads each. Fills [state] from the last
 * checkpoint; returns the text of losses_read. */
static char *run_once(const char *extra, int ranks, int threads, state_t *state)
{
    train_outcome_t out;
    harness_t harness;
    char setting[32];
    char *losses;

    mode_open(&harness, extra);
    snprintf(setting, sizeof setting, "train.threads=%d", threads);
    harness.settings[extra == NULL ? 2 : 3] = setting;
    harness_run_ok(&harness, ranks, &out);
    state_read(&harness, state);
    losses = losses_read(&harness);
    harness_close(&harness);
    return losses;
}

static void run_counts(const char *extra, const int (*counts)[2])
{
    char *first_losses, *losses, what[32];
    state_t first, state;

    first_losses = run_once(extra, 1, 1, &first);
    for (; (*counts)[0] != 0; counts++) {
        losses = run_once(extra, (*counts)[0], (*counts)[1], &state);
        snprintf(what, sizeof what, "%d ranks of %d", (*counts)[0],
                 (*counts)[1]);
        same(&first, first_losses, &state, losses, what);
        free(losses);
    }
    free(first_losses);
}

Test(reproducible, any_number_of_ranks_gives_the_same_bits, .timeout = 120)
{
    run_counts(NULL, (const int[][2]){{2, 1}, {3, 1}, {4, 1}, {8, 1}, {0}});
}

Test(reproducible, any_number_of_threads_gives_the_same_bits, .timeout = 120)
{
    run_counts(NULL, (const int[][2]){{1, 2},
                                      {1, 3},
                                      {1, 4},
                                      {1, 9},
                                      {2, 2},
                                      {2, 3},
                                      {2, 4},
                                      {3, 2},
                                      {3, 3},
                                      {3, 4},
                                      {0}});
}

Test(reproducible, so_do_clipping_and_accumulation, .timeout = 120)
{
    run_counts(
        "train={epochs: 3, batch: 24, reproducible: true, "
        "microbatch: 5, accumulate: 2, clip_norm: 0.5}",
        (const int[][2]){{2, 1}, {3, 1}, {4, 1}, {8, 1}, {1, 3}, {2, 2}, {0}});
}

/* Teams of two threads give other bits than teams of one, but the number of
 * teams does not change the bits either. */
Test(reproducible, teams_of_two_threads_work_side_by_side, .timeout = 120)
{
    char *two[2];
    state_t states[2];

    if (THREAD_SANITIZER)
        cr_skip("the thread sanitizer cannot see how libgomp's threads wait");
    two[0] = run_once("train.leaf_threads=2", 1, 1, &states[0]);
    two[1] = run_once("train.leaf_threads=2", 2, 6, &states[1]);
    same(&states[0], two[0], &states[1], two[1], "teams of two");
    free(two[0]);
    free(two[1]);
}

Test(reproducible, interruption_and_other_rank_counts_change_no_bit,
     .timeout = 120)
{
    static const int lives[] = {1, 4, 3, 8, 2};
    static const char *const threads[] = {"train.threads=2", "train.threads=1",
                                          "train.threads=3"};
    harness_t straight, stopped;
    char *straight_losses, *stopped_losses;
    state_t a, b;
    train_outcome_t out;
    err_code_t rc;
    err_t err = ERR_INIT;
    int life = 0;

    mode_open(&straight, NULL);
    harness_run_ok(&straight, 2, &out);
    mode_open(&stopped, NULL);
    do {
        int ranks = lives[life % 5];

        stopped.settings[2] = threads[life % 3];
        harness_interrupt(&stopped, 4 * ranks);
        rc = harness_run(&stopped, ranks, &out, &err);
        cr_assert(rc == ERR_OK || rc == ERR_REQUEUE, "%s", err.text);
        cr_assert_lt(++life, 100);
    } while (rc == ERR_REQUEUE);
    cr_assert_gt(life, 3);
    state_read(&straight, &a);
    state_read(&stopped, &b);
    straight_losses = losses_read(&straight);
    stopped_losses = losses_read(&stopped);
    same(&a, straight_losses, &b, stopped_losses, "interrupted");
    free(straight_losses);
    free(stopped_losses);
    harness_close(&straight);
    harness_close(&stopped);
}

/* Only the reproducible mode gives equal bits: without it they differ. */
Test(reproducible, the_default_mode_does_not_promise_it)
{
    harness_t one, four;
    train_outcome_t out;
    state_t a, b;

    mode_open(&one, "train.reproducible=false");
    mode_open(&four, "train.reproducible=false");
    harness_run_ok(&one, 1, &out);
    harness_run_ok(&four, 4, &out);
    state_read(&one, &a);
    state_read(&four, &b);
    cr_assert_neq(memcmp(&a, &b, sizeof a), 0);
    harness_close(&one);
    harness_close(&four);
}

static void bad_labels(int ranks, const char *threads)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;

    mode_open(&harness, threads);
    harness_label_set(&harness, 50, -3);
    cr_assert_eq(harness_run(&harness, ranks, &out, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "50"), "%s", err.text);
    harness_close(&harness);
}

Test(reproducible, a_bad_label_still_ends_all_ranks)
{
    bad_labels(3, NULL);
}

/* An error, or a loss that is not finite, ends the run, whichever thread meets
 * it. */
Test(reproducible, errors_of_any_thread_end_the_run)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;

    bad_labels(2, "train.threads=3");
    mode_open(&harness, "train.threads=3");
    harness.settings[3] = "optimizer={sgd: {lr: 1.0e+6}}";
    harness.settings[4] = "model.layers=[{linear: {out: 2}}]";
    harness.settings[5] = "data.input.scale=1.0e+34";
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DIVERGED, "%s",
                 err.text);
    harness_close(&harness);
}

/* 24 leaves on 4 threads need eight arenas of gradients, not 24. Each thread's
 * scratch has space for a copy of the largest weights, of which a product
 * touches only what it packs (on AVX-512: blocks). The rest is memory of
 * libraries. */
Test(reproducible, memory_is_what_was_planned, .timeout = 120)
{
    const double params = 12 * 2048 + 2048 + 2048 * 1024 + 1024 + 2 * 1024 + 2;
    const int slots = ddp_fold_slots(0, 24, 24, 4);
    /* parameters, gradients and Adam's state */
    const double kept =
        4 * 4 * params + (double)ddp_tree_bytes((size_t)params, 0, slots);
    const double planned = kept + 4 * 4 * 2048.0 * 1024.0;
    const double before = mem_peak();
    train_outcome_t out;
    harness_t harness;
    double grown;

    if (SANITIZED)
        cr_skip("a sanitizer needs memory of its own");
    cr_assert_eq(slots, 8);
    harness_open(&harness, 24 * 2);
    harness.settings[0] = "model.layers=[{linear: {out: 2048}}, relu, "
                          "{linear: {out: 1024}}, relu, {linear: {out: 2}}]";
    harness.settings[1] = "train={epochs: 1, batch: 24, reproducible: true, "
                          "microbatch: 1, threads: 4}";
    harness_run_ok(&harness, 1, &out);
    grown = mem_peak() - before;
    cr_assert_leq(grown, planned + 24e6, "%.1f MB, planned were %.1f",
                  grown * 1e-6, planned * 1e-6);
    cr_assert_geq(grown, 0.95 * kept, "%.1f MB, kept are %.1f", grown * 1e-6,
                  kept * 1e-6);
    harness_close(&harness);
}
