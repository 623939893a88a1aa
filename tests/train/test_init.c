/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs that begin with given weights: all ranks have their bits, a resume does
 * not read them again, and weights that do not fit are refused. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "hdf5io/safetensors.h"
#include "train/harness.h"

#define SAMPLES 60
#define TENSORS 8

/* The tensors of the harness's model. */
static const hdf5io_safe_tensor_t model[TENSORS] = {
    {.name = "linear1.weight", .ndim = 2, .dims = {16, 12}},
    {.name = "linear1.bias", .ndim = 1, .dims = {16}},
    {.name = "batchnorm1.weight", .ndim = 1, .dims = {16}},
    {.name = "batchnorm1.bias", .ndim = 1, .dims = {16}},
    {.name = "batchnorm1.running_mean", .ndim = 1, .dims = {16}},
    {.name = "batchnorm1.running_var", .ndim = 1, .dims = {16}},
    {.name = "linear2.weight", .ndim = 2, .dims = {2, 16}},
    {.name = "linear2.bias", .ndim = 1, .dims = {2}}};

typedef struct weights {
    hdf5io_safe_tensor_t tensors[TENSORS + 1];
    int count;
    float data[16 * 12];
    int nan; /* tensor with a number that is not finite; -1: none */
} weights_t;

/* The elements of tensor [index]: all differ, and none is so small that the
 * smallest update would change it. */
static const float *values(weights_t *weights, int index)
{
    for (int i = 0; i < 16 * 12; i++)
        weights->data[i] = 0.25f + 0.01f * (float)index + 0.001f * (float)i;
    if (index == weights->nan)
        weights->data[1] = (float)NAN;
    return weights->data;
}

static err_code_t values_fetch(void *context, int index, const void **data,
                               err_t *err)
{
    (void)err;
    *data = values(context, index);
    return ERR_OK;
}

static void weights_make(weights_t *weights)
{
    *weights = (weights_t){.count = TENSORS, .nan = -1};
    memcpy(weights->tensors, model, sizeof model);
}

/* Open a run of one step that begins with [weights]; [init] gets the setting.
 */
static void init_open(harness_t *harness, weights_t *weights, char init[400])
{
    const hdf5io_safe_plan_t plan = {weights->tensors, weights->count,
                                     values_fetch, weights};
    err_t err = ERR_INIT;

    harness_open(harness, SAMPLES);
    snprintf(init, 400, "checkpoint.init=%s/w", harness->dir);
    harness->settings[0] = init;
    harness->settings[1] = "optimizer={sgd: {lr: 1.0e-30}}";
    harness->settings[2] = "train.batch=60";
    harness->settings[3] = "train.epochs=1";
    cr_assert_eq(
        hdf5io_safe_write(strchr(init, '=') + 1, FILE_NEW, &plan, &err), ERR_OK,
        "%s", err.text);
}

/* Does parameter [index] have the given bits in the newest checkpoint? */
static bool kept(const harness_t *harness, weights_t *weights, int index)
{
    char *path = str_printf("%s/run/checkpoints/step-0000000001/checkpoint.h5",
                            harness->dir);
    char *name = str_printf("/model/%s", model[index].name);
    float *found = calloc(16 * 12, sizeof *found);
    size_t elems = (size_t)model[index].dims[0] *
                   (model[index].ndim == 2 ? (size_t)model[index].dims[1] : 1);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    bool same;

    cr_assert_geq(
        H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found),
        0);
    same = memcmp(found, values(weights, index), elems * sizeof *found) == 0;
    H5Dclose(set);
    H5Fclose(file);
    free(found);
    free(name);
    free(path);
    return same;
}

Test(init, a_run_begins_with_the_weights)
{
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400];

    for (int n = 1; n <= 3; n++) {
        weights_make(&weights);
        init_open(&harness, &weights, init);
        harness.settings[4] = "ddp.check_every=1 steps";
        harness_run_ok(&harness, n, &out);
        for (int i = 0; i < TENSORS; i++)
            if (strstr(model[i].name, "running") == NULL)
                cr_expect(kept(&harness, &weights, i), "%d ranks: %s", n,
                          model[i].name);
        cr_expect_eq(harness_events(&harness, "weights"), 1);
        harness_close(&harness);
    }
}

/* The file may be gone when the run goes on. */
Test(init, a_resume_takes_the_checkpoint)
{
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400];

    weights_make(&weights);
    init_open(&harness, &weights, init);
    harness_run_ok(&harness, 2, &out);
    cr_assert_eq(remove(strchr(init, '=') + 1), 0);
    harness.settings[3] = "train.epochs=2";
    harness_run_ok(&harness, 1, &out);
    cr_expect_eq(harness_events(&harness, "weights"), 1);
    cr_expect_eq(harness_events(&harness, "resumed"), 1);
    harness_close(&harness);
}

