/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Models and execs through the public headers: recomputed blocks, bfloat16,
 * batch norm over all ranks. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "cddp/cddp.h"

enum { SAMPLES = 4, PIXELS = 3 * 12 * 12, CLASSES = 5 };

static const char model_text[] =
    "model:\n"
    "  input: [3, 12, 12]\n"
    "  layers:\n"
    "    - repeat:\n"
    "        times: 8\n"
    "        layers: [{conv: {out: 8, kernel: 3, pad: 1}}, batchnorm, tanh]\n"
    "    - linear: {out: 5}\n"
    "loss: cross_entropy\n";

/* Results of one step of a model. */
typedef struct step {
    double loss;
    size_t bytes;
    float *grads;
} step_t;

static void *zeros(size_t count, size_t size)
{
    void *block = calloc(count, size);

    cr_assert_not_null(block);
    return block;
}

/* Run one step; [config] gets the number of samples and the memory here. */
static step_t step_run(const cddp_model_t *model, cddp_exec_config_t config)
{
    static float input[SAMPLES * PIXELS];
    const int64_t target[SAMPLES] = {0, 4, 2, 1};
    const uint64_t ids[SAMPLES] = {0, 1, 2, 3};
    const cddp_samples_t samples = {
        .input = input, .target = target, .ids = ids};
    const size_t elems = cddp_model_param_elems(model);
    float *params = zeros(elems, sizeof(float));
    float *buffers = zeros(cddp_model_buffer_elems(model), sizeof(float));
    double *moments = zeros(cddp_model_moments(model), sizeof(double));
    step_t step = {.grads = zeros(elems, sizeof(float))};
    cddp_exec_t *exec = NULL;
    cddp_error_t error;

    for (int i = 0; i < SAMPLES * PIXELS; i++)
        input[i] = sinf((float)i);
    cddp_model_init(model, 1, params, buffers);
    config.samples = SAMPLES;
    config.training = config.threads = 1;
    config.params = params;
    config.grads = step.grads;
    config.buffers = buffers;
    config.moments = moments;
    cr_assert_eq(cddp_exec_open(model, &config, &exec, &error), CDDP_OK, "%s",
                 error.text);
    step.bytes = cddp_exec_bytes(exec);
    cr_assert_eq(cddp_exec_forward(exec, &samples, &step.loss, NULL, &error),
                 CDDP_OK, "%s", error.text);
    cr_assert_eq(cddp_exec_backward(exec, &samples, 0.25, 0, &error), CDDP_OK,
                 "%s", error.text);
    cddp_exec_close(exec);
    free(params);
    free(buffers);
    free(moments);
    return step;
}

static cddp_model_t *model_open(void)
{
    cddp_model_t *model = NULL;
    cddp_error_t error;

    cr_assert_eq(cddp_model_open("model", model_text, &model, &error), CDDP_OK,
                 "%s", error.text);
    return model;
}

Test(model, recomputed_blocks_give_the_same_bits_in_less_memory, .timeout = 60)
{
    cddp_model_t *model = model_open();
    step_t plain = step_run(model, (cddp_exec_config_t){.recompute = 0});
    step_t blocks = step_run(model, (cddp_exec_config_t){.recompute = 1});

    cr_expect_eq(plain.loss, blocks.loss);
    cr_expect_arr_eq(plain.grads, blocks.grads,
                     cddp_model_param_elems(model) * sizeof(float));
    cr_expect_lt(blocks.bytes, plain.bytes * 3 / 4, "%zu bytes against %zu",
                 blocks.bytes, plain.bytes);
    free(plain.grads);
    free(blocks.grads);
    cddp_model_close(model);
}

Test(model, no_backward_of_an_exec_for_evaluation)
{
    cddp_model_t *model = model_open();
    const cddp_samples_t samples = {.input = NULL};
    float *params = zeros(cddp_model_param_elems(model), sizeof(float));
    float *buffers = zeros(cddp_model_buffer_elems(model), sizeof(float));
    const cddp_exec_config_t config = {
        .samples = 1, .threads = 1, .params = params, .buffers = buffers};
    cddp_exec_t *exec = NULL;
    cddp_error_t error;

    cr_assert_eq(cddp_exec_open(model, &config, &exec, &error), CDDP_OK, "%s",
                 error.text);
    cr_expect_eq(cddp_exec_backward(exec, &samples, 1, 0, &error), CDDP_CONFIG);
    cr_expect_not_null(strstr(error.text, "for evaluation"), "%s", error.text);
    cddp_exec_close(exec);
    free(params);
    free(buffers);
    cddp_model_close(model);
}

/* Try to open an exec of [model] in bf16 on this CPU. */
static cddp_code_t bf16_try(const cddp_model_t *model, cddp_error_t *error)
{
    float number = 0;
    const cddp_exec_config_t config = {
        .samples = 1, .params = &number, .bf16 = 1};
    cddp_exec_t *exec = NULL;
    cddp_code_t code = cddp_exec_open(model, &config, &exec, error);

    cddp_exec_close(exec);
    return code;
}

/* The loss in bf16 is close to the loss in float32. A CPU without bfloat16 is
 * reported with a message. */
Test(model, products_in_bf16, .timeout = 60)
{
    cddp_model_t *model = model_open();
    cddp_error_t error;
    cddp_code_t code = bf16_try(model, &error);

    if (code == CDDP_OK) {
        step_t fp32 = step_run(model, (cddp_exec_config_t){.bf16 = 0});
        step_t bf16 = step_run(model, (cddp_exec_config_t){.bf16 = 1});

        cr_expect_neq(fp32.loss, bf16.loss);
        cr_expect_float_eq(fp32.loss, bf16.loss, 0.02 * fp32.loss);
        free(fp32.grads);
        free(bf16.grads);
    } else {
        cr_expect_eq(code, CDDP_UNAVAILABLE);
        cr_expect_not_null(strstr(error.text, "cannot multiply bfloat16"));
    }
    cddp_model_close(model);
}

