/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs on emulated GPUs. The ranks are processes and sum gradients by
 * NCCL: they learn what one rank learns, with graphs and without. After any
 * fault of a rank or of its GPU, the others end in time and name that rank.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cuda/emu.h"
#include "dev/dev_far.h"
#include "train/harness_forks.h"

/* The last batch of an epoch has 3 samples, so with 4 or more ranks some ranks
 * have no sample of it. */
enum { SAMPLES = 118, VALUES_MAX = 64, RANKS_MOST = 8, ROW = 77 };

#define SECONDS 240 /* only a rank that hangs takes so long */
#define TIMEOUT 20  /* fault.timeout, in tests of faults */
#define KERNELS 500 /* more than those of the first step */

typedef struct plan {
    const fake_cuda_t *fake;
    int order;
    int64_t late;
    /* The last rank's nccl_stuck and fail of fake_cuda_settings_t. */
    int64_t stuck, fail;
    int64_t hangs; /* nccl_hangs of all ranks */
    int signal;    /* the last rank gets this in its first graphs */
    bool stops;    /* instead of a signal, its GPU hangs in a copy */
    bool staged;   /* by the staged group; steps are not replayed */
    bool norms;    /* the model has syncbatchnorm layers */
    bool fixed;    /* in reproducible mode */
    bool hook;     /* gradients are rounded */
    bool shards;   /* ZeRO-1 */
    bool meets;    /* ranks wait for each other in captures */
    bool plain;    /* no capture can begin on the last rank */
} plan_t;

/* ---- runs ---------------------------------------------------------------- */

static void *victim_main(void *argument)
{
    const plan_t *plan = argument;

    while (plan->staged ? plan->fake->counts().kernels < KERNELS
                        : plan->fake->counts().graphs < 2)
        usleep(1000);
    if (plan->stops)
        emu_set(plan->fake, hang_copy, 1);
    else
        kill(getpid(), plan->signal);
    return NULL;
}

static void prepare(int rank, int ranks, void *context)
{
    plan_t *plan = context;
    const bool last = rank == ranks - 1;
    pthread_t thread;

    emu_set(plan->fake, devices, 8);
    emu_set(plan->fake, order, plan->order);
    emu_set(plan->fake, nccl_late, plan->late);
    emu_set(plan->fake, nccl_hangs, plan->hangs);
    emu_set(plan->fake, nccl_meets, plan->meets);
    if (last)
        emu_set(plan->fake, nccl_stuck, plan->stuck);
    if (last)
        emu_set(plan->fake, no_capture, plan->plain);
    if (last && (plan->signal != 0 || plan->stops))
        pthread_create(&thread, NULL, victim_main, plan);
}

/* Run in a new directory. */
static void run(const harness_t *harness, plan_t *plan, int ranks, int *results,
                char (*texts)[512])
{
    const harness_forks_t forks = {.harness = harness,
                                   .prepare = prepare,
                                   .context = plan,
                                   .seconds = SECONDS};

    harness_forks_run(&forks, ranks, results, texts);
}

static void settings(harness_t *harness, const char *a, const char *b)
{
    harness->settings[0] = "train.device=cuda";
    harness->settings[1] = "train.log_every=1";
    harness->settings[2] = "train.batch=23";
    /* No batch norm, because it would see only the samples of its own rank. */
    harness->settings[3] = "model.layers=[{linear: {out: 8}}, relu, {dropout: "
                           "{rate: 0.2}}, {linear: {out: 2}}]";
    harness->settings[4] = a;
    harness->settings[5] = a == NULL ? NULL : b;
    harness->settings[6] = harness->settings[7] = NULL;
}

static int losses(const harness_t *harness, double *out)
{
    return harness_values(harness, false, "loss", out, VALUES_MAX);
}

/* ---- runs that succeed --------------------------------------------------- */

static const int all_sizes[] = {1, 2, 3, 4, RANKS_MOST, 0};

/* Run on [ranks] ranks, which must succeed, and read the losses of the steps.
 * Returns their number. */
static int learn(const harness_t *harness, plan_t *plan, int ranks,
                 double *values)
{
    char texts[RANKS_MOST][512];
    int results[RANKS_MAX], count;

    run(harness, plan, ranks, results, texts);
    for (int r = 0; r < ranks; r++)
        cr_assert_eq(results[r], 0, "%d ranks, rank %d: %d: %s", ranks, r,
                     results[r], texts[r]);
    count = losses(harness, values);
    cr_assert_gt(count, 10);
    return count;
}

