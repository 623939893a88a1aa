/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Runs with several inputs and losses: the number of ranks does not change the
 * result, each loss has its own mean and its own columns, and errors about
 * unsuitable names say where in the run file they are.
 */
#include "train/fields.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "lib/facts.h"
#include "train/harness.h"

/* Batches have 24 samples in the order of the file; the last has 5. */
#define SAMPLES 101
#define STEPS 15
#define IGNORED 7

/* ---- runs ---------------------------------------------------------------- */

static void fields_open(harness_t *harness)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "data.shuffle=none";
    harness->settings[1] =
        "data.input={x: {path: /x}, words: {path: /w, cast: float32}}";
    harness->settings[2] = "data.target={kind: {path: /y}, place: {path: /z, "
                           "scale: 0.5}}";
    harness->settings[3] = "model.input={words: [3], x: [12]}";
    harness->settings[4] =
        "model.layers=[{linear: {out: 8}, from: x}, {name: seen, "
        "tanh: }, {embedding: {vocabulary: 5, out: 4}, from: words}, {name: "
        "read, flatten: }, {concat: , from: [seen, read]}, {name: both, "
        "dropout: {rate: 0.1}}, {name: a, linear: {out: 2}, from: both}, "
        "{name: b, linear: {out: 2}, from: both}]";
    harness->settings[5] =
        "loss=[{cross_entropy: {ignore_index: 7, weight: [1, 3]}, from: a, "
        "target: kind}, {mse: , from: b, target: place, weight: 0.3}, {mae: , "
        "from: b, target: place, weight: 0, name: watched}]";
    /* The second step (samples 24 to 47) has no target that counts in the first
     * loss. */
    for (int i = 0; i < SAMPLES; i++)
        if ((i >= 24 && i < 48) || i % 7 == 0)
            harness_label_set(harness, i, IGNORED);
}

static const struct {
    bool eval;
    const char *key;
} columns[] = {
    {false, "loss"},         {false, "kind_loss"}, {false, "place_loss"},
    {false, "watched_loss"}, {true, "loss"},       {true, "accuracy"},
    {true, "kind_accuracy"}, {true, "kind_loss"},  {true, "place_loss"},
    {true, "place_mae"},     {true, "place_r2"},   {true, "watched_loss"}};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

typedef double table_t[COLUMNS][STEPS];

static void table_read(const harness_t *harness, table_t table)
{
    for (int c = 0; c < COLUMNS; c++)
        cr_assert_eq(harness_values(harness, columns[c].eval, columns[c].key,
                                    table[c], STEPS),
                     columns[c].eval ? 3 : STEPS);
}

static void table_compare(table_t a, table_t b, const char *what)
{
    for (int c = 0; c < COLUMNS; c++)
        for (int i = 0; i < (columns[c].eval ? 3 : STEPS); i++)
            cr_assert((isnan(a[c][i]) && isnan(b[c][i])) ||
                          fabs(a[c][i] - b[c][i]) <= 2e-5,
                      "%s: %s[%d] is %.9g and %.9g", what, columns[c].key, i,
                      a[c][i], b[c][i]);
}

Test(fields, ranks_and_parts_change_nothing, .timeout = 120)
{
    static const char *const more[] = {NULL, "train.accumulate=3", "ddp.zero=1",
                                       "data.prefetch=0"};
    table_t first = {{0}};
    train_outcome_t out;

    for (int n = 1; n <= 5; n++) {
        table_t table = {{0}};
        harness_t harness;

        fields_open(&harness);
        harness.settings[6] = more[n % 4];
        harness_run_ok(&harness, n, &out);
        table_read(&harness, n == 1 ? first : table);
        if (n > 1)
            table_compare(first, table,
                          harness.settings[6] == NULL ? "ranks"
                                                      : harness.settings[6]);
        harness_close(&harness);
    }
}

Test(fields, a_loss_without_targets_is_left_out_of_the_step)
{
    table_t t = {{0}};
    train_outcome_t out;
    harness_t harness;

    fields_open(&harness);
    harness_run_ok(&harness, 2, &out);
    table_read(&harness, t);
    cr_expect(isnan(t[1][1]), "%g", t[1][1]);
    cr_expect_float_eq(t[0][1], 0.3 * t[2][1], 1e-9);
    cr_expect_float_eq(t[0][0], t[1][0] + 0.3 * t[2][0], 1e-9);
    cr_expect_gt(t[3][0], 0);
    cr_expect_float_eq(t[4][2], t[7][2] + 0.3 * t[8][2], 1e-9);
    cr_expect_eq(t[5][2], t[6][2]);
    cr_expect_float_eq(out.loss, t[4][2], 1e-12);
    /* The run learns both targets. */
    cr_expect_lt(t[8][2], 0.9 * t[8][0]);
    cr_expect_gt(t[6][2], 0.7);
    harness_close(&harness);
}

