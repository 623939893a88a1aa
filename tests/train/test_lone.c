/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * batchnorm over one value per channel. If every step has only one, the start
 * is refused, whether the share of a rank, a micro-batch or a leaf is the
 * cause. If only the last step of an epoch has one, training goes on, and the
 * running statistics leave that step out.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "train/harness.h"

#define LAYERS(norm) \
    "model.layers=[{linear: {out: 4}}, " norm ", {linear: {out: 2}}]"
#define PLAIN LAYERS("batchnorm")
#define SYNC LAYERS("syncbatchnorm")

typedef struct row {
    int ranks, samples;
    const char *settings[5];
    const char *sentence; /* NULL: the run succeeds */
} row_t;

static const row_t rows[] = {
    {4, 8, {PLAIN, "train.batch=4"}, "layer batchnorm1 (batchnorm)"},
    {4, 8, {PLAIN, "train.batch=4"}, "with 4 ranks, train.batch 4"},
    {1, 8, {PLAIN, "train.batch=1"}, "with 1 rank, train.batch 1"},
    {3, 8, {PLAIN, "train.batch=4"}, "with 3 ranks, train.batch 4"},
    {2,
     8,
     {PLAIN, "train.batch=4", "train.accumulate=2"},
     "lower train.accumulate"},
    {1,
     8,
     {PLAIN, "train.batch=3", "train.accumulate=2"},
     "train.accumulate 2"},
    {2,
     8,
     {PLAIN, "train.batch=4", "train.reproducible=true", "train.microbatch=1"},
     "a micro-batch (train.microbatch) is one sample"},
    {2,
     10,
     {PLAIN, "train.batch=5", "train.reproducible=true", "train.microbatch=2"},
     "or train.microbatch"},
    {1,
     8,
     {SYNC, "train.batch=4", "train.accumulate=4"},
     "layer syncbatchnorm1 (syncbatchnorm)"},
    {4, 8, {SYNC, "train.batch=4"}, NULL},
    {2, 8, {PLAIN, "train.batch=4"}, NULL},
    /* one value in the last step only */
    {4, 9, {PLAIN, "train.batch=8"}, NULL},
    {2,
     8,
     {PLAIN, "train.batch=4", "train.reproducible=true", "train.microbatch=2"},
     NULL},
    {4, 8, {LAYERS("{batchnorm: {frozen: true}}"), "train.batch=4"}, NULL},
    {4,
     8,
     {LAYERS("{reshape: {shape: [2, 2]}}, batchnorm, flatten"),
      "train.batch=4"},
     NULL},
};

Test(lone, one_value_is_refused_before_the_first_step, .timeout = 120)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row_t *row = &rows[i];
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        err_code_t rc;

        harness_open(&harness, row->samples);
        for (int k = 0; k < 5 && row->settings[k] != NULL; k++)
            harness.settings[k] = row->settings[k];
        rc = harness_run(&harness, row->ranks, &out, &err);
        cr_expect_eq(rc, row->sentence == NULL ? ERR_OK : ERR_CONFIG,
                     "row %zu: %s", i, err.text);
        if (row->sentence != NULL)
            cr_expect_not_null(strstr(err.text, row->sentence), "%s", err.text);
        harness_close(&harness);
    }
}

Test(lone, check_says_it)
{
    train_config_t config;
    tree_t *tree = NULL;
    harness_t harness;
    err_t err = ERR_INIT;

    cr_redirect_stdout();
    harness_open(&harness, 8);
    harness.settings[0] = PLAIN;
    harness.settings[1] = "train.batch=4";
    cr_assert_eq(harness_config(&harness, &tree, &config, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(train_check(&config, 2, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(train_check(&config, 4, &err), ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "layer batchnorm1 (batchnorm)"), "%s",
                       err.text);
    train_config_free(&config);
    tree_free(tree);
    harness_close(&harness);
}

/* With a learning rate of 0 the last step could change only the running
 * statistics. */
Test(lone, a_short_last_step_is_left_out)
{
    static const char *const ways[] = {"train.accumulate=1",
                                       "train.reproducible=true"};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        harness_t runs[2];
        train_outcome_t out;

        for (int k = 0; k < 2; k++) {
            harness_open(&runs[k], 8 + k);
            runs[k].settings[0] = PLAIN;
            runs[k].settings[1] = "train.batch=4";
            runs[k].settings[2] = "optimizer={sgd: {lr: 0}}";
            runs[k].settings[3] = "data.shuffle=none";
            runs[k].settings[4] = ways[i];
            runs[k].settings[5] = "train.microbatch=4";
            runs[k].settings[6] = "train.epochs=1";
            harness_run_ok(&runs[k], 1, &out);
            cr_assert_eq(out.step, 2 + k);
        }
        harness_compare(&runs[0], &runs[1], -1, 0, ways[i]);
        harness_close(&runs[0]);
        harness_close(&runs[1]);
    }
}
