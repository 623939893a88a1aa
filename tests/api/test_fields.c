/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* libcddp through its public headers: a training loop over a model with several
 * inputs and losses, on any number of ranks. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/check.h"
#include "base/file.h"
#include "base/str.h"
#include "cddp/cddp.h"
#include "cmd/data_shard.h"

enum { ROWS = 50, FEATURES = 6, WORDS = 5, BATCH = 12, EPOCHS = 2, STEPS = 10 };

static const char model_text[] =
    "model:\n"
    "  input: {word: [2], x: [6]}\n"
    "  layers:\n"
    "    - {embedding: {vocabulary: 5, out: 3}, from: word}\n"
    "    - {name: read, flatten: }\n"
    "    - {concat: , from: [read, x]}\n"
    "    - linear: {out: 8}\n"
    "    - {name: both, tanh: }\n"
    "    - {name: a, linear: {out: 3}, from: both}\n"
    "    - {name: b, linear: {out: 1}, from: both}\n"
    "loss:\n"
    "  - {cross_entropy: {ignore_index: 2}, from: a, target: kind}\n"
    "  - {mse: , from: b, target: size, weight: 0.5}\n";

static char *path;

static void start(void)
{
    static char directory[] = "/tmp/cddp-api-XXXXXX";
    static float x[ROWS][FEATURES], size[ROWS];
    static int8_t word[ROWS][2], kind[ROWS];
    const cmd_shard_field_t fields[] = {
        {"/x", CMD_SHARD_FLOAT32, 1, {FEATURES}, x},
        {"/word", CMD_SHARD_INT8, 1, {2}, word},
        {"/kind", CMD_SHARD_INT8, 0, {0}, kind},
        {"/size", CMD_SHARD_FLOAT32, 0, {0}, size}};
    const cmd_shard_t content = {
        .rows = ROWS, .fields = fields, .field_count = 4, .bound = NAN};
    err_t err = ERR_INIT;

    cr_assert_not_null(mkdtemp(directory));
    path = str_printf("%s/data.h5", directory);
    for (int i = 0; i < ROWS; i++) {
        kind[i] = (int8_t)(i % 3);
        word[i][0] = (int8_t)(1 + i % (WORDS - 1));
        word[i][1] = (int8_t)(1 + i / 7 % (WORDS - 1));
        size[i] = (float)word[i][0];
        for (int f = 0; f < FEATURES; f++)
            x[i][f] =
                (float)((i * 7 + f * 5) % 11) / 11 + (f % 3 == kind[i] ? 1 : 0);
    }
    cr_assert_eq(cmd_shard_write(path, &content, &err), ERR_OK, "%s", err.text);
}

static void stop(void)
{
    *strrchr(path, '/') = '\0';
    cr_expect_eq(file_remove_tree(path, NULL), ERR_OK);
    free(path);
}

TestSuite(fields, .init = start, .fini = stop, .timeout = 60);

typedef struct loop {
    double losses[STEPS][2];
    int steps;
    cddp_model_t *model;
    cddp_data_t *data;
    float *params, *grads;
} loop_t;

static cddp_code_t data_open(cddp_group_t *group, cddp_data_t **out,
                             cddp_error_t *error)
{
    const char *const files[] = {path, NULL};
    const cddp_field_t inputs[] = {
        {.path = "/word", .elems = 2, .tokens = WORDS},
        {.path = "/x", .elems = FEATURES}};
    const cddp_field_t targets[] = {
        {.path = "/kind", .classes = 3},
        {.path = "/size", .scale = 0.25, .shift = -0.5}};
    const cddp_data_config_t config = {.files = files,
                                       .inputs = inputs,
                                       .input_count = 2,
                                       .targets = targets,
                                       .target_count = 2,
                                       .batch = BATCH,
                                       .shuffle = "full",
                                       .epochs = EPOCHS,
                                       .prefetch = 2};

    return cddp_data_open(group, &config, out, error);
}