Test(fields, reproducible_runs_have_the_same_bits, .timeout = 120)
{
    harness_t one, other;
    train_outcome_t out;

    fields_open(&one);
    one.settings[6] = "train.reproducible=true";
    one.settings[7] = "train.microbatch=5";
    harness_run_ok(&one, 1, &out);
    for (int n = 2; n <= 4; n++) {
        char what[32];

        fields_open(&other);
        other.settings[6] = one.settings[6];
        other.settings[7] = one.settings[7];
        harness_run_ok(&other, n, &out);
        snprintf(what, sizeof what, "%d ranks", n);
        harness_compare(&one, &other, STEPS, 0, what);
        harness_close(&other);
    }
    harness_close(&one);
}

Test(fields, an_interrupted_run_ends_with_the_same_bits, .timeout = 120)
{
    const int lives[2] = {2, 2};
    harness_t whole, parts;
    train_outcome_t out;

    fields_open(&whole);
    fields_open(&parts);
    harness_run_ok(&whole, 2, &out);
    cr_expect_gt(harness_run_interrupted(&parts, 9, lives, &out), 2);
    harness_compare(&whole, &parts, STEPS, 0, "interrupted");
    harness_close(&whole);
    harness_close(&parts);
}

/* ---- weights of samples -------------------------------------------------- */

static void weights_open(harness_t *harness, const char *target,
                         const char *loss)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = "data.shuffle=none";
    harness->settings[1] = target;
    harness->settings[2] = loss;
    /* No batch norm: its statistics depend on how samples are shared among
     * ranks. */
    harness->settings[3] =
        "model.layers=[{linear: {out: 8}}, tanh, {dropout: {rate: 0.1}}, "
        "{linear: {out: 2}}]";
}

/* A sample of weight 0 counts like one whose target is ignored, on any number
 * of ranks and in every mode. */
Test(fields, samples_count_by_their_weights, .timeout = 120)
{
    static const char *const more[] = {NULL, NULL, "train.accumulate=3",
                                       "train.reproducible=true", "ddp.zero=1"};
    double ignored[STEPS], weighed[STEPS];
    harness_t plain, harness;
    train_outcome_t out;

    weights_open(&plain, "data.target.path=/y",
                 "loss={cross_entropy: {ignore_index: 7, weight: [1, 3]}}");
    for (int i = 0; i < SAMPLES; i += 7)
        harness_label_set(&plain, i, IGNORED);
    harness_run_ok(&plain, 2, &out);
    cr_assert_eq(harness_values(&plain, false, "loss", ignored, STEPS), STEPS);
    for (int n = 1; n <= 5; n++) {
        weights_open(&harness,
                     "data.target={y: {path: /y}, w: {path: /v, scale: 0.5}}",
                     "loss={cross_entropy: {weight: [1, 3]}, target: y, "
                     "sample_weight: w}");
        harness.settings[4] = "train.microbatch=5";
        harness.settings[5] = more[n - 1];
        harness_run_ok(&harness, n, &out);
        cr_assert_eq(harness_values(&harness, false, "loss", weighed, STEPS),
                     STEPS);
        for (int i = 0; i < STEPS; i++)
            cr_assert_float_eq(weighed[i], ignored[i], 2e-5,
                               "%d ranks: %d: "
                               "%.9g, not %.9g",
                               n, i, weighed[i], ignored[i]);
        harness_close(&harness);
    }
    harness_close(&plain);
}

Test(fields, weights_below_zero_are_refused)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    weights_open(&harness,
                 "data.target={y: {path: /y}, w: {path: /v, scale: -1}}",
                 "loss={cross_entropy: , target: y, sample_weight: w}");
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
    facts_expect(err.text,
                 (const char *[FACTS_MAX]){"loss cross_entropy", "weight"});
    harness_close(&harness);
}

/* The target is read both as classes and as numbers, from one dataset or from
 * two. */
