/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs on the test device: their checkpoints, losses and evaluations have
 * the bits of the CPU's. A step waits once and allocates nothing.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "dev/dev_far.h"
#include "train/harness.h"

enum { SAMPLES = 118, VALUES_MAX = 64 };

/* Settings of the harness's run file. */
typedef struct model {
    const char *name;
    const char *settings[5];
} model_t;

static const model_t dense = {"dense", {NULL}};
static const model_t image = {
    "image",
    {"model.input=[1, 4, 3]",
     "model.layers=[{conv: {out: 4, kernel: 3, pad: 1}}, batchnorm, relu, "
     "{maxpool: {kernel: 2}}, {conv: {out: 6, kernel: 2, pad: 1}}, gelu, "
     "{avgpool: {kernel: 2}}, {linear: {out: 2}}]"}};
static const model_t unet = {
    "unet",
    {"model.input=[3, 2, 2]",
     "model.layers=[{conv: {out: 3, kernel: 3, pad: 1}}, batchnorm, {name: "
     "side, relu: }, {maxpool: {kernel: 2}}, {conv: {out: 4, kernel: 3, pad: "
     "1}}, relu, {name: up, conv_transpose: {out: 3, kernel: 2, stride: 2}}, "
     "{concat: {axis: 1}, from: [side, up]}, {conv: {out: 2, kernel: 1}}, "
     "{linear: {out: 2}}]"}};
static const model_t words = {
    "lstm",
    {"data.input={path: /w}", "model.input=[3]",
     "model.layers=[{embedding: {vocabulary: 5, out: 6}}, {lstm: {out: 5}}, "
     "{dropout: {rate: 0.2}}, {linear: {out: 2}}]"}};
static const model_t gpt = {
    "gpt",
    {"data.input={path: /w}", "data.target={path: /w}", "model.input=[3]",
     "model.layers=[{embedding: {vocabulary: 5, out: 8}}, position, {name: x, "
     "dropout: {rate: 0.1}}, layernorm, {linear: {out: 24, flatten: false}}, "
     "{attention: {heads: 2, causal: true}}, {name: y, linear: {out: 8, "
     "flatten: false}}, {add: , from: [x, y]}, layernorm, {linear: {out: 5, "
     "flatten: false}}]"}};
/* Three losses, one of which is only watched; targets are ignored, and one step
 * has none for the first loss. */
static const model_t many = {
    "many",
    {"data.input={words: {path: /w}, x: {path: /x}}",
     "data.target={kind: {path: /y}, place: {path: /z, scale: 0.5}, how: "
     "{path: /v}}",
     "model.input={words: [3], x: [12]}",
     "model.layers=[{name: e, embedding: {vocabulary: 5, out: 4}, from: "
     "words}, {name: f, flatten: , from: e}, {name: g, linear: {out: 8}, from: "
     "x}, {name: h, concat: {axis: 1}, from: [f, g]}, batchnorm, {name: t, "
     "relu: }, {name: a, linear: {out: 2}, from: t}, {name: b, linear: {out: "
     "2}, from: t}]",
     "loss=[{cross_entropy: {ignore_index: 1, weight: [1, 3]}, from: a, "
     "target: kind}, {mse: , from: b, target: place, weight: 0.3, "
     "sample_weight: how}, {mae: , from: b, target: place, weight: 0, name: "
     "watched}]"}};

static void settings_of(harness_t *harness, const model_t *model,
                        const char *more, const char *device)
{
    int at = 0;

    while (at < 5 && model->settings[at] != NULL) {
        harness->settings[at] = model->settings[at];
        at++;
    }
    if (more != NULL)
        harness->settings[at++] = more;
    harness->settings[at++] = device;
    harness->settings[at] = NULL;
}

static void values_compare(const harness_t *a, const harness_t *b,
                           bool evaluations, const char *key)
{
    double x[VALUES_MAX], y[VALUES_MAX];
    const int count = harness_values(a, evaluations, key, x, VALUES_MAX);

    cr_assert_gt(count, 0);
    cr_assert_eq(harness_values(b, evaluations, key, y, VALUES_MAX), count);
    cr_expect_arr_eq(x, y, (size_t)count * sizeof *x, "%s", key);
}