/* The losses [a] and [b] of [count] steps agree within [most]. */
static void same(const double *a, const double *b, int count, double most,
                 int ranks)
{
    for (int v = 0; v < count; v++)
        cr_assert_leq(fabs(a[v] - b[v]), most * (1 + a[v]),
                      "%d ranks, step %d: %g and %g", ranks, v, a[v], b[v]);
}

/* Runs with the settings [a] and [b] have losses that agree within [most] on
 * each number of ranks in [sizes], which ends with 0. */
static void agree(const char *a, const char *b, const int *sizes, double most)
{
    double first[VALUES_MAX], other[VALUES_MAX];

    for (int i = 0; sizes[i] > 0; i++) {
        plan_t plan = {.fake = emu_open(), .order = i % 2};
        harness_t harness;
        int count;

        plan.late = i == 2 ? 2 : 0;
        harness_open(&harness, SAMPLES);
        settings(&harness, a, b);
        count = learn(&harness, &plan, sizes[i], i == 0 ? first : other);
        if (i > 0)
            same(first, other, count, most, sizes[i]);
        harness_close(&harness);
    }
}

Test(nccl, ranks_learn_what_one_rank_learns)
{
    agree(NULL, NULL, all_sizes, 1e-5);
}

Test(nccl, reproducible_ranks_have_the_bits_of_one_rank)
{
    agree("train.reproducible=true", "train.microbatch=2", all_sizes, 0);
}

Test(nccl, micro_batches)
{
    agree("train.accumulate=2", NULL, all_sizes, 1e-5);
}

Test(nccl, shards)
{
    agree("ddp.zero=1", NULL, all_sizes, 1e-5);
}

/* If no capture can begin on the last rank, all ranks make steps without
 * graphs. They learn the same as with graphs, and no rank waits in a capture.
 */
Test(nccl, a_capture_that_cannot_begin_on_one_rank)
{
    double values[2][VALUES_MAX];

    for (int i = 0; i < 2; i++) {
        plan_t plan = {.fake = emu_open(), .meets = true, .plain = i == 1};
        harness_t harness;
        int count;

        harness_open(&harness, SAMPLES);
        settings(&harness, NULL, NULL);
        count = learn(&harness, &plan, 3, values[i]);
        if (i == 1)
            same(values[0], values[1], count, 0, 3);
        harness_close(&harness);
    }
}

/* ---- batch norm over all ranks ------------------------------------------- */

/* The first syncbatchnorm has no parameters, and is the first layer: so it has
 * no backward. Each layer's gradients are a bucket, so sums and buckets
 * alternate. */
#define SYNC                                                                \
    "model.layers=[{syncbatchnorm: {affine: false}}, {linear: {out: 24}}, " \
    "syncbatchnorm, relu, {linear: {out: 24}}, {syncbatchnorm: {affine: "   \
    "false}}, relu, {linear: {out: 2}}]"
#define BUCKETS                                                           \
    "ddp={bucket_cap_mb: 0.001, first_bucket_mb: 0.001, last_bucket_mb: " \
    "0.001, check_every: 1 step}"

/* Run with syncbatchnorm. [device] is the setting of train.device, [order] that
 * of streams. Compare the losses with [first]; the first run fills [first]. */
static void batch_norm(const char *device, int order, int ranks,
                       const char *more, double first[VALUES_MAX])
{
    plan_t plan = {.fake = emu_open(), .order = order};
    double other[VALUES_MAX];
    harness_t harness;
    int count;

    harness_open(&harness, SAMPLES);
    settings(&harness, BUCKETS, more);
    harness.settings[0] = device;
    harness.settings[3] = SYNC;
    count = learn(&harness, &plan, ranks, other);
    if (first[0] == 0)
        memcpy(first, other, sizeof other);
    same(first, other, count, 1e-4, ranks);
    harness_close(&harness);
}

/* On each number of ranks the losses are those of one rank on the CPU. The
 * parameters of all ranks are compared after each step. */