/* Compute the gradients of this rank's samples, and the sums of both losses. */
static cddp_code_t share_run(loop_t *loop, const cddp_batch_t *batch,
                             const double denominators[2], double sums[2],
                             cddp_error_t *error)
{
    const cddp_exec_config_t config = {.samples = batch->count,
                                       .training = 1,
                                       .threads = 1,
                                       .params = loop->params,
                                       .grads = loop->grads};
    const cddp_samples_t samples = {
        .ids = batch->ids, .inputs = batch->inputs, .targets = batch->targets};
    const cddp_samples_t lacking = {.ids = batch->ids, .inputs = batch->inputs};
    double scales[2];
    float out[BATCH * 3];
    cddp_exec_t *exec = NULL;

    for (int k = 0; k < 2; k++)
        scales[k] =
            denominators[k] > 0
                ? cddp_model_loss(loop->model, k).weight / denominators[k]
                : 0;
    OK(cddp_exec_open(loop->model, &config, &exec, error));
    CHECK(cddp_exec_forward(exec, &lacking, sums, NULL, error) == CDDP_CONFIG);
    CHECK(strstr(error->text, "lack the target kind") != NULL);
    for (int k = 0; k < 2; k++)
        CHECK(
            cddp_model_weigh_samples(loop->model, k, &samples, batch->count) ==
            cddp_model_weigh_loss(
                loop->model, k,
                batch->targets[cddp_model_loss(loop->model, k).target],
                batch->count));
    OK(cddp_exec_forward(exec, &samples, sums, NULL, error));
    CHECK(cddp_exec_output_loss(exec, 2, out, error) == CDDP_CONFIG);
    OK(cddp_exec_output_loss(exec, 1, out, error));
    CHECK(isfinite(out[batch->count - 1]));
    CHECK(cddp_exec_backward(exec, &samples, 1, 0, error) == CDDP_CONFIG);
    OK(cddp_exec_backward_losses(exec, &samples, scales, 0, error));
    cddp_exec_close(exec);
    return CDDP_OK;
}

static cddp_code_t step_run(cddp_group_t *group, loop_t *loop,
                            const cddp_batch_t *batch, cddp_error_t *error)
{
    const size_t elems = cddp_model_param_elems(loop->model);
    double denominators[2], sums[2] = {0};

    for (int k = 0; k < 2; k++)
        denominators[k] = cddp_model_weigh_loss(
            loop->model, k,
            batch->targets[cddp_model_loss(loop->model, k).target],
            batch->count);
    OK(cddp_allreduce(group, denominators, 2, CDDP_FLOAT64, CDDP_SUM, error));
    memset(loop->grads, 0, elems * sizeof *loop->grads);
    if (batch->count > 0)
        OK(share_run(loop, batch, denominators, sums, error));
    OK(cddp_allreduce(group, sums, 2, CDDP_FLOAT64, CDDP_SUM, error));
    OK(cddp_allreduce(group, loop->grads, elems, CDDP_FLOAT32, CDDP_SUM,
                      error));
    for (size_t i = 0; i < elems; i++)
        loop->params[i] -= 0.5f * loop->grads[i];
    for (int k = 0; k < 2; k++)
        loop->losses[loop->steps][k] = sums[k] / denominators[k];
    loop->steps++;
    return CDDP_OK;
}