/* A new head: the file has another one, or none. */
Test(init, what_is_skipped_is_random)
{
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400];

    for (int count = TENSORS - 2; count <= TENSORS; count += 2) {
        weights_make(&weights);
        weights.count = count;
        weights.tensors[6].dims[0] = 3;
        init_open(&harness, &weights, init);
        harness.settings[4] = "checkpoint.init_skip=[linear2.*]";
        harness_run_ok(&harness, 2, &out);
        cr_expect(kept(&harness, &weights, 0));
        cr_expect_not(kept(&harness, &weights, 6));
        harness_close(&harness);
    }
}

/* The history keeps a path that also leads to the weights from another
 * directory. */
Test(init, the_history_has_the_absolute_path)
{
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400], *home, *wanted, *lives, *text = NULL;
    err_t err = ERR_INIT;

    weights_make(&weights);
    init_open(&harness, &weights, init);
    snprintf(init, sizeof init, "checkpoint.init=%s/./w", harness.dir);
    harness_run_ok(&harness, 2, &out);
    home = realpath(harness.dir, NULL);
    wanted = str_printf("\"detail\":\"%s/w\"", home);
    lives = str_printf("%s/run/lives.jsonl", harness.dir);
    cr_assert_eq(file_read(lives, &text, NULL, &err), ERR_OK, "%s", err.text);
    cr_expect_not_null(strstr(text, wanted), "no %s: %s", wanted, text);
    free(text);
    free(lives);
    free(wanted);
    free(home);
    harness_close(&harness);
}

/* Outputs of a head with random values would mean nothing. */
Test(init, predictions_need_all_weights)
{
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400], *path;
    err_t err = ERR_INIT;

    weights_make(&weights);
    init_open(&harness, &weights, init);
    path = str_printf("%s/out.h5", harness.dir);
    harness.predict = path;
    harness.settings[4] = "checkpoint.init_skip=[linear2.*]";
    for (int n = 1; n <= 2; n++) {
        cr_expect_eq(harness_run(&harness, n, &out, &err), ERR_CONFIG, "%s",
                     err.text);
        cr_expect(strstr(err.text, "checkpoint.init_skip"), "%s", err.text);
        cr_expect_neq(access(path, F_OK), 0, "%s was written", path);
    }
    harness.settings[4] = NULL;
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(access(path, F_OK), 0, "%s was not written", path);
    free(path);
    harness_close(&harness);
}

/* ---- weights of a checkpoint ----------------------------------------------
 */

/* Run once, and rename the run directory to "first". [init] becomes the setting
 * that names this directory or, with [step], its checkpoint. */
static void first_run(harness_t *harness, weights_t *weights, bool step,
                      char init[400])
{
    train_outcome_t out;
    char *from, *to;

    init_open(harness, weights, init);
    harness_run_ok(harness, 2, &out);
    from = str_printf("%s/run", harness->dir);
    to = str_printf("%s/first", harness->dir);
    cr_assert_eq(rename(from, to), 0);
    snprintf(init, 400, "checkpoint.init=%s%s", to,
             step ? "/checkpoints/step-0000000001" : "");
    free(to);
    free(from);
}

Test(init, a_run_begins_with_the_weights_of_another)
{
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400];

    for (int step = 0; step < 2; step++) {
        weights_make(&weights);
        first_run(&harness, &weights, step == 1, init);
        harness_run_ok(&harness, 3, &out);
        for (int i = 0; i < TENSORS; i++)
            if (strstr(model[i].name, "running") == NULL)
                cr_expect(kept(&harness, &weights, i), "%s", model[i].name);
        cr_expect_eq(harness_events(&harness, "weights"), 1);
        harness_close(&harness);
    }
}

/* Fine-tuning: another number of classes, and frozen layers. The line of the
 * log names the tensors that are new. */
Test(init, a_new_head_is_trained_and_the_rest_stays)
{
    harness_t harness;
    weights_t weights;
    char init[400], *said;

    weights_make(&weights);
    first_run(&harness, &weights, false, init);
    harness.settings[1] =
        "optimizer={sgd: {lr: 0.1}, groups: [{match: [linear1.*, "
        "batchnorm1.*], freeze: true}]}";
    harness.settings[4] = "checkpoint.init_skip=[linear2.*]";
    harness.settings[5] =
        "model.layers=[{linear: {out: 16}}, batchnorm, relu, {dropout: {rate: "
        "0.1}}, {linear: {out: 3}}]";
    said = harness_listen(&harness, 2);
    cr_expect_not_null(strstr(said, "6 tensors of "), "%s", said);
    cr_expect_not_null(
        strstr(said, "2 have random values: linear2.bias, linear2.weight"),
        "%s", said);
    for (int i = 0; i < 4; i++)
        cr_expect(kept(&harness, &weights, i), "%s", model[i].name);
    free(said);
    harness_close(&harness);
}