Test(nccl, batch_norm_over_all_ranks)
{
    double first[VALUES_MAX] = {0};

    batch_norm("train.device=cpu", 0, 1, NULL, first);
    for (int i = 0; all_sizes[i] > 0; i++)
        batch_norm("train.device=cuda", i % 2, all_sizes[i], NULL, first);
}

/* The statistics are those of a micro-batch of all ranks, so they depend on the
 * number of ranks. In the last step of an epoch rank 0 has one micro-batch and
 * rank 1 has two. */
Test(nccl, batch_norm_of_ranks_with_other_numbers_of_micro_batches)
{
    static const char *const more = "train.accumulate=2";
    double first[VALUES_MAX] = {0};

    batch_norm("train.device=cpu", 0, 2, more, first);
    batch_norm("train.device=cuda", 0, 2, more, first);
    batch_norm("train.device=cuda", 1, 2, more, first);
}

/* Steps without graphs, and steps with shards of the optimizer's state, have
 * the same losses as other steps. */
Test(nccl, batch_norm_in_steps_that_are_launched_one_by_one)
{
    double first[VALUES_MAX] = {0};

    batch_norm("train.device=cuda", 0, 3, NULL, first);
    batch_norm("train.device=cuda", 1, 3, "train.graphs=false", first);
    batch_norm("train.device=cuda", 0, 3, "ddp.zero=1", first);
}

/* The hook rounds gradients, but adds the rounding errors in the next step. */
Test(nccl, hooks)
{
    agree("ddp.hook=fp16", NULL, (int[]){1, 3, RANKS_MOST, 0}, 2e-3);
}

/* Train with [hook] on two ranks, in two lives. The second life goes on from
 * the checkpoint of the first life. This checkpoint also has the hook's
 * residuals. */
static void hook_run(harness_t *harness, const char *hook, const char *backend,
                     int order)
{
    plan_t plan = {.fake = emu_open(), .order = order};
    double values[VALUES_MAX];

    harness_open(harness, SAMPLES);
    settings(harness, hook, backend);
    harness->settings[6] = "train.epochs=2";
    learn(harness, &plan, 2, values);
    harness->settings[6] = NULL;
    learn(harness, &plan, 2, values);
}

/* With NCCL the GPU rounds, otherwise the host does it. The checkpoints are
 * equal bit for bit. (With more ranks NCCL rounds a sum more than once.) */
static void hook_same(const char *hook)
{
    harness_t host, device;

    hook_run(&host, hook, "ddp.backend=ucx", 0);
    hook_run(&device, hook, "ddp.backend=nccl", 1);
    harness_compare(&host, &device, -1, 0, hook);
    harness_close(&device);
    harness_close(&host);
}

Test(nccl, hooks_of_the_device_have_the_bits_of_the_host)
{
    hook_same("ddp={hook: fp16, bucket_cap_mb: 0.001, first_bucket_mb: 0.001}");
    hook_same("ddp.hook=bf16");
    hook_same("ddp={hook: {fp16: {error_feedback: false}}, zero: 1}");
}

/* Train with powersgd in two starts: on the device [first], and then on the
 * device [second]. */
static void powersgd_run(harness_t *harness, const char *first,
                         const char *second)
{
    plan_t plan = {.fake = emu_open()};
    double values[VALUES_MAX];

    harness_open(harness, SAMPLES);
    settings(harness, "ddp.hook={powersgd: {start_step: 3}}", NULL);
    harness->settings[0] = first;
    harness->settings[5] = "train.epochs=2";
    learn(harness, &plan, 2, values);
    harness->settings[0] = second;
    harness->settings[5] = NULL;
    learn(harness, &plan, 2, values);
}

/* Residuals and Q are in the checkpoint, also if they were in the memory of a
 * device. So a run resumes on either device. */
Test(nccl, powersgd_resumes_on_another_device)
{
    static const char cpu[] = "train.device=cpu", cuda[] = "train.device=cuda";
    static const char *const lives[][2] = {
        {cuda, cuda}, {cuda, cpu}, {cpu, cuda}};
    harness_t host, other;

    powersgd_run(&host, cpu, cpu);
    for (int i = 0; i < 3; i++) {
        powersgd_run(&other, lives[i][0], lives[i][1]);
        harness_compare(&other, &host, -1, 1e-5, lives[i][1]);
        harness_close(&other);
    }
    harness_close(&host);
}

