/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Metrics: compared with values worked out by hand, summed over any split of
 * the samples, and in whole runs equal on any number of ranks. */
#include "train/score.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "conf/conf.h"
#include "train/harness.h"

#define SUMS_MAX 64

/* A graph whose output has the shape of its input, and the metrics of that
 * graph. */
typedef struct rig {
    tree_t *tree;
    nn_graph_t *graph;
    train_scores_t *scores;
} rig_t;

static err_code_t rig_try(rig_t *rig, const char *input, const char *loss,
                          const char *metrics, err_t *err)
{
    char text[512];
    err_t none = ERR_INIT;

    snprintf(text, sizeof text,
             "model: {input: %s, layers: [position]}\nloss: %s\nmetrics: %s\n",
             input, loss, metrics);
    cr_assert_eq(conf_parse("m.yaml", text, &rig->tree, &none), ERR_OK, "%s",
                 none.text);
    cr_assert_eq(nn_graph_open(tree_get(rig->tree, "model"),
                               tree_get(rig->tree, "loss"), &rig->graph, &none),
                 ERR_OK, "%s", none.text);
    rig->scores = NULL;
    return train_scores_open(tree_get(rig->tree, "metrics"), rig->graph, 0,
                             &rig->scores, err);
}

static rig_t rig_open(const char *input, const char *loss, const char *metrics)
{
    rig_t rig;
    err_t err = ERR_INIT;

    cr_assert_eq(rig_try(&rig, input, loss, metrics, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_leq(train_scores_sums(rig.scores), SUMS_MAX);
    return rig;
}

static void rig_close(rig_t *rig)
{
    train_scores_close(rig->scores);
    nn_graph_close(rig->graph);
    tree_free(rig->tree);
}

/* The value of the metric called [name]. */
static double value_of(const rig_t *rig, double loss, const double *sums,
                       const char *name)
{
    obs_value_t values[OBS_VALUES_MAX];
    int count = train_scores_values(rig->scores, loss, sums, values);

    for (int i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0)
            return values[i].value;
    cr_assert_fail("there is no %s", name);
    return NAN;
}

/* Four samples of three classes. The target has rank 0, 1 and 2 among the
 * logits of the first three; in the last it is tied for the largest, where the
 * first index wins. */
static const float logits[4][3] = {{3, 1, 2}, {3, 2, 1}, {1, 2, 3}, {0, 5, 5}};
static const int64_t labels[] = {0, 1, 0, 1};

/* Predicted classes are 0, 0, 2, 1; labels 0, 1, 0, 1. Rows predicted
 * correctly, rows predicted, rows with the label: class 0: 1, 2, 2; class 1: 1,
 * 1, 2; class 2: 0, 1, 0. */
static void expect_classes(const rig_t *rig, const double *sums)
{
    cr_expect_eq(value_of(rig, 0, sums, "top1"), 0.5);
    cr_expect_eq(value_of(rig, 0, sums, "top2"), 0.75);
    cr_expect_float_eq(value_of(rig, 0, sums, "miou"), (1.0 / 3 + 0.5 + 0) / 3,
                       1e-15);
    cr_expect_eq(value_of(rig, 0, sums, "iou2"), 0);
    cr_expect_float_eq(value_of(rig, 1.25, sums, "perplexity"), exp(1.25),
                       1e-15, "from the loss");
}

Test(score, of_classes)
{
    rig_t rig = rig_open("[3]", "cross_entropy",
                         "[accuracy, top1, top2, miou, iou2, perplexity]");
    double sums[SUMS_MAX] = {0};

    cr_expect(train_scores_look(rig.scores));
    train_scores_add(rig.scores, logits[0], labels, 1, sums);
    train_scores_add(rig.scores, logits[1], labels + 1, 3, sums);
    expect_classes(&rig, sums);
    rig_close(&rig);
}

/* The label is the class of the largest probability; if several are equal, the
 * first of them. */
Test(score, of_probabilities_of_classes)
{
    static const float soft[4][3] = {
        {0.4f, 0.3f, 0.3f}, {0, 1, 0}, {0.5f, 0, 0.5f}, {0.2f, 0.6f, 0.2f}};
    rig_t rig = rig_open("[3]", "{cross_entropy: {soft_target: true}}",
                         "[top1, top2, miou, iou2, perplexity]");
    rig_t smooth = rig_open(
        "[3]", "{cross_entropy: {soft_target: true, label_smoothing: 0.1}}",
        "bits");
    double sums[SUMS_MAX] = {0};

    train_scores_add(rig.scores, logits[0], soft[0], 1, sums);
    train_scores_add(rig.scores, logits[1], soft[1], 3, sums);
    expect_classes(&rig, sums);
    rig_close(&rig);
    memset(sums, 0, sizeof sums);
    train_scores_add(smooth.scores, logits[0], soft[0], 1, sums);
    cr_expect_float_eq(
        value_of(&smooth, 0, sums, "bits"),
        (log(exp(3.0) + exp(1.0) + exp(2.0)) - 0.4 * 3 - 0.3 - 0.6) / log(2.0),
        1e-6, "of the targets, not of the smoothed loss");
    rig_close(&smooth);
}

/* Classes are along the first dimension of the output. */
Test(score, of_probabilities_at_positions)
{
    static const float x[] = {1, 0, 2, 9, 0, 1, 0, 0};
    static const float soft[] = {1, 0.7f, 0.2f, 0, 0, 0.3f, 0.8f, 1};
    rig_t rig = rig_open("[2, 2, 2]", "{cross_entropy: {soft_target: true}}",
                         "[iou0, top1]");
    double sums[SUMS_MAX] = {0};

    train_scores_add(rig.scores, x, soft, 1, sums);
    cr_expect_eq(value_of(&rig, 0, sums, "top1"), 0.25);
    cr_expect_float_eq(value_of(&rig, 0, sums, "iou0"), 1.0 / 4, 1e-15);
    rig_close(&rig);
}

Test(score, of_positions_with_ignored_ones)
{
    /* One sample with dimensions [classes 2, positions 2 x 2]; the last
     * position is ignored. */
    static const float x[] = {1, 0, 2, 9, 0, 1, 0, 0};
    static const int64_t target[] = {0, 0, 1, 7};
    rig_t rig = rig_open("[2, 2, 2]",
                         "{cross_entropy: {ignore_index: 7, "
                         "label_smoothing: 0.1}}",
                         "[miou, iou0, bits]");
    double sums[SUMS_MAX] = {0}, entropy;

    train_scores_add(rig.scores, x, target, 1, sums);
    cr_expect_float_eq(value_of(&rig, 0, sums, "iou0"), 1.0 / 3, 1e-15);
    cr_expect_float_eq(value_of(&rig, 0, sums, "miou"), 1.0 / 6, 1e-15);
    entropy = log(1 + exp(-1.0)) + log(1 + exp(1.0)) + log(1 + exp(2.0));
    cr_expect_float_eq(value_of(&rig, 0, sums, "bits"), entropy / 3 / log(2.0),
                       1e-12, "not from the loss");
    rig_close(&rig);
}

Test(score, of_numbers)
{
    static const float x[] = {1, 2, 3, 5}, target[] = {1, 3, 2, 8};
    rig_t rig = rig_open("[2]", "mse", "[mae, rmse, r2]");
    double sums[SUMS_MAX] = {0};

    train_scores_add(rig.scores, x, target, 1, sums);
    train_scores_add(rig.scores, x + 2, target + 2, 1, sums);
    cr_expect_eq(value_of(&rig, 0, sums, "mae"), 1.25);
    cr_expect_float_eq(value_of(&rig, 0, sums, "rmse"), sqrt(11.0 / 4), 1e-15);
    cr_expect_float_eq(value_of(&rig, 0, sums, "r2"), (-1 + 0.2) / 2, 1e-12,
                       "the mean of -1 and 0.2");
    rig_close(&rig);
}

/* The values of scikit-learn's r2_score: each output counts alike, whatever its
 * magnitude; an output with a constant target scores 1 if predicted exactly,
 * else 0. */
Test(score, r2_is_the_mean_over_outputs)
{
    enum { SAMPLES = 4000 };
    rig_t rig = rig_open("[3]", "mse", "r2");
    double sums[2][SUMS_MAX] = {{0}, {0}};

    for (int i = 0; i < SAMPLES; i++) {
        const float wave = (float)(i % 7) - 3;
        const float t[] = {1000 * wave, 0.001f * wave, 0.1f};
        const float x[] = {1000 * wave, -0.001f * wave, i == 0 ? 0.2f : 0.1f};

        train_scores_add(rig.scores, x, t, 1, sums[i % 2]);
    }
    for (int k = 0; k < SUMS_MAX; k++)
        sums[0][k] += sums[1][k];
    cr_expect_float_eq(value_of(&rig, 0, sums[0], "r2"), (1.0 - 3 + 0) / 3,
                       1e-5);
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < SAMPLES; i++) {
        const float t[] = {(float)i, 0, 0.1f}, x[] = {(float)i, 0, 0.1f};

        train_scores_add(rig.scores, x, t, 1, sums[0]);
    }
    cr_expect_eq(value_of(&rig, 0, sums[0], "r2"), 1);
    rig_close(&rig);
}

Test(score, of_yes_or_no)
{
    static const float x[] = {1, -2, 3, -5}, target[] = {1, 1, 0, 0};
    rig_t rig = rig_open("[2]", "bce", "auto");
    double sums[SUMS_MAX] = {0};

    train_scores_add(rig.scores, x, target, 2, sums);
    cr_expect_eq(value_of(&rig, 0, sums, "accuracy"), 0.5);
    rig_close(&rig);
}

static void expect_auto(const char *input, const char *loss, const char *names)
{
    rig_t rig = rig_open(input, loss, "auto");
    obs_value_t values[OBS_VALUES_MAX];
    double sums[SUMS_MAX] = {0};
    int count = train_scores_values(rig.scores, 0, sums, values);
    char found[OBS_VALUES_MAX * sizeof values[0].name] = "";
    size_t at = 0;

    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(found + at, sizeof found - at, "%s ",
                               values[i].name);
    cr_expect_str_eq(found, names, "%s %s: %s", input, loss, found);
    rig_close(&rig);
}

Test(score, what_goes_with_a_loss)
{
    expect_auto("[5]", "cross_entropy", "");
    expect_auto("[7, 5]", "cross_entropy", "perplexity ");
    expect_auto("[5, 4, 4]", "cross_entropy", "miou ");
    expect_auto("[5]", "{cross_entropy: {soft_target: true}}", "");
    expect_auto("[7, 5]", "{cross_entropy: {soft_target: true}}",
                "perplexity ");
    expect_auto("[5]", "mse", "mae r2 ");
    expect_auto("[5]", "bce", "accuracy ");
    expect_auto("[5]", "kl", "");
}

static void expect_refused(const char *loss, const char *metrics,
                           const char *says)
{
    rig_t rig;
    err_t err = ERR_INIT;

    cr_assert_eq(rig_try(&rig, "[5]", loss, metrics, &err), ERR_CONFIG);
    cr_expect_null(rig.scores);
    cr_expect_not_null(strstr(err.text, says), "%s", err.text);
    rig_close(&rig);
}

Test(score, what_is_no_metric_is_told_with_its_place)
{
    expect_refused("mse", "[mae, f1]", "m.yaml:3:16: metrics: f1 is unknown");
    expect_refused("mse", "top5", "m.yaml:3:10: metrics: top5 does not go");
    expect_refused("cross_entropy", "[r2]",
                   "r2 does not go with the loss cross_entropy");
    expect_refused("cross_entropy", "[top0]", "top0 is unknown");
    expect_refused("cross_entropy", "[top6]",
                   "top6 is beyond the model's 5 classes");
    expect_refused("cross_entropy", "[iou5]",
                   "iou5 is beyond the model's 5 classes");
    expect_refused("cross_entropy", "[bits, bits]",
                   "m.yaml:3:17: metrics: "
                   "bits is named twice");
    expect_refused("cross_entropy", "{bits: 1}", "bits is the name of no loss");
    expect_refused("cross_entropy", "{targett: 1}",
                   "is the name of no loss; did you mean 'target'?");
    expect_refused("cross_entropy", "7", "metrics: 7 is unknown");
}

/* ---- in runs ---------------------------------------------------------------
 */

/* Copy the end of the last evaluation's row, from "accuracy" on, to [out]. */
static void last_row(const harness_t *harness, char out[512])
{
    char path[300];
    const char *at, *next;
    char *text;
    size_t bytes;
    err_t err = ERR_INIT;

    snprintf(path, sizeof path, "%s/run/metrics.jsonl", harness->dir);
    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s", err.text);
    at = strstr(text, "\"accuracy\": ");
    cr_assert_not_null(at);
    while ((next = strstr(at + 1, "\"accuracy\": ")) != NULL)
        at = next;
    snprintf(out, 512, "%.*s", (int)strcspn(at, "\n"), at);
    free(text);
}

Test(score, runs_have_the_same_metrics_on_any_number_of_ranks)
{
    char first[512], row[512], path[300];
    char *summary;
    size_t bytes;
    err_t err = ERR_INIT;

    for (int n = 1; n <= 4; n++) {
        train_outcome_t out;
        harness_t harness;

        harness_open(&harness, 101);
        harness.settings[0] = "metrics=[top1, miou, iou1, bits]";
        harness.settings[1] = "train.reproducible=true";
        harness.settings[2] = "loss={cross_entropy: {label_smoothing: 0.1}}";
        harness.settings[3] = "train.epochs=1";
        harness_run_ok(&harness, n, &out);
        last_row(&harness, row);
        if (n == 1)
            memcpy(first, row, sizeof first);
        cr_expect_str_eq(row, first, "%d ranks", n);
        snprintf(path, sizeof path, "%s/run/summary.json", harness.dir);
        cr_assert_eq(file_read(path, &summary, &bytes, &err), ERR_OK);
        cr_expect_not_null(strstr(summary, "\"miou\": 0."), "%s", summary);
        free(summary);
        harness_close(&harness);
    }
    cr_expect_not_null(strstr(first, "\"top1\": 0."), "%s", first);
    cr_expect_not_null(strstr(first, "\"bits\": 0."), "%s", first);
}

/* The default mode, where some ranks have no samples in the last step. */
Test(score, every_sample_counts_once)
{
    char first[512], row[512];

    for (int n = 1; n <= 3; n++) {
        train_outcome_t out;
        harness_t harness;

        harness_open(&harness, 101);
        harness.settings[0] = "metrics=[top1, iou1]";
        harness.settings[1] = "model.layers=[{linear: {out: 2}}]";
        harness.settings[2] = "optimizer={sgd: {lr: 1.0e-30}}";
        harness.settings[3] = "train.epochs=1";
        harness_run_ok(&harness, n, &out);
        last_row(&harness, row);
        if (n == 1)
            memcpy(first, row, sizeof first);
        cr_expect_str_eq(row, first, "%d ranks", n);
        cr_expect_not_null(strstr(row, "\"top1\": 0."), "%s", row);
        harness_close(&harness);
    }
}