Test(init, checkpoints_that_are_damaged_or_missing_are_refused)
{
    harness_t harness;
    train_outcome_t out;
    weights_t weights;
    err_t err = ERR_INIT;
    char init[400], *path, *bytes;
    size_t length;

    weights_make(&weights);
    first_run(&harness, &weights, false, init);
    path = str_printf("%s/first/checkpoints/step-0000000001/shard-0.h5",
                      harness.dir);
    cr_assert_eq(file_read(path, &bytes, &length, &err), ERR_OK);
    bytes[length - 9] ^= 1;
    cr_assert_eq(file_publish(path, bytes, length, &err), ERR_OK);
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
    cr_expect(strstr(err.text, "checkpoint.init"), "%s", err.text);
    cr_expect(strstr(err.text, "shard-0.h5"), "%s", err.text);
    snprintf(init, sizeof init, "checkpoint.init=%s", harness.dir);
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
    cr_expect(strstr(err.text, "has no checkpoint"), "%s", err.text);
    free(bytes);
    free(path);
    harness_close(&harness);
}

/* ---- what does not fit -----------------------------------------------------
 */

static void expect_refusal(weights_t *weights, err_code_t code,
                           const char *const *words)
{
    err_t err = ERR_INIT;
    train_outcome_t out;
    harness_t harness;
    char init[400];

    init_open(&harness, weights, init);
    cr_expect_eq(harness_run(&harness, 3, &out, &err), code, "%s", err.text);
    for (; *words != NULL; words++)
        cr_expect(strstr(err.text, *words), "no %s: %s", *words, err.text);
    harness_close(&harness);
}

#define WORDS(...)                           \
    (const char *const[])                    \
    {                                        \
        "checkpoint.init", __VA_ARGS__, NULL \
    }

/* A pattern with a typing error is refused: otherwise the tensors that it
 * should name would be read. */
Test(init, patterns_that_name_nothing_are_refused)
{
    harness_t harness;
    train_outcome_t out;
    weights_t weights;
    err_t err = ERR_INIT;
    char init[400];

    weights_make(&weights);
    init_open(&harness, &weights, init);
    harness.settings[4] = "checkpoint.init_skip=[linear2.*, liner1.*]";
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_CONFIG);
    cr_expect(strstr(err.text, "checkpoint.init_skip: 'liner1.*' names no"),
              "%s", err.text);
    harness_close(&harness);
}

Test(init, weights_that_do_not_fit_are_refused)
{
    weights_t weights;

    weights_make(&weights);
    weights.tensors[0].dims[1] = 11;
    expect_refusal(&weights, ERR_CONFIG,
                   WORDS("linear1.weight", "[16, 11]", "[16, 12]"));
    weights_make(&weights);
    weights.count--;
    expect_refusal(&weights, ERR_CONFIG, WORDS("no tensor linear2.bias"));
    weights_make(&weights);
    weights.tensors[weights.count++] = (hdf5io_safe_tensor_t){.name = "more"};
    expect_refusal(&weights, ERR_CONFIG, WORDS("the tensor more"));
    weights_make(&weights);
    weights.tensors[7].type = HDF5IO_SAFE_I32;
    expect_refusal(&weights, ERR_DATA, WORDS("linear2.bias", "I32"));
    weights_make(&weights);
    weights.nan = 6;
    expect_refusal(&weights, ERR_DATA, WORDS("linear2.weight", "finite"));
}

Test(init, files_that_are_none_are_refused)
{
    err_t err = ERR_INIT;
    train_outcome_t out;
    harness_t harness;
    weights_t weights;
    char init[400];

    weights_make(&weights);
    init_open(&harness, &weights, init);
    cr_assert_eq(file_publish(strchr(init, '=') + 1, "no", 2, &err), ERR_OK);
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_DATA);
    cr_expect(strstr(err.text, "no safetensors file"), "%s", err.text);
    cr_assert_eq(remove(strchr(init, '=') + 1), 0);
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_IO);
    cr_expect(strstr(err.text, "checkpoint.init"), "%s", err.text);
    cr_expect_eq(harness_events(&harness, "begin"), 0);
    harness_close(&harness);
}