/* ---- shards ---- */

/* Train with shards on [ranks] ranks; the setting [graphs] says how the steps
 * are launched. */
static void shards_run(harness_t *harness, const char *graphs,
                       const char *optimizer, int ranks, int order)
{
    plan_t plan = {.fake = emu_open(), .order = order};
    double values[VALUES_MAX];

    harness_open(harness, SAMPLES);
    settings(harness, graphs,
             "ddp={zero: 1, bucket_cap_mb: 0.001, first_bucket_mb: 0.001, "
             "last_bucket_mb: 0.001}");
    /* Ranks have different numbers of blocks of 4096 elements. */
    harness->settings[3] = "model.layers=[{linear: {out: 96}}, relu, {linear: "
                           "{out: 96}}, relu, {linear: {out: 2}}]";
    harness->settings[6] = optimizer;
    harness->settings[7] = "train.clip_norm=0.5";
    learn(harness, &plan, ranks, values);
}

/* LAMB also sums the norms of tensors over the ranks. */
Test(nccl, shards_have_the_same_bits_with_graphs_and_without)
{
    static const char *const optimizers[] = {"optimizer={adamw: {lr: 0.01}}",
                                             "optimizer={lamb: {lr: 0.01}}"};

    for (int i = 0; i < 2; i++) {
        harness_t plain, graphs;

        shards_run(&plain, "train.graphs=false", optimizers[i], 2 + i, i);
        shards_run(&graphs, "train.graphs=true", optimizers[i], 2 + i, 1 - i);
        harness_compare(&plain, &graphs, -1, 0, optimizers[i]);
        harness_close(&graphs);
        harness_close(&plain);
    }
}

/* ---- data that is wrong -------------------------------------------------- */

/* A run with a bad label in row 77 ends on all ranks, after [steps] steps or
 * more. [model] is a setting, or NULL. [fixed]: in reproducible mode. */
static void bad_label(int ranks, const char *batch, const char *model,
                      bool fixed, int steps)
{
    plan_t plan = {.fake = emu_open()};
    char texts[RANKS_MOST][512];
    int results[RANKS_MAX];
    harness_t harness;
    double rows[VALUES_MAX];
    int named = 0;

    harness_open(&harness, SAMPLES);
    settings(&harness, batch, model);
    if (fixed) {
        harness.settings[5] = "train.reproducible=true";
        harness.settings[6] = "train.microbatch=2";
    }
    harness_label_set(&harness, ROW, 9);
    run(&harness, &plan, ranks, results, texts);
    for (int r = 0; r < ranks; r++) {
        cr_assert_eq(results[r], ERR_DATA, "%d ranks, rank %d: %d: %s", ranks,
                     r, results[r], texts[r]);
        named += strstr(texts[r], "row 77") != NULL;
    }
    cr_assert_geq(named, 1);
    cr_assert_geq(losses(&harness, rows), steps);
    harness_close(&harness);
}

/* From step 7 on, all steps but the last of an epoch are launches of graphs. */
Test(nccl, a_bad_label_ends_all_ranks_in_a_replayed_step)
{
    for (int ranks = 1; ranks <= 3; ranks++)
        bad_label(ranks, "train.batch=8", NULL, false, 7);
    bad_label(3, "train.batch=8", "ddp.zero=1", false, 7);
}

Test(nccl, a_bad_label_ends_all_ranks_in_reproducible_mode)
{
    for (int ranks = 1; ranks <= 3; ranks++)
        bad_label(ranks, "train.batch=8", NULL, true, 7);
    bad_label(3, "train.batch=60", NULL, true, 0);
}

/* Row 39 is in step 5, which is captured, and belongs to the last rank. */
Test(nccl, a_bad_label_ends_all_ranks_in_a_captured_step)
{
    for (int ranks = 2; ranks <= 3; ranks++) {
        plan_t plan = {.fake = emu_open(), .meets = true};
        char texts[RANKS_MOST][512];
        int results[RANKS_MAX];
        harness_t harness;
        double rows[VALUES_MAX];

        harness_open(&harness, SAMPLES);
        settings(&harness, "train.batch=8", "data.shuffle=none");
        harness_label_set(&harness, 39, 9);
        run(&harness, &plan, ranks, results, texts);
        for (int r = 0; r < ranks; r++)
            cr_assert_eq(results[r], ERR_DATA, "%d ranks, rank %d: %d: %s",
                         ranks, r, results[r], texts[r]);
        cr_assert_eq(losses(&harness, rows), 4);
        harness_close(&harness);
    }
}

