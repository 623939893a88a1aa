/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which settings have changed: each changed key is named once, however its
 * value is written; settings that may differ are not named. */
#include "train/changes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

#define DATA "data: {train: a.h5, input: {path: /x}, target: {path: /y}}\n"
#define MODEL                                                                \
    "model: {input: [4], layers: [{linear: {out: 3}}, relu, {linear: {out: " \
    "2}}]}\n"
#define LOSS "loss: cross_entropy\n"
#define OPTIMIZER "optimizer: {adamw: {lr: 0.002}}\n"
#define ALL DATA MODEL LOSS OPTIMIZER

static void config_read(const char *text, tree_t **tree, train_config_t *config)
{
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("run.yaml", text, tree, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(train_config_read(*tree, NULL, config, &err), ERR_OK, "%s",
                 err.text);
}

/* The settings of the run file [text], in the text form that a checkpoint
 * stores; to be freed. */
static char *kept(const char *text)
{
    train_config_t config;
    str_buf_t out = {0};
    tree_t *tree = NULL;

    config_read(text, &tree, &config);
    opt_print(train_options, &config, 0, &out);
    train_config_free(&config);
    tree_free(tree);
    return out.text;
}

/* Expect that the changes between the settings [was] (text of a checkpoint) and
 * [now] (text of a run file) are printed as [expected]. */
static void expect_found(const char *was, const char *now, const char *expected)
{
    train_changes_t changes = {0};
    train_config_t config;
    str_buf_t found = {0};
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    config_read(now, &tree, &config);
    cr_assert_eq(train_changes_find(was, &config, &changes, &err), ERR_OK, "%s",
                 err.text);
    str_buf_add(&found, "%s", "");
    train_changes_print(&changes, TRAIN_CHANGES_MAX, &found);
    cr_expect_str_eq(found.text, expected, "from\n%s\nto\n%s\nfound: %s", was,
                     now, found.text);
    str_buf_free(&found);
    train_changes_free(&changes);
    train_config_free(&config);
    tree_free(tree);
}

static void expect(const char *was, const char *now, const char *expected)
{
    char *text = kept(was);

    expect_found(text, now, expected);
    free(text);
}

Test(changes, every_key_is_named_with_both_values)
{
    expect(ALL, ALL, "");
    expect(ALL, DATA MODEL LOSS "optimizer: {adamw: {lr: 0.5}}\n",
           "optimizer.adamw.lr 0.002 -> 0.5");
    expect(ALL "train: {batch: 24, clip_norm: 1}\nrun: {seed: 3}\n",
           ALL "train: {batch: 48, epochs: 4}\n",
           "run.seed 3 -> 1, train.epochs 1 -> 4, train.batch 24 -> 48, "
           "train.clip_norm 1.0 -> 0.0");
    expect(ALL, DATA MODEL LOSS "optimizer: {sgd: {lr: 0.1}}\n",
           "optimizer {adamw: {lr: 0.002}} -> {sgd: {lr: 0.1}}");
    expect(ALL,
           ALL "schedule: {cosine: {warmup_steps: 5}}\nema: {decay: 0.9}\n",
           "schedule constant -> {cosine: {warmup_steps: 5}}, ema.decay 0.0 -> "
           "0.9");
    expect(ALL,
           "data: {train: [a.h5, b.h5], valid: c.h5, input: {path: /x, scale: "
           "2}, target: {path: /y}}\n" MODEL LOSS OPTIMIZER,
           "data.train [a.h5] -> [a.h5, b.h5], data.valid [] -> [c.h5], "
           "data.input.scale 1.0 -> 2.0");
    expect(ALL "ddp: {hook: fp16, local_sgd: {period: 0}}\n",
           ALL "ddp: {local_sgd: {period: 3}}\n",
           "ddp.local_sgd.period 0 -> 3, ddp.hook fp16 -> none");
}

Test(changes, of_models_and_losses)
{
    expect(ALL,
           DATA "model: {input: [4], layers: [{linear: {out: 3, bias: false}}, "
                "gelu, {linear: {out: 2}}]}\n" LOSS OPTIMIZER,
           "model.layers[0].linear.bias true -> false, model.layers[1] relu -> "
           "gelu");
    expect(ALL,
           DATA
           "model: {input: [4], layers: [{linear: {out: 2}}]}\n" LOSS OPTIMIZER,
           "model.layers [{linear: {out: 3}}, relu, {linear: {out: 2}}] -> "
           "[{linear: {out: 2}}]");
    expect(ALL,
           DATA MODEL
           "loss: {cross_entropy: {label_smoothing: 0.1}}\n" OPTIMIZER,
           "loss.cross_entropy.label_smoothing 0 -> 0.1");
    expect(ALL, DATA MODEL "loss: mse\n" OPTIMIZER,
           "loss cross_entropy -> mse");
    expect(DATA MODEL "loss: [{mse: , weight: 1}, mae]\n" OPTIMIZER,
           DATA MODEL "loss: [{mse: , weight: 2}, mae]\n" OPTIMIZER,
           "loss[0].weight 1 -> 2");
    expect(DATA MODEL LOSS "optimizer: {sgd: {lr: 1}, groups: [{match: 'a*', "
                           "lr: 2}]}\n",
           DATA MODEL LOSS "optimizer: {sgd: {lr: 1}, groups: [{match: 'b*', "
                           "lr: 2.0}]}\n",
           "optimizer.groups[0].match a* -> b*");
}

/* A value that is only written in another way has not changed. */
Test(changes, the_same_in_other_words)
{
    expect(ALL, DATA MODEL LOSS "optimizer: {adamw: {lr: 2.0e-3}}\n", "");
    expect(ALL, DATA MODEL "loss: {cross_entropy: }\n" OPTIMIZER, "");
    expect(DATA MODEL LOSS "optimizer: sgd\n",
           DATA MODEL LOSS "optimizer: {sgd: {momentum: 0, nesterov: no}}\n",
           "");
    expect(
        ALL,
        "data: {train: [a.h5], input: {path: /x}, target: {path: /y}}\n" MODEL
            LOSS OPTIMIZER,
        "");
    expect(ALL,
           DATA "model: {input: [4], layers: [{linear: {out: 3, bias: true}}, "
                "{relu: }, {linear: {out: 2.0}}]}\n" LOSS OPTIMIZER,
           "");
    expect(ALL "ddp: {hook: fp16}\n", ALL "ddp: {hook: {fp16: }}\n", "");
    expect(ALL, ALL "schedule: constant\nddp: {hook: none}\n", "");
    expect(ALL "schedule: {constant: {warmup_steps: 0}}\n", ALL, "");
    expect(ALL, DATA MODEL "loss: [{cross_entropy: }]\n" OPTIMIZER, "");
    expect(DATA MODEL LOSS "optimizer: {sgd: {lr: 1}, groups: [{match: 'a*', "
                           "lr: 2}]}\n",
           DATA MODEL LOSS "optimizer: {sgd: {lr: 1}, groups: [{match: ['a*'], "
                           "lr: 2}]}\n",
           "");
}

#define PRESET(MORE) \
    DATA "model: {preset: mlp, input: [4], classes: 2" MORE "}\n" LOSS OPTIMIZER

/* Options of presets: writing out a default value is no change. */
Test(changes, of_presets)
{
    expect(PRESET(""), PRESET(", hidden: [512, 512]"), "");
    expect(PRESET(", dropout: 0.0"), PRESET(""), "");
    expect(PRESET(""), PRESET(", hidden: [7]"), "model.hidden [512, 512] -> 7");
    /* These options of a preset have the names of layers. */
    expect(PRESET(", dropout: 0.1, batchnorm: true"),
           PRESET(", dropout: 0.2, batchnorm: false"),
           "model.dropout 0.1 -> 0.2, model.batchnorm true -> false");
    expect(PRESET(", dropout: 0.1"), PRESET(""), "model.dropout 0.1 -> 0");
    expect(PRESET(""),
           DATA
           "model: {preset: lenet, input: [4], classes: 2}\n" LOSS OPTIMIZER,
           "model.preset mlp -> lenet");
    expect(PRESET(""), ALL,
           "model.preset mlp -> unset, model.classes 2 -> unset, model.layers "
           "unset -> [{linear: {out: 3}}, relu, {linear: {out: 2}}]");
}

Test(changes, what_may_differ_is_no_change)
{
    expect(ALL,
           "run: {name: other, dir: elsewhere}\n"
           "data: {train: a.h5, input: {path: /x, cast: float32}, target: "
           "{path: /y}, prefetch: 1, io: mpi}\n" MODEL LOSS OPTIMIZER
           "metrics: [top2]\n"
           "train: {threads: 3, log_every: 7, recompute: "
           "blocks}\n"
           "ddp: {backend: ucx, comm_table: t, bucket_cap_mb: 1, "
           "first_bucket_mb: 2, last_bucket_mb: 3, check_every: 7 steps, zero: "
           "1}\n"
           "checkpoint: {every: never, keep: 9, io: mpi}\n"
           "fault: {timeout: 1 s, io_timeout: 2 s}\n",
           "");
}

/* An option that the writing version of cddp did not know counts as having its
 * default if it has one, and otherwise as unknown. Options that only the
 * writing version knows are not compared. */
Test(changes, settings_of_another_version)
{
    char *was = kept(ALL "train: {epochs: 3}\n");
    char *newer = str_printf("%sfuture:\n  a: 1\n", was);
    char *cut = strstr(was, "  microbatch:");

    expect_found(newer, ALL "train: {epochs: 2}\n", "train.epochs 3 -> 2");
    memmove(cut, strchr(cut, '\n') + 1, strlen(strchr(cut, '\n')));
    cr_assert_null(strstr(was, "microbatch"));
    expect_found(was, ALL "train: {epochs: 3, microbatch: 7}\n",
                 "train.microbatch 16 -> 7");
    expect_found("", ALL, "");
    free(newer);
    free(was);
}

/* The checkpoint was written when the defaults were other ones. */
Test(changes, to_a_newer_default_are_told_apart)
{
    char *was = kept(ALL), *lanes = strstr(was, "  lanes: 64\n");
    train_changes_t changes = {0};
    train_config_t config;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_assert_not_null(lanes, "%s", was);
    lanes[strlen("  lanes: ")] = '1';
    lanes[strlen("  lanes: 1")] = '6';
    config_read(ALL "train: {epochs: 20}\n", &tree, &config);
    cr_assert_eq(train_changes_find(was, &config, &changes, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(changes.count, 2);
    cr_expect_eq(changes.defaults, 1);
    cr_expect_str_eq(changes.items[0].key, "data.lanes");
    train_changes_free(&changes);
    config.data.lanes = 32;
    cr_assert_eq(train_changes_find(was, &config, &changes, &err), ERR_OK);
    cr_expect_eq(changes.defaults, 0, "32 was never the default");
    train_changes_free(&changes);
    train_config_free(&config);
    tree_free(tree);
    free(was);
}

Test(changes, settings_that_cannot_be_read)
{
    train_changes_t changes = {0};
    train_config_t config;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    config_read(ALL, &tree, &config);
    cr_expect_eq(train_changes_find("run: {", &config, &changes, &err),
                 ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "the checkpoint's settings:"), "%s",
                       err.text);
    cr_expect_eq(changes.count, 0);
    train_config_free(&config);
    tree_free(tree);
}

Test(changes, many_of_them_and_long_ones_are_cut)
{
    char *was = kept(ALL);
    train_changes_t changes = {0};
    train_config_t config;
    str_buf_t found = {0};
    tree_t *tree = NULL;

    config_read(
        "data: {train: [aaaaaaaaaaaaaaaaaaaaaaaa, "
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccc], input: {path: /x}, "
        "target: {path: /y}}\n" MODEL LOSS OPTIMIZER
        "train: {batch: 3, epochs: 3}\n",
        &tree, &config);
    cr_assert_eq(train_changes_find(was, &config, &changes, NULL), ERR_OK);
    cr_assert_eq(changes.count, 3);
    train_changes_print(&changes, 1, &found);
    cr_expect_str_eq(found.text,
                     "data.train [a.h5] -> [aaaaaaaaaaaaaaaaaaaaaaaa, "
                     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, c... and 2 more");
    str_buf_free(&found);
    train_changes_free(&changes);
    train_config_free(&config);
    tree_free(tree);
    free(was);
}

/* Sections with names are compared one by one. */
Test(changes, of_fields_with_names)
{
    const char *const model =
        "model: {input: {a: [2], b: [2]}, layers: [{concat: {}, from: [a, b]}, "
        "{linear: {out: 2}}]}\n" LOSS OPTIMIZER;
    char *was = str_printf("data: {train: a.h5, target: {path: /y}, input: "
                           "{a: {path: /a}, b: {path: /b, cast: float32, "
                           "scale: 3}}}\n%s",
                           model);
    char *now = str_printf("data: {train: a.h5, target: {path: /y}, input: "
                           "{a: {path: /c}, b: {path: /b, pad: 2}}}\n%s",
                           model);

    expect(was, now,
           "data.input.a.path /a -> /c, data.input.b.scale 3.0 -> 1.0, "
           "data.input.b.pad 0 -> 2");
    expect(was, was, "");
    free(now);
    free(was);
}