/* Runs of [model] on the CPU and on the test device have the same bits. */
static void check_ranks(const model_t *model, const char *more, int ranks)
{
    harness_t cpu, far;
    train_outcome_t out[2];

    harness_open(&cpu, SAMPLES);
    harness_open(&far, SAMPLES);
    settings_of(&cpu, model, more, "train.device=cpu");
    settings_of(&far, model, more, "train.device=far");
    harness_run_ok(&cpu, ranks, &out[0]);
    harness_run_ok(&far, ranks, &out[1]);
    harness_compare(&cpu, &far, -1, 0, model->name);
    values_compare(&cpu, &far, false, "loss");
    values_compare(&cpu, &far, false, "grad_norm");
    values_compare(&cpu, &far, true, "loss");
    cr_expect_eq(out[0].loss, out[1].loss, "%s", model->name);
    cr_expect_null(dev_far_newest(), "the device is still open");
    harness_close(&far);
    harness_close(&cpu);
}

static void check_model(const model_t *model, const char *more)
{
    check_ranks(model, more, 1);
}

Test(far, dense)
{
    check_model(&dense, NULL);
}

Test(far, image)
{
    check_model(&image, NULL);
}

Test(far, unet)
{
    check_model(&unet, NULL);
}

Test(far, lstm)
{
    check_model(&words, NULL);
}

Test(far, gpt)
{
    check_model(&gpt, NULL);
}

Test(far, several_losses)
{
    check_model(&many, NULL);
}

/* ---- modes --------------------------------------------------------------- */

Test(far, micro_batches)
{
    check_model(&image, "train.accumulate=3");
}

Test(far, recompute)
{
    check_model(&gpt, "train.recompute=blocks");
}

Test(far, optimizers)
{
    check_model(&image, "optimizer={sgd: {lr: 0.1, momentum: 0.9}}");
    check_model(&dense, "optimizer={lamb: {lr: 0.01}}");
    check_model(&dense, "optimizer.groups=[{match: 'linear1.*', freeze: "
                        "true}]");
}

Test(far, moving_average)
{
    check_model(&image, "ema={decay: 0.8, evaluate: true}");
}

Test(far, clipping)
{
    check_model(&image, "train.clip_norm=0.01");
    check_model(&dense, "train.clip_value=1.0e-3");
}

Test(far, reproducible)
{
    check_model(&image, "train={epochs: 3, batch: 24, threads: 1, "
                        "reproducible: true, microbatch: 5}");
}

Test(far, shards)
{
    check_model(&image, "ddp={zero: 1}");
    check_model(&dense, "ddp={zero: 1}");
}

/* ---- a step -------------------------------------------------------------- */

#define STEPS 30

/* What the device has counted at each look for a signal, once a step. */
static dev_far_counts_t looks[VALUES_MAX];
static int look_count;

static slurm_signal_t count_at_look(void)
{
    dev_device_t *dev = dev_far_newest();

    if (dev != NULL && look_count < VALUES_MAX)
        looks[look_count++] = dev_far_counts(dev);
    return SLURM_SIGNAL_NONE;
}

static void check_step(const model_t *model, const char *more)
{
    train_outcome_t out;
    harness_t harness;

    look_count = 0;
    harness_open(&harness, 24 * 10);
    harness.signal = count_at_look;
    settings_of(&harness, model, "data.valid=[]", "train.device=far");
    for (int i = 0; more != NULL && i < 12; i++)
        if (harness.settings[i] == NULL) {
            harness.settings[i] = more;
            break;
        }
    harness_run_ok(&harness, 1, &out);
    /* While a run waits for deletes at its end, it also looks for a signal. */
    cr_assert_geq(look_count, STEPS);
    look_count = STEPS;
    for (int i = 3; i < look_count; i++) {
        /* A checkpoint is written at the end of the run only. */
        cr_expect_eq(looks[i].waits - looks[i - 1].waits, 1,
                     "%s: step %d waited %lld times", model->name, i,
                     (long long)(looks[i].waits - looks[i - 1].waits));
        cr_expect_eq(looks[i].allocs, looks[2].allocs);
        cr_expect_eq(looks[i].unpinned, looks[2].unpinned);
    }
    /* Each of the two slots first has two plain steps; after that each step is
     * a launch of a graph. Only the last step of an epoch is no launch: it
     * would need a graph of its own, and comes too seldom here. */
    for (int i = 1; i < look_count; i++)
        cr_expect_eq(looks[i].launches - looks[i - 1].launches,
                     i > 4 && i % 10 != 0, "%s: %lld launches at look %d",
                     model->name, (long long)looks[i].launches, i);
    cr_expect_lt(looks[19].calls - looks[18].calls, 20);
    harness_close(&harness);
}