Test(fields, two_losses_of_different_type_read_one_target, .timeout = 120)
{
    static const char *const targets[] = {
        "data.target.path=/y", "data.target={k: {path: /y}, r: {path: /y}}"};
    static const char *const losses[] = {
        "loss=[{cross_entropy: , from: a}, {mse: , from: b, name: far}, {mae: "
        ", from: b, name: near}]",
        "loss=[{cross_entropy: , from: a, target: k}, {mse: , from: b, target: "
        "r}, {mae: , from: b, target: r, name: near}]"};
    harness_t runs[2];
    train_outcome_t out;

    for (int i = 0; i < 2; i++) {
        weights_open(&runs[i], targets[i], losses[i]);
        runs[i].settings[3] =
            "model.layers=[{name: a, linear: {out: 2}}, {name: b, linear: "
            "{out: 1}, from: input}]";
        harness_run_ok(&runs[i], 2, &out);
        cr_expect(isfinite(out.loss));
    }
    harness_compare(&runs[0], &runs[1], STEPS, 0, "one target, two");
    for (int i = 0; i < 2; i++)
        harness_close(&runs[i]);
}

/* ---- messages ------------------------------------------------------------ */

#define REST                                                             \
    "model: {input: {image: [4], meta: [2]}, layers: [{concat: , from: " \
    "[image, meta]}, {name: both, linear: {out: 3}}]}\n"                 \
    "loss: [{cross_entropy: , target: kind}, {mse: , target: place}]\n"  \
    "optimizer: sgd\n"
#define ONE                                                          \
    "model: {input: [4], layers: [{linear: {out: 3}}]}\nloss: mse\n" \
    "optimizer: sgd\n"
#define INPUT "input: {image: {path: /a}, meta: {path: /b}},\n"
#define TARGET "target: {kind: {path: /c}, place: {path: /d}}}\n"

static const struct {
    const char *text;
    const char *facts[FACTS_MAX]; /* the first is the place */
} wrongs[] = {
    {"data: {train: a.h5, input: {image: {path: /a}, mta: {path: /b}},\n" TARGET
         REST,
     {"run.yaml:1:48: ", "data.input.mta", "'meta'", "image, meta"}},
    {"data: {train: a.h5, input: {image: {path: /a}},\n" TARGET REST,
     {"run.yaml:3:29: ", "model.input.meta", "data.input.meta"}},
    {"data: {train: a.h5, input: {path: /a},\n" TARGET REST,
     {"run.yaml:3:17: ", "model.input.image", "data.input.image"}},
    {"data: {train: a.h5, " INPUT
     "target: {kind: {path: /c}, plac: {path: /d}}}\n" REST,
     {"run.yaml:2:28: ", "data.target.plac", "'place'", "kind, place"}},
    {"data: {train: a.h5, " INPUT "target: {kind: {path: /c}}}\n" REST,
     {"run.yaml:4:42: ", "loss mse", "data.target.place"}},
    {"data: {train: a.h5, " INPUT "target: {path: /c}}\n" REST,
     {"run.yaml:4:9: ", "loss cross_entropy", "data.target.kind"}},
    {"data: {train: a.h5, input: {path: /a},\n" TARGET ONE,
     {"run.yaml:2:10: ", "data.target.kind", "target)"}},
    {"data: {train: a.h5, input: {a: {path: /a}},\ntarget: {path: /c}}\n" ONE,
     {"run.yaml:1:29: ", "data.input.a", "input)"}},
    {"data: {train: a.h5, input: {path: /a}, sequence: 4}\n"
     "model: {input: [4], layers: [{embedding: {vocabulary: 3, out: 2}}, "
     "{linear: {out: 3, flatten: false}}]}\n"
     "loss: [{cross_entropy: , target: a}, {cross_entropy: , target: b}]\n"
     "optimizer: sgd\n",
     {"run.yaml:3:39: ", "loss cross_entropy", "data.sequence"}},
    {"data: {train: a.h5, input: {path: /a}, sequence: 4}\n"
     "model: {input: {a: [4], b: [4]}, layers: [{concat: , from: [a, b]}, "
     "{linear: {out: 3}}]}\nloss: cross_entropy\noptimizer: sgd\n",
     {"run.yaml:2:25: ", "model.input.b", "data.sequence"}},
};

Test(fields, names_that_do_not_fit_have_their_place)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        hdf5io_dataset_config_t data = {0};
        nn_graph_t *graph = NULL;
        train_fields_t texts;
        train_config_t config;
        tree_t *tree = NULL;
        err_t err = ERR_INIT;

        cr_assert_eq(conf_parse("run.yaml", wrongs[i].text, &tree, &err),
                     ERR_OK, "%s", err.text);
        cr_assert_eq(train_config_read(tree, NULL, &config, &err), ERR_OK, "%s",
                     err.text);
        cr_assert_eq(nn_graph_open(config.model, config.loss, &graph, &err),
                     ERR_OK, "%s", err.text);
        cr_expect_eq(train_fields_match(&config, graph, &texts, &data, &err),
                     ERR_CONFIG);
        cr_expect_eq(
            strncmp(err.text, wrongs[i].facts[0], strlen(wrongs[i].facts[0])),
            0, "expected: %s\n   found: %s", wrongs[i].facts[0], err.text);
        facts_expect(err.text, wrongs[i].facts);
        nn_graph_close(graph);
        train_config_free(&config);
        tree_free(tree);
    }
}