/* With a batch of 60 no step of the first epoch is a launch of a graph. */
Test(nccl, a_bad_label_ends_all_ranks_among_sums_of_batch_norm)
{
    bad_label(3, "train.batch=8", SYNC, false, 7);
    bad_label(3, "train.batch=60", SYNC, false, 0);
}

/* ---- faults -------------------------------------------------------------- */

/* Run three ranks, of which the last one is the culprit. [result]: how that
 * rank ends. */
static void fault(plan_t *plan, int result)
{
    const double begin = clock_now();
    char texts[RANKS_MOST][512], timeout[64];
    int results[RANKS_MAX];
    harness_t harness;

    plan->fake = emu_open();
    harness_open(&harness, SAMPLES);
    snprintf(timeout, sizeof timeout, "fault.timeout=%d", TIMEOUT);
    settings(&harness, timeout, "train.epochs=200");
    if (plan->staged)
        harness.settings[6] = "ddp.backend=ucx";
    if (plan->norms)
        harness.settings[3] = SYNC;
    if (plan->fixed) {
        harness.settings[6] = "train.reproducible=true";
        harness.settings[7] = "train.microbatch=4";
    }
    if (plan->hook)
        harness.settings[6] = "ddp.hook=bf16";
    if (plan->shards)
        harness.settings[6] = "ddp.zero=1";
    run(&harness, plan, 3, results, texts);
    for (int r = 0; r < 2; r++) {
        cr_assert_eq(results[r], ERR_PEER, "rank %d: %d: %s", r, results[r],
                     texts[r]);
        cr_assert_eq(strncmp(texts[r], "2: ", 3), 0, "rank %d: %s", r,
                     texts[r]);
    }
    cr_assert_eq(results[2], result, "%d: %s", results[2], texts[2]);
    cr_log_info("after %.1f s: %s", clock_now() - begin, texts[0]);
    harness_close(&harness);
}

Test(nccl, a_rank_is_killed)
{
    plan_t plan = {.signal = SIGKILL};

    fault(&plan, 128 + SIGKILL);
}

/* Steps with syncbatchnorm are launches of graphs, too: the rank is killed in
 * the second one. */
Test(nccl, a_rank_is_killed_among_sums_of_batch_norm)
{
    plan_t plan = {.signal = SIGKILL, .norms = true};

    fault(&plan, 128 + SIGKILL);
}

Test(nccl, a_rank_is_killed_in_reproducible_mode)
{
    plan_t plan = {.signal = SIGKILL, .fixed = true};

    fault(&plan, 128 + SIGKILL);
}

/* Steps with this hook are launches of graphs, too. */
Test(nccl, a_rank_is_killed_in_a_step_with_a_hook)
{
    plan_t plan = {.signal = SIGKILL, .hook = true};

    fault(&plan, 128 + SIGKILL);
}

/* Steps with shards are graphs, too. The rank is killed in the second launch.
 */
Test(nccl, a_rank_is_killed_in_a_step_with_shards)
{
    plan_t plan = {.signal = SIGKILL, .shards = true};

    fault(&plan, 128 + SIGKILL);
}

Test(nccl, a_rank_is_killed_and_aborts_hang)
{
    plan_t plan = {.signal = SIGKILL, .hangs = 1};

    fault(&plan, 128 + SIGKILL);
}

/* The others kill the stopped rank, because it is on their node. */
Test(nccl, a_rank_is_stopped)
{
    plan_t plan = {.signal = SIGSTOP};

    fault(&plan, 128 + SIGKILL);
}

Test(nccl, a_gpu_hangs)
{
    /* In this order the copy is the last operation of the step, after its
     * collectives. */
    plan_t plan = {.stops = true, .order = DEV_FAR_NEEDED_ONLY};

    fault(&plan, ERR_PEER);
}

/* The thread of the staged group waits for the GPU, too. */
Test(nccl, a_gpu_hangs_and_gradients_go_through_the_host)
{
    plan_t plan = {.stops = true, .staged = true};

    fault(&plan, ERR_PEER);
}