Test(far, waits_once_a_step)
{
    check_step(&dense, NULL);
    check_step(&gpt, "train.accumulate=3");
    check_step(&many, NULL);
    check_step(&image, "train={epochs: 3, batch: 24, threads: 1, "
                       "reproducible: true, microbatch: 5, device: far}");
    check_step(&dense, "ddp={zero: 1}");
}

/* ---- failures ------------------------------------------------------------ */

/* Let every [stride]-th call of the last rank's device fail in turn. The run
 * ends on all ranks with one code and the sentence of a device, and everything
 * that was opened on a device is closed again, which the device checks. */
static void check_failures(const model_t *model, int ranks, int stride)
{
    harness_t harness;
    train_outcome_t out;
    int64_t call = 1 - stride;
    bool started = false;
    err_code_t rc;

    harness_open(&harness, 24 * 2 + 3);
    settings_of(&harness, model, "train.epochs=1", "train.device=far");
    harness.resume = TRAIN_RESUME_FRESH;
    do {
        err_t err = ERR_INIT;

        call += stride;
        dev_far_fail_new(ranks - 1, call);
        rc = harness_run(&harness, ranks, &out, &err);
        started = started || rc == ERR_PEER;
        cr_assert(rc == ERR_OK || strstr(err.text, "failed (call") != NULL,
                  "%s, call %lld: %d, %s", model->name, (long long)call,
                  (int)rc, err.text);
        cr_assert_eq(rc,
                     rc == ERR_OK ? ERR_OK
                     : started    ? ERR_PEER
                                  : ERR_UNAVAILABLE,
                     "call %lld: %s", (long long)call, err.text);
        cr_assert_null(dev_far_newest(), "call %lld", (long long)call);
    } while (rc != ERR_OK);
    dev_far_fail_new(ranks - 1, 0);
    cr_expect_gt(call, 100);
    cr_expect(started);
    harness_close(&harness);
}

Test(far, every_call_fails_in_turn)
{
    check_failures(&dense, 1, 1);
}

Test(far, calls_of_two_ranks_fail)
{
    check_failures(&image, 2, 13);
}

/* The devices of both ranks fail in the same call: the ranks must still agree
 * on a culprit, and one of them must print the sentence of the end. */
Test(far, two_devices_fail_at_once)
{
    harness_t harness;
    train_outcome_t out;

    harness_open(&harness, 24 * 2 + 3);
    settings_of(&harness, &dense, "train.epochs=1", "train.device=far");
    harness.resume = TRAIN_RESUME_FRESH;
    for (int64_t call = 40; call < 240; call += 5) {
        err_t err = ERR_INIT;
        err_code_t rc;

        dev_far_fail_new(0, call);
        dev_far_fail_new(1, call);
        rc = harness_run(&harness, 2, &out, &err);
        cr_assert(rc == ERR_OK || strstr(err.text, "failed (call") != NULL,
                  "call %lld: %d, %s", (long long)call, (int)rc, err.text);
    }
    dev_far_fail_new(0, 0);
    dev_far_fail_new(1, 0);
    harness_close(&harness);
}