/* Losses that do not fit their target. The message begins with the place of the
 * loss ("--set ..."). */
static const struct {
    const char *loss, *target;
    const char *facts[FACTS_MAX];
} misfits[] = {
    {"loss=cross_entropy", "data.target.path=/z", {"loss cross_entropy"}},
    {"loss=[{cross_entropy: , target: a}]",
     "data.target={a: {path: /z}}",
     {"loss cross_entropy", "1 class number", "soft_target"}},
    {"loss={cross_entropy: {soft_target: true}}",
     "data.target.path=/y",
     {"/y", "(1 values)", "2 values"}},
    {"loss=mse", "data.target.path=/y", {"/y", "(1 values)", "2 values"}},
};

Test(fields, a_target_that_does_not_fit_its_loss_has_a_place)
{
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;

        harness_open(&harness, 48);
        harness.settings[0] = misfits[i].loss;
        harness.settings[1] = misfits[i].target;
        cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
        cr_expect_eq(strncmp(err.text, "--set", 5), 0, "%s", err.text);
        facts_expect(err.text, misfits[i].facts);
        harness_close(&harness);
    }
}

/* Targets of real numbers for losses that expect probabilities. */
static const struct {
    const char *loss, *target;
    const char *facts[FACTS_MAX]; /* none: the target fits */
} shares[] = {
    {"loss=kl",
     "data.target={path: /z, scale: 0, shift: -0.1}",
     {"row 0 of /z", "-0.1", "position 0", "loss kl"}},
    {"loss={cross_entropy: {soft_target: true}}",
     "data.target={path: /h, scale: 1.2, shift: -0.1}",
     {"/h", "-0.1", "position"}},
    {"loss={cross_entropy: {soft_target: true}}",
     "data.target={path: /h, scale: 0.9}",
     {"row 0 of /h", "0.9", "cross_entropy", "soft_target"}},
    {"loss={cross_entropy: {soft_target: true}}",
     "data.target={path: /h}",
     {NULL}},
    {"loss=kl",
     "data.target={path: /z, scale: 0, shift: 0.4}",
     {"row 0 of /z", "0.8", "loss kl"}},
    {"loss=kl", "data.target={path: /z, scale: 0, shift: 0.4996}", {NULL}},
    {"loss={kl: {log_target: true}}",
     "data.target={path: /z, scale: 0, shift: -0.7}",
     {NULL}},
};

Test(fields, targets_are_probabilities, .timeout = 60)
{
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        err_code_t rc;

        harness_open(&harness, 48);
        harness.settings[0] = shares[i].loss;
        harness.settings[1] = shares[i].target;
        harness.settings[2] = "model.layers=[{linear: {out: 2}}, log_softmax]";
        harness.settings[3] = "data.shuffle=none";
        rc = harness_run(&harness, 2, &out, &err);
        cr_expect_eq(rc, shares[i].facts[0] == NULL ? ERR_OK : ERR_DATA, "%s",
                     err.text);
        facts_expect(err.text, shares[i].facts);
        if (shares[i].facts[0] != NULL)
            cr_expect_not_null(strstr(err.text, ".h5: row "), "%s", err.text);
        harness_close(&harness);
    }
}

Test(fields, metrics_are_chosen_by_loss)
{
    double values[STEPS];
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    fields_open(&harness);
    harness.settings[6] = "metrics={kind: [top1], place: [rmse]}";
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(harness_values(&harness, true, "kind_top1", values, STEPS), 3);
    cr_expect_eq(harness_values(&harness, true, "place_rmse", values, STEPS),
                 3);
    harness.settings[6] = "metrics={knd: [top1]}";
    harness.resume = TRAIN_RESUME_FRESH;
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    facts_expect(err.text, (const char *[FACTS_MAX]){"knd"});
    harness.settings[6] = "metrics=[rmse]";
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    facts_expect(err.text,
                 (const char *[FACTS_MAX]){"rmse", "loss cross_entropy"});
    harness_close(&harness);
}