static cddp_code_t loop_run(cddp_group_t *group, loop_t *loop,
                            cddp_error_t *error)
{
    const cddp_batch_t *batch;

    OK(cddp_model_open("model", model_text, &loop->model, error));
    CHECK(cddp_model_inputs(loop->model) == 2);
    CHECK(strcmp(cddp_model_input(loop->model, 1), "x") == 0);
    CHECK(cddp_model_targets(loop->model) == 2);
    CHECK(strcmp(cddp_model_target(loop->model, 0), "kind") == 0);
    CHECK(cddp_model_losses(loop->model) == 2);
    CHECK(strcmp(cddp_model_loss(loop->model, 1).kind, "mse") == 0);
    loop->params =
        calloc(cddp_model_param_elems(loop->model), sizeof *loop->params);
    loop->grads =
        calloc(cddp_model_param_elems(loop->model), sizeof *loop->grads);
    cddp_model_init(loop->model, 1, loop->params, NULL);
    OK(data_open(group, &loop->data, error));
    for (;;) {
        OK(cddp_data_next(loop->data, &batch, error));
        if (batch == NULL)
            return CDDP_OK;
        CHECK(batch->input == batch->inputs[0]);
        CHECK(batch->target == batch->targets[0]);
        OK(step_run(group, loop, batch, error));
    }
}

static cddp_code_t loop_main(cddp_group_t *group, void *context,
                             cddp_error_t *error)
{
    loop_t loop = {.steps = 0};
    cddp_code_t code = loop_run(group, &loop, error);

    if (cddp_group_rank(group) == 0)
        *(loop_t *)context = loop;
    cddp_data_close(loop.data);
    cddp_model_close(loop.model);
    free(loop.params);
    free(loop.grads);
    return code;
}

Test(fields, a_loop_over_several_inputs_and_losses)
{
    loop_t one = {.steps = 0};

    for (int ranks = 1; ranks <= 3; ranks++) {
        const cddp_run_config_t config = {.local = ranks};
        loop_t loop = {.steps = 0};
        cddp_error_t error;

        cr_assert_eq(cddp_run(&config, loop_main, &loop, &error), CDDP_OK, "%s",
                     error.text);
        cr_assert_eq(loop.steps, STEPS);
        if (ranks == 1)
            one = loop;
        for (int i = 0; i < 2 * STEPS; i++)
            cr_expect_float_eq(loop.losses[i / 2][i % 2],
                               one.losses[i / 2][i % 2], 1e-5);
    }
    cr_expect_lt(one.losses[STEPS - 1][0], 0.9 * one.losses[0][0]);
    cr_expect_lt(one.losses[STEPS - 1][1], 0.9 * one.losses[0][1]);
}

static const struct {
    cddp_field_t input, target;
    int64_t sequence;
    int inputs;
    const char *sentence;
} wrongs[] = {
    {{.path = "/x", .elems = 6}, {.path = "/size"}, 0, 0, "1 to 8 inputs"},
    {{.path = "/x", .elems = 6}, {.path = "/size"}, 0, 9, "1 to 8 inputs"},
    {{.path = "/x", .elems = 6}, {.path = "/size"}, 4, 1, "one stream"},
    {{.elems = 6}, {.path = "/size"}, 0, 1, "needs a path"},
    {{.path = "/x", .elems = 6}, {.elems = 1}, 0, 1, "needs a path"},
    {{.path = "/x", .elems = 5}, {.path = "/size"}, 0, 1, "(5 values)"},
    {{.path = "/x", .elems = 6}, {.path = "/size", .classes = 9}, 0, 1, NULL},
};

static cddp_code_t try_wrongs(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    const char *const files[] = {path, NULL};

    (void)context;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const cddp_data_config_t config = {.files = files,
                                           .inputs = &wrongs[i].input,
                                           .input_count = wrongs[i].inputs,
                                           .targets = &wrongs[i].target,
                                           .target_count = 1,
                                           .sequence = wrongs[i].sequence,
                                           .batch = 4};
        cddp_data_t *data = NULL;
        cddp_code_t code = cddp_data_open(group, &config, &data, error);

        if (wrongs[i].sentence == NULL) {
            CHECK(code == CDDP_OK); /* 1.0, 2.0, ... are valid classes */
            cddp_data_close(data);
            continue;
        }
        CHECK(code == CDDP_CONFIG || code == CDDP_DATA);
        CHECK(strstr(error->text, wrongs[i].sentence) != NULL);
    }
    return CDDP_OK;
}