/* A capture that fails is not the end: then the steps are made plainly. */
Test(far, calls_fail_around_a_capture)
{
    harness_t harness;
    train_outcome_t out;
    int ends[2] = {0};

    harness_open(&harness, 24 * 9);
    settings_of(&harness, &dense, "train.epochs=1", "train.device=far");
    harness.settings[2] = "data.valid=[]";
    harness.resume = TRAIN_RESUME_FRESH;
    for (int64_t call = 100; call < 330; call += 3) {
        err_t err = ERR_INIT;
        err_code_t rc;

        dev_far_fail_new(0, call);
        rc = harness_run(&harness, 1, &out, &err);
        cr_assert(rc == ERR_OK || (rc == ERR_PEER &&
                                   strstr(err.text, "failed (call") != NULL),
                  "call %lld: %d, %s", (long long)call, (int)rc, err.text);
        cr_assert_null(dev_far_newest(), "call %lld", (long long)call);
        ends[rc == ERR_OK]++;
    }
    dev_far_fail_new(0, 0);
    cr_expect_gt(ends[0], 20);
    cr_expect_gt(ends[1], 10);
    harness_close(&harness);
}

/* ---- bad numbers ----------------------------------------------------------
 */

/* A run of [model] on [ranks] ranks ends with [code] and the same sentence on
 * both devices. */
static void check_refusal(const model_t *model, const char *more, int ranks,
                          err_code_t code)
{
    const char *const devices[] = {"train.device=cpu", "train.device=far"};
    err_t errs[2] = {ERR_INIT, ERR_INIT};
    const char *says[2];

    for (int i = 0; i < 2; i++) {
        harness_t harness;
        train_outcome_t out;

        harness_open(&harness, SAMPLES);
        settings_of(&harness, model, more, devices[i]);
        harness_label_set(&harness, 40,
                          strcmp(more, "data.shuffle=none") == 0 ? 5 : 1);
        cr_expect_eq(harness_run(&harness, ranks, &out, &errs[i]), code,
                     "%s: %s", devices[i], errs[i].text);
        /* Paths of the two runs differ. */
        says[i] = strstr(errs[i].text, "train.h5");
        says[i] = says[i] == NULL ? errs[i].text : says[i];
        harness_close(&harness);
    }
    cr_expect_str_eq(says[1], says[0]);
    cr_expect_null(dev_far_newest());
}

Test(far, bad_label)
{
    check_refusal(&dense, "data.shuffle=none", 1, ERR_DATA);
    check_refusal(&dense, "data.shuffle=none", 2, ERR_DATA);
}

/* The loader does not know this one. */
Test(far, bad_weight)
{
    const char *const weights =
        "data.target={kind: {path: /y}, place: {path: /z}, how: {path: /v, "
        "scale: -1}}";

    check_refusal(&many, weights, 1, ERR_DATA);
    check_refusal(&many, weights, 3, ERR_DATA);
}

Test(far, loss_that_is_no_number)
{
    check_refusal(&dense, "data.input.scale=1.0e37", 1, ERR_DIVERGED);
    check_refusal(&dense, "data.input.scale=1.0e37", 3, ERR_DIVERGED);
}

/* ---- several ranks ------------------------------------------------------- */

Test(far, two_ranks)
{
    check_ranks(&dense, NULL, 2);
    check_ranks(&many, NULL, 2);
}

/* The next step changes the state of a hook, which is in the host's memory. */
Test(far, training_waits_for_checkpoints_if_a_hook_has_state)
{
    for (int device = 0; device < 2; device++) {
        harness_t harness;
        char *said;

        harness_open(&harness, 24 * 10);
        settings_of(&harness, &dense, "ddp.hook=fp16",
                    device == 0 ? "train.device=far" : "train.device=cpu");
        said = harness_listen(&harness, 2);
        cr_expect_eq(strstr(said, "training waits for each checkpoint") != NULL,
                     device == 0, "%s", said);
        free(said);
        harness_close(&harness);
    }
}

Test(far, two_ranks_in_modes)
{
    check_ranks(&image,
                "train={epochs: 3, batch: 24, threads: 1, "
                "reproducible: true, microbatch: 5}",
                2);
    check_ranks(&dense, "ddp.local_sgd={period: 3, start: 4}", 2);
    check_ranks(&dense, "ddp.zero=1", 2);
}
