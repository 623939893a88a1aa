/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every pair of training features is either refused with a message or gives
 * the result of a single rank without those features that only distribute work
 * (ZeRO-1, checks). The same is true if the run is interrupted again and again
 * and goes on with another number of ranks.
 *
 * The tolerance follows from the features: features that only distribute work
 * change no more than the rounding of sums; rounded gradients, bfloat16 and
 * local SGD change the path of training, so only the learnt result is
 * compared.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "train/harness.h"

#define SAMPLES 96
#define RANKS 4

/* No batch norm: its statistics depend on the rank's share of the batch. */
#define MODEL                                                           \
    "model={input: [12], layers: [{linear: {out: 16}}, relu, {linear: " \
    "{out: 16}}, relu, {linear: {out: 2}}]}"

enum {
    MOVES = 1, /* only distributes work: a single rank runs without it */
    /* changes the path of training: only the learnt result is compared */
    NEAR = 2
};

typedef struct feature {
    const char *name, *setting;
    int flags;
} feature_t;

/* Features with different settings; two settings of one key are never combined.
 */
static const feature_t features[] = {
    {"zero", "ddp.zero=1", MOVES},
    {"check", "ddp.check_every=1 steps", MOVES},
    {"bf16 hook", "ddp.hook=bf16", NEAR},
    {"powersgd", "ddp.hook={powersgd: {rank: 2, start_step: 3}}", NEAR},
    {"local sgd", "ddp.local_sgd={period: 3, start: 2}", NEAR},
    {"average", "ema.decay=0.8", 0},
    {"accumulate", "train.accumulate=2", 0},
    {"freeze",
     "optimizer={adamw: {lr: 1.0e-2}, groups: [{match: ['linear1.*'], freeze: "
     "true}]}",
     0},
    {"groups",
     "optimizer={lamb: {lr: 1.0e-2}, groups: [{match: ['*.bias'], lr: 5.0e-3, "
     "weight_decay: 0}]}",
     0},
    {"clip norm", "train.clip_norm=0.5", 0},
    {"clip value", "train.clip_value=0.05", 0},
    {"recompute", "train.recompute=blocks", 0},
    {"bf16", "train.precision=auto", NEAR},
    {"join", "train.batch=20", 0}, /* uneven shares and a short last step */
    {"reproducible", "train.reproducible=true", 0},
};

#define FEATURES (int)(sizeof features / sizeof features[0])

/* Pairs that contradict each other, and the words of the message that refuses
 * them. */
static const struct {
    const char *one, *other, *words;
} refused[] = {
    {"zero", "local sgd", "ddp.local_sgd and ddp.zero are both set"},
    {"bf16 hook", "local sgd", "ddp.local_sgd and ddp.hook are both set"},
    {"powersgd", "local sgd", "ddp.local_sgd and ddp.hook are both set"},
    {"bf16 hook", "reproducible", "ddp.hook and train.reproducible are both"},
    {"powersgd", "reproducible", "ddp.hook and train.reproducible are both"},
    {"local sgd", "reproducible", "ddp.local_sgd and train.reproducible are"},
};

static const char *refusal_of(const feature_t *a, const feature_t *b)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if ((strcmp(refused[i].one, a->name) == 0 &&
             strcmp(refused[i].other, b->name) == 0) ||
            (strcmp(refused[i].one, b->name) == 0 &&
             strcmp(refused[i].other, a->name) == 0))
            return refused[i].words;
    return NULL;
}

/* Do both features set the same key, so that they cannot be combined? */
static bool same_key(const feature_t *a, const feature_t *b)
{
    size_t key = strcspn(a->setting, "=");

    return strncmp(a->setting, b->setting, key + 1) == 0;
}

static void pair_open(harness_t *harness, const feature_t *a,
                      const feature_t *b, bool plain)
{
    int count = 0;

    harness_open(harness, SAMPLES);
    harness->settings[count++] = MODEL;
    harness->settings[count++] = "train.microbatch=4";
    if (!plain || !(a->flags & MOVES))
        harness->settings[count++] = a->setting;
    if (!plain || !(b->flags & MOVES))
        harness->settings[count++] = b->setting;
}

static void pair_refused(const feature_t *a, const feature_t *b,
                         const char *words)
{
    train_config_t config;
    tree_t *tree = NULL;
    harness_t harness;
    err_t err = ERR_INIT;

    pair_open(&harness, a, b, false);
    cr_assert_eq(harness_config(&harness, &tree, &config, &err), ERR_CONFIG,
                 "%s and %s are taken", a->name, b->name);
    cr_expect(strstr(err.text, words), "%s and %s: %s", a->name, b->name,
              err.text);
    tree_free(tree);
    harness_close(&harness);
}

static void pair_works(const feature_t *a, const feature_t *b)
{
    const int flags = a->flags | b->flags;
    const bool exact = strcmp(a->name, "reproducible") == 0 ||
                       strcmp(b->name, "reproducible") == 0;
    train_outcome_t serial, whole, stopped;
    harness_t one, many, broken;
    char what[96];

    snprintf(what, sizeof what, "%s, %s", a->name, b->name);
    pair_open(&one, a, b, true);
    pair_open(&many, a, b, false);
    pair_open(&broken, a, b, false);
    harness_run_ok(&one, 1, &serial);
    harness_run_ok(&many, RANKS, &whole);
    /* Interrupted after 14 looks for a signal, counted over all ranks; lives
     * have 4 and 2 ranks in turn. */
    cr_assert_gt(
        harness_run_interrupted(&broken, 14, (int[]){RANKS, 2}, &stopped), 2,
        "%s", what);
    cr_expect_eq(stopped.step, serial.step, "%s", what);
    if (flags & NEAR) {
        cr_expect_float_eq(whole.loss, serial.loss, 0.1, "%s: %g, not %g", what,
                           whole.loss, serial.loss);
        cr_expect_float_eq(stopped.loss, serial.loss, 0.1, "%s: %g, not %g",
                           what, stopped.loss, serial.loss);
    } else {
        harness_compare(&one, &many, serial.step, exact ? 0 : 2e-4, what);
        harness_compare(&one, &broken, serial.step, exact ? 0 : 2e-4, what);
    }
    harness_close(&broken);
    harness_close(&many);
    harness_close(&one);
}

Test(pairs, are_refused_or_do_what_one_rank_does, .timeout = 600)
{
    int worked = 0;

    for (int i = 0; i < FEATURES; i++)
        for (int j = i + 1; j < FEATURES; j++) {
            const feature_t *a = &features[i], *b = &features[j];
            const char *words = refusal_of(a, b);

            if (words != NULL) {
                pair_refused(a, b, words);
            } else if (!same_key(a, b)) {
                pair_works(a, b);
                worked++;
            }
        }
    cr_assert_gt(worked, 90);
}
