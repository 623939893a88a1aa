/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A resumed run whose data differs from the data when the checkpoint was
 * written says so. */
#include "train/marks.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lib/facts.h"
#include "train/harness.h"

#define SAMPLES 101

/* ---- lists --------------------------------------------------------------- */

static bool same(const hdf5io_mark_t *then, int then_count,
                 const hdf5io_mark_t *now, int now_count, const char *split,
                 char say[512])
{
    const train_marks_pair_t pair = {.then = then,
                                     .now = now,
                                     .then_count = then_count,
                                     .now_count = now_count};

    say[0] = '\0';
    return train_marks_same(&pair, split, say, 512);
}

static hdf5io_mark_t mark(const char *split, const char *name, uint64_t quick)
{
    return (hdf5io_mark_t){.split = (char *)split,
                           .name = (char *)name,
                           .shards = 1,
                           .samples = 10,
                           .quick = quick};
}

Test(marks, the_first_shard_that_differs_is_named)
{
    const hdf5io_mark_t then[] = {mark("train", "a.h5", 1),
                                  mark("train", "b.h5", 2),
                                  mark("valid", "v.h5", 3)};
    hdf5io_mark_t now[] = {mark("train", "x.h5", 1), mark("train", "y.h5", 2),
                           mark("valid", "v.h5", 3)};
    char say[512];

    cr_assert(same(then, 3, now, 3, "train", say), "names alone: %s", say);
    now[1].quick = 7;
    cr_assert_not(same(then, 3, now, 3, "train", say));
    cr_expect_str_eq(say, "data.train: 1 of 2 shards holds other samples than "
                          "when the checkpoint was written, the first is y.h5 "
                          "(then b.h5)");
    cr_assert(same(then, 3, now, 3, "valid", say));
    now[0].samples = 9;
    now[0].name = then[0].name;
    cr_assert_not(same(then, 3, now, 3, "train", say));
    cr_expect_str_eq(say, "data.train: 2 of 2 shards hold other samples than "
                          "when the checkpoint was written, the first is a.h5");
    cr_assert_not(same(then, 3, now + 1, 2, "train", say));
    cr_expect_str_eq(say, "data.train: 10 samples in 1 shards are here, but 20 "
                          "in 2 when the checkpoint was written");
}

/* A digest that one of the two lives has not computed is not compared. */
Test(marks, what_is_not_known_does_not_differ)
{
    hdf5io_mark_t then = mark("train", "a.h5", 1);
    hdf5io_mark_t now = mark("train", "a.h5", 1);
    char say[512];

    cr_assert(same(NULL, 0, &now, 1, "train", say));
    cr_assert(same(&then, 1, NULL, 0, "train", say));
    now.whole = true;
    now.full = 5;
    cr_assert(same(&then, 1, &now, 1, "train", say));
    then.whole = true;
    then.full = 6;
    cr_assert_not(same(&then, 1, &now, 1, "train", say));
}

/* ---- runs ---------------------------------------------------------------- */

static void both_labels_set(const harness_t *harness, int *was, int flip)
{
    *was = harness_label_get(harness, 17);
    harness_label_set(harness, 17, flip ? 1 - *was : *was);
}

Test(marks, a_resume_on_other_samples_says_so)
{
    const char *const looks[] = {"data.validate=quick", "data.validate=full"};
    harness_t harness;
    train_outcome_t out;
    char *text;
    int was;

    for (int i = 0; i < 2; i++) {
        harness_open(&harness, SAMPLES);
        harness.settings[0] = looks[i];
        harness.settings[1] = "train.epochs=1";
        harness_run_ok(&harness, 2, &out);
        harness.settings[1] = "train.epochs=2";
        text = harness_listen(&harness, 2);
        cr_expect_null(strstr(text, "other samples"), "%s", text);
        free(text);
        both_labels_set(&harness, &was, 1);
        harness.settings[1] = "train.epochs=3";
        text = harness_listen(&harness, 2);
        facts_expect(text,
                     (const char *[FACTS_MAX]){"data.train", "1 of 1 shards",
                                               "other samples", "train.h5"});
        free(text);
        /* The checkpoints of this life record the new data. */
        harness.settings[1] = "train.epochs=4";
        text = harness_listen(&harness, 2);
        cr_expect_null(strstr(text, "other samples"), "%s", text);
        free(text);
        harness_close(&harness);
    }
}

Test(marks, the_reproducible_mode_refuses_other_samples)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;
    int was;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "train.reproducible=true";
    harness.settings[1] = "train.epochs=1";
    harness_run_ok(&harness, 2, &out);
    harness.settings[1] = "train.epochs=2";
    both_labels_set(&harness, &was, 1);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_DATA, "%s",
                 err.text);
    facts_expect(err.text,
                 (const char *[FACTS_MAX]){"train.h5", "train.reproducible"});
    harness_label_set(&harness, 17, was);
    harness_run_ok(&harness, 2, &out);
    harness_close(&harness);
}

Test(marks, nothing_is_kept_of_data_that_nobody_looked_at)
{
    harness_t harness;
    train_outcome_t out;
    char *text;
    int was;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "data.validate=none";
    harness.settings[1] = "train.epochs=1";
    harness_run_ok(&harness, 2, &out);
    both_labels_set(&harness, &was, 1);
    harness.settings[0] = "data.validate=quick";
    harness.settings[1] = "train.epochs=2";
    text = harness_listen(&harness, 2);
    cr_expect_null(strstr(text, "other samples"), "%s", text);
    cr_expect_not_null(strstr(text, "keeps no hashes of its data"), "%s", text);
    free(text);
    harness_close(&harness);
}

/* The digest of all numbers is compared only if both lives have read all of
 * them. */
Test(marks, a_full_look_after_a_quick_one_says_what_it_cannot_know)
{
    static const char says[] = "keeps hashes of a sample of its data only";
    harness_t harness;
    train_outcome_t out;
    char *text;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "data.validate=quick";
    harness.settings[1] = "train.epochs=1";
    harness_run_ok(&harness, 2, &out);
    harness.settings[0] = "data.validate=full";
    harness.settings[1] = "train.epochs=2";
    text = harness_listen(&harness, 2);
    cr_expect_not_null(strstr(text, says), "%s", text);
    free(text);
    harness.settings[1] = "train.epochs=3";
    text = harness_listen(&harness, 2);
    cr_expect_null(strstr(text, says), "%s", text);
    free(text);
    harness_close(&harness);
}