Test(fields, wrong_arguments_are_sentences)
{
    const cddp_run_config_t config = {.local = 1};
    cddp_error_t error;

    cr_expect_eq(cddp_run(&config, try_wrongs, NULL, &error), CDDP_OK, "%s",
                 error.text);
}

/* ---- all ranks see the same data ------------------------------------------
 */

/* Each rank has its own file, as if on hosts with local disks. */
typedef struct copies {
    char *paths[2];
    const char *validate;
    cddp_code_t code;     /* expected on all ranks */
    const char *sentence; /* a part of the expected message */
} copies_t;

static cddp_code_t copies_open(cddp_group_t *group, void *context,
                               cddp_error_t *error)
{
    const copies_t *copies = context;
    const char *const files[] = {copies->paths[cddp_group_rank(group)], NULL};
    const cddp_data_config_t config = {.files = files,
                                       .input = "/x",
                                       .target = "/size",
                                       .input_elems = FEATURES,
                                       .batch = 4,
                                       .epochs = 1,
                                       .validate = copies->validate};
    cddp_data_t *data = NULL;
    cddp_code_t code = cddp_data_open(group, &config, &data, error);

    CHECK(code == copies->code);
    if (code == CDDP_OK)
        cddp_data_close(data);
    else
        CHECK(strstr(error->text, copies->sentence) != NULL);
    return CDDP_OK;
}

static void copies_expect(copies_t *copies, const char *validate,
                          cddp_code_t code, const char *sentence)
{
    const cddp_run_config_t config = {.local = 2};
    cddp_error_t error;

    copies->validate = validate;
    copies->code = code;
    copies->sentence = sentence;
    cr_expect_eq(cddp_run(&config, copies_open, copies, &error), CDDP_OK,
                 "validate %s: %s", validate == NULL ? "NULL" : validate,
                 error.text);
}

/* Copy the file to [name] and return its path. Number [from] of /size is
 * changed; -1: none is. */
static char *copy_make(const char *name, int from)
{
    char *to =
        str_printf("%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
    float value = 77;
    hsize_t one = 1, at[1];
    hid_t file, set, space, memory;
    char *bytes;
    size_t count;

    cr_assert_eq(file_read(path, &bytes, &count, NULL), ERR_OK);
    cr_assert_eq(file_publish(to, bytes, count, NULL), ERR_OK);
    free(bytes);
    file = H5Fopen(to, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "/size", H5P_DEFAULT);
    space = H5Dget_space(set);
    memory = H5Screate_simple(1, &one, NULL);
    at[0] = (hsize_t)from;
    if (from >= 0) {
        H5Sselect_elements(space, H5S_SELECT_SET, 1, at);
        cr_assert_geq(
            H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, &value),
            0);
    }
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return to;
}

Test(fields, ranks_that_see_other_data_are_refused)
{
    copies_t copies = {.paths = {path, copy_make("copy.h5", -1)}};

    copies_expect(&copies, NULL, CDDP_OK, NULL);
    copies_expect(&copies, "full", CDDP_OK, NULL);
    free(copies.paths[1]);
    copies.paths[1] = copy_make("other.h5", 3);
    copies_expect(&copies, NULL, CDDP_DATA,
                  "other.h5 holds other numbers in /size here than on ");
    copies_expect(&copies, "full", CDDP_DATA, "rank 1 on ");
    copies_expect(&copies, "none", CDDP_OK, NULL);
    copies_expect(&copies, "some", CDDP_CONFIG, "quick, full or none");
    /* If a rank cannot open its files, all ranks get its error. */
    free(copies.paths[1]);
    copies.paths[1] = str_dup("/nowhere.h5");
    copies_expect(&copies, NULL, CDDP_DATA, "no shard matches /nowhere.h5");
    free(copies.paths[1]);
}