/* oneDNN is told to behave as on an older CPU. */
Test(model, bf16_is_refused_where_the_cpu_has_none, .timeout = 60)
{
    cddp_model_t *model = model_open();
    cddp_error_t error;

    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    cr_expect_eq(bf16_try(model, &error), CDDP_UNAVAILABLE);
    cr_expect_not_null(strstr(error.text, "cannot multiply bfloat16"), "%s",
                       error.text);
    cddp_model_close(model);
}

/* ---- batch norm over all ranks ------------------------------------------- */

#define SYNC_TEXT(norm)                                              \
    "{model: {input: [6], layers: [linear: {out: 8}, " norm          \
    ", tanh, linear: {out: 8}, " norm ", linear: {out: 3}]}, loss: " \
    "cross_entropy}"

enum { ROWS = 7, FEATURES = 6, ELEMS = 512 };

/* Results summed over all ranks. */
typedef struct synced {
    const char *text;
    double loss;
    float grads[ELEMS];
} synced_t;

static cddp_code_t sum_over(void *context, double *sums, size_t count,
                            cddp_error_t *error)
{
    return cddp_allreduce(context, sums, count, CDDP_FLOAT64, CDDP_SUM, error);
}

/* Add the results of rows [first, first + rows) to [out]. */
static cddp_code_t rows_run(cddp_group_t *group, const cddp_model_t *model,
                            int first, int rows, synced_t *out,
                            cddp_error_t *error)
{
    float x[ROWS * FEATURES], params[ELEMS], buffers[ELEMS];
    double moments[ELEMS] = {0};
    const int64_t labels[ROWS] = {0, 1, 2, 0, 1, 2, 0};
    const uint64_t ids[ROWS] = {0};
    const cddp_samples_t samples = {
        .input = x + first * FEATURES, .target = labels + first, .ids = ids};
    cddp_exec_config_t config = {.samples = rows,
                                 .training = 1,
                                 .threads = 1,
                                 .params = params,
                                 .grads = out->grads,
                                 .buffers = buffers,
                                 .moments = moments,
                                 .context = group};
    cddp_exec_t *exec = NULL;

    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = sinf((float)i);
    cddp_model_init(model, 1, params, buffers);
    if (cddp_model_syncs(model) > 0) {
        CHECK(cddp_exec_open(model, &config, &exec, error) == CDDP_CONFIG);
        CHECK(strstr(error->text, "has syncbatchnorm layers") != NULL);
        config.sum = sum_over;
    }
    OK(cddp_exec_open(model, &config, &exec, error));
    OK(cddp_exec_forward(exec, &samples, &out->loss, NULL, error));
    OK(cddp_exec_backward(exec, &samples, 1.0 / ROWS, 0, error));
    cddp_exec_close(exec);
    return CDDP_OK;
}

/* A rank without samples adds zeros to every sum. */
static cddp_code_t zeros_add(cddp_group_t *group, const cddp_model_t *model,
                             cddp_error_t *error)
{
    for (int k = 0; k < 2 * cddp_model_syncs(model); k++) {
        double sums[ELEMS] = {0};

        CHECK(cddp_model_sync_count(model, k) <= ELEMS);
        OK(sum_over(group, sums, cddp_model_sync_count(model, k), error));
    }
    return CDDP_OK;
}

/* The first two ranks have samples. Sums of batch norm use a sub-group. */
static cddp_code_t sync_main(cddp_group_t *group, void *context,
                             cddp_error_t *error)
{
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    const int ranks[] = {0, 1, 2};
    synced_t own = {.text = ((synced_t *)context)->text};
    cddp_group_t *sums = NULL;
    cddp_model_t *model = NULL;

    OK(cddp_group_split(group, ranks, size, &sums, error));
    OK(cddp_model_open("model", own.text, &model, error));
    CHECK(cddp_model_param_elems(model) <= ELEMS);
    if (size == 1)
        OK(rows_run(sums, model, 0, ROWS, &own, error));
    else if (rank < 2)
        OK(rows_run(sums, model, 3 * rank, 3 + rank, &own, error));
    else
        OK(zeros_add(sums, model, error));
    cddp_model_close(model);
    OK(cddp_allreduce(group, &own.loss, 1, CDDP_FLOAT64, CDDP_SUM, error));
    OK(cddp_allreduce(group, own.grads, ELEMS, CDDP_FLOAT32, CDDP_SUM, error));
    cddp_group_close(sums);
    if (rank == 0)
        *(synced_t *)context = own;
    return CDDP_OK;
}

static synced_t synced(const char *text, int ranks)
{
    const cddp_run_config_t config = {.local = ranks};
    synced_t out = {.text = text};
    cddp_error_t error;

    cr_assert_eq(cddp_run(&config, sync_main, &out, &error), CDDP_OK, "%s",
                 error.text);
    return out;
}

Test(model, batch_norm_over_all_ranks_is_that_of_the_whole_batch, .timeout = 60)
{
    const synced_t whole = synced(SYNC_TEXT("batchnorm"), 1);

    for (int ranks = 1; ranks <= 3; ranks++) {
        const synced_t parts = synced(SYNC_TEXT("syncbatchnorm"), ranks);

        cr_expect_float_eq(parts.loss, whole.loss, 1e-5, "%d ranks", ranks);
        for (int i = 0; i < ELEMS; i++)
            cr_expect_float_eq(parts.grads[i], whole.grads[i], 1e-5f,
                               "%d ranks, element %d", ranks, i);
    }
}
