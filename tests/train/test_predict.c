/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Predictions: the same file on any number of ranks, the rows in the order of
 * the samples, the accuracy of the evaluation; nothing is left after an
 * error. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "train/harness.h"

enum { SAMPLES = 118, ROWS = 64 };

/* Train a run of one epoch. */
static void trained(harness_t *harness, const char *const *settings, int ranks,
                    train_outcome_t *out)
{
    int count = 0;

    harness_open(harness, SAMPLES);
    for (; settings[count] != NULL; count++)
        harness->settings[count] = settings[count];
    harness->settings[count] = "train.epochs=1";
    harness_run_ok(harness, ranks, out);
}

/* Predict to the file [name]. The caller frees the result, its path. */
static char *predicted(harness_t *harness, const char *name, int ranks,
                       train_outcome_t *out)
{
    char *path = str_printf("%s/%s", harness->dir, name);

    harness->predict = path;
    harness_run_ok(harness, ranks, out);
    harness->predict = NULL;
    return path;
}

static void same_files(const char *a, const char *b)
{
    char *x, *y;
    size_t m, n;
    err_t err = ERR_INIT;

    cr_assert_eq(file_read(a, &x, &m, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file_read(b, &y, &n, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(m, n);
    cr_assert_arr_eq(x, y, n, "%s differs from %s", b, a);
    free(y);
    free(x);
}

/* Read dataset [name] of [path]; it has [elems] elements. */
static void read_set(const char *path, const char *name, hid_t type,
                     hssize_t elems, void *out)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set);

    cr_assert_eq(H5Sget_simple_extent_npoints(space), elems, "%s", name);
    cr_assert_geq(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/* The rows are in the order of the samples: their classes are right as often as
 * the evaluation says, and each is that of the larger output. */
static void rows_check(const harness_t *harness, const char *path,
                       double accuracy)
{
    char *valid = str_printf("%s/valid.h5", harness->dir);
    int64_t classes[ROWS], labels[ROWS];
    float outputs[ROWS][2];
    int right = 0;

    read_set(path, "output", H5T_NATIVE_FLOAT, ROWS * 2, outputs);
    read_set(path, "class", H5T_NATIVE_INT64, ROWS, classes);
    read_set(valid, "y", H5T_NATIVE_INT64, ROWS, labels);
    for (int i = 0; i < ROWS; i++) {
        cr_assert_eq(classes[i], outputs[i][1] > outputs[i][0]);
        right += classes[i] == labels[i];
    }
    cr_expect_eq(right / (double)ROWS, accuracy);
    free(valid);
}

/* What a run of these settings predicts on 1, 2, 3 ranks and on the device that
 * has its own memory. */
static void all_ranks(const char *const *settings, int writers)
{
    train_outcome_t was, out;
    harness_t harness;
    char *first;
    int count = 0;

    trained(&harness, settings, writers, &was);
    first = predicted(&harness, "1.h5", 1, &out);
    cr_expect_eq(out.accuracy, was.accuracy);
    cr_expect_float_eq(out.loss, was.loss, 1e-6);
    cr_expect_eq(out.step, was.step);
    rows_check(&harness, first, out.accuracy);
    while (harness.settings[count] != NULL)
        count++;
    for (int n = 2; n <= 6; n++) {
        char name[16];
        char *next;

        harness.settings[count] = n > 3 ? "train.device=far" : NULL;
        snprintf(name, sizeof name, "%d.h5", n);
        next = predicted(&harness, name, n > 3 ? n - 3 : n, &out);
        same_files(first, next);
        cr_expect_eq(out.accuracy, was.accuracy);
        free(next);
    }
    free(first);
    harness_close(&harness);
}

Test(predict, same_on_any_number_of_ranks)
{
    all_ranks((const char *const[]){"train.microbatch=5", NULL}, 2);
}

Test(predict, shards_and_average)
{
    all_ranks((const char *const[]){"ddp.zero=1", "ema={decay: 0.9}", NULL}, 3);
}

Test(predict, hook)
{
    all_ranks((const char *const[]){"ddp.hook=fp16",
                                    "schedule={plateau: {metric: loss}}", NULL},
              2);
}

/* Each loss has datasets of its own name. A class of each place. */
Test(predict, several_losses)
{
    static const char *const settings[] = {
        "data.input={words: {path: /w}}",
        "data.target={next: {path: /w}, place: {path: /z}}",
        "model.input={words: [3]}",
        "model.layers=[{name: e, embedding: {vocabulary: 5, out: 4}}, {name: "
        "a, linear: {out: 5, flatten: false}}, {name: b, linear: {out: 2}, "
        "from: e}]",
        "loss=[{cross_entropy: , from: a, target: next}, {mse: , from: b, "
        "target: place}]",
        NULL};
    int64_t classes[ROWS * 3];
    float outputs[ROWS * 3 * 5];
    train_outcome_t out;
    harness_t harness;
    char *path;

    trained(&harness, settings, 1, &out);
    path = predicted(&harness, "out.h5", 2, &out);
    read_set(path, "next_class", H5T_NATIVE_INT64, ROWS * 3, classes);
    read_set(path, "place_output", H5T_NATIVE_FLOAT, ROWS * 2, outputs);
    read_set(path, "next_output", H5T_NATIVE_FLOAT, ROWS * 3 * 5, outputs);
    for (int i = 0; i < ROWS * 3; i++)
        for (int k = 0; k < 5; k++)
            cr_assert_leq(outputs[5 * i + k], outputs[5 * i + classes[i]]);
    free(path);
    harness_close(&harness);
}

/* ---- samples without targets --------------------------------------------- */

/* Copy valid.h5 to [name], without the datasets of [lacks]. The caller frees
 * the setting, data.valid=PATH. */
static char *valid_without(const harness_t *harness, const char *name,
                           const char *const *lacks)
{
    char *from = str_printf("%s/valid.h5", harness->dir);
    char *setting = str_printf("data.valid=%s/%s", harness->dir, name);
    const char *to = strchr(setting, '=') + 1;
    char *bytes;
    size_t length;
    err_t err = ERR_INIT;
    hid_t file;

    cr_assert_eq(file_read(from, &bytes, &length, &err), ERR_OK);
    cr_assert_eq(file_publish(to, bytes, length, &err), ERR_OK);
    file = H5Fopen(to, H5F_ACC_RDWR, H5P_DEFAULT);
    for (int i = 0; lacks[i] != NULL; i++)
        cr_assert_geq(H5Ldelete(file, lacks[i], H5P_DEFAULT), 0);
    cr_assert_geq(H5Fclose(file), 0);
    free(bytes);
    free(from);
    return setting;
}

/* Without targets the outputs are the same, and there is no loss. */
static void without_targets(const char *const *settings,
                            const char *const *lacks)
{
    static const char *const hows[] = {
        "data.validate=quick", "data.validate=labels", "data.validate=full"};
    train_outcome_t out;
    harness_t harness;
    char *with, *valid;
    int count = 0;

    trained(&harness, settings, 2, &out);
    with = predicted(&harness, "with.h5", 2, &out);
    cr_expect(out.have_eval);
    valid = valid_without(&harness, "new.h5", lacks);
    while (harness.settings[count] != NULL)
        count++;
    harness.settings[count] = valid;
    for (int n = 1; n <= 4; n++) {
        char name[16];
        char *next;

        harness.settings[count + 1] = hows[n % 3];
        harness.settings[count + 2] = n > 3 ? "train.device=far" : NULL;
        snprintf(name, sizeof name, "%d.h5", n);
        next = predicted(&harness, name, n > 3 ? 2 : n, &out);
        same_files(with, next);
        cr_expect_not(out.have_eval);
        free(next);
    }
    free(valid);
    free(with);
    harness_close(&harness);
}

Test(predict, samples_without_targets)
{
    without_targets((const char *const[]){NULL},
                    (const char *const[]){"y", NULL});
}

/* Targets that are absent must not be replaced by zeros: zeros are no
 * probabilities, and no sample would have a weight. */
Test(predict, samples_without_probabilities_and_weights)
{
    without_targets(
        (const char *const[]){
            "data.target={label: {path: /h}, weight: {path: /v}}",
            "loss={cross_entropy: {soft_target: true}, target: label, "
            "sample_weight: weight}",
            NULL},
        (const char *const[]){"h", "v", NULL});
}

/* ---- errors -------------------------------------------------------------- */

/* Predicting fails with [code] and the word [word]; no new file is left. */
static void refused(harness_t *harness, int ranks, err_code_t code,
                    const char *word)
{
    char *path = str_printf("%s/out/out.h5", harness->dir);
    char *directory = str_printf("%s/out", harness->dir);
    train_outcome_t out;
    err_t err = ERR_INIT;

    cr_assert_eq(file_make_dirs(directory, &err), ERR_OK);
    harness->predict = path;
    cr_expect_eq(harness_run(harness, ranks, &out, &err), code, "%s", err.text);
    cr_expect(strstr(err.text, word), "no \"%s\": %s", word, err.text);
    cr_expect_eq(rmdir(directory), 0, "something is left in %s", directory);
    harness->predict = NULL;
    free(directory);
    free(path);
}

/* Samples of another file, one of which is not a number. The layer after the
 * first one would hide it. */
Test(predict, an_input_is_no_number)
{
    static const char *const devices[] = {"train.device=cpu",
                                          "train.device=far"};
    const char *const settings[] = {
        "model.layers=[{linear: {out: 4}}, relu, {linear: {out: 2}}]", NULL};
    train_outcome_t out;
    harness_t harness;
    char data[300];

    trained(&harness, settings, 1, &out);
    harness_input_set(&harness, 77, (float)NAN);
    snprintf(data, sizeof data, "data.valid=%s/train.h5", harness.dir);
    harness.settings[2] = data;
    for (int d = 0; d < 2; d++) {
        harness.settings[3] = devices[d];
        for (int n = 1; n <= 3; n++) {
            refused(&harness, n, ERR_DATA, "train.h5");
            refused(&harness, n, ERR_DATA, "77");
        }
    }
    harness_close(&harness);
}

Test(predict, refusals)
{
    train_outcome_t out;
    err_t err = ERR_INIT;
    harness_t harness;
    char *path;

    harness_open(&harness, SAMPLES);
    refused(&harness, 2, ERR_DATA, "has no checkpoint");
    cr_expect_eq(access(harness.dir, F_OK), 0);
    harness_run_ok(&harness, 1, &out);
    harness.settings[0] = "data.valid=[]";
    refused(&harness, 2, ERR_CONFIG, "data.valid is empty");
    harness.settings[0] = "model.layers=[{linear: {out: 2}}]";
    refused(&harness, 2, ERR_CONFIG, "linear");
    harness.settings[0] = NULL;
    path = predicted(&harness, "out.h5", 2, &out);
    harness.predict = path;
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_USAGE);
    cr_expect(strstr(err.text, "exists"), "%s", err.text);
    free(path);
    harness_close(&harness);
}

/* If a file has only one of two targets, the other one is missing by mistake:
 * the file is refused. */
Test(predict, one_of_two_targets_is_missing)
{
    static const char *const settings[] = {
        "data.target={label: {path: /y}, weight: {path: /v}}",
        "loss={cross_entropy: , target: label, sample_weight: weight}", NULL};
    static const char *const names[] = {"y", "v"};
    train_outcome_t out;
    harness_t harness;
    char *valid;

    trained(&harness, settings, 1, &out);
    for (int i = 0; i < 2; i++) {
        valid = valid_without(&harness, "new.h5",
                              (const char *const[]){names[i], NULL});
        harness.settings[2] = valid;
        refused(&harness, 2, ERR_DATA, "new.h5");
        refused(&harness, 2, ERR_DATA, i == 0 ? "/y" : "/v");
        free(valid);
    }
    /* The inputs are needed. */
    valid = valid_without(&harness, "new.h5",
                          (const char *const[]){"x", "y", "v", NULL});
    harness.settings[2] = valid;
    refused(&harness, 2, ERR_DATA, "/x");
    free(valid);
    harness_close(&harness);
}

Test(predict, a_signal_ends_it)
{
    train_outcome_t out;
    harness_t harness;
    char *path;

    trained(&harness, (const char *const[]){"train.batch=8", NULL}, 1, &out);
    harness_interrupt(&harness, 5);
    refused(&harness, 2, ERR_REQUEUE, "is not written");
    harness.signal = NULL;
    path = predicted(&harness, "out.h5", 3, &out);
    rows_check(&harness, path, out.accuracy);
    free(path);
    harness_close(&harness);
}
