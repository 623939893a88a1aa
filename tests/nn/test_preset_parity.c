/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every preset, and a model with several inputs and losses, compared with
 * PyTorch, whose results make_preset_reference.py recorded in
 * tests/data/presets.json, and make_fields_reference.py in fields.json: the
 * output, the loss and the gradient of every parameter in the first step, and
 * the losses of 20 steps. Weights and samples follow the formula of
 * make_preset_reference.py. Of each tensor the norm and projections on random
 * signs are compared.
 *
 * In bfloat16 the presets are compared with the same numbers. Rounding then
 * changes which side a relu or a maximum takes, and batch norm over few
 * numbers magnifies the difference, so that PyTorch's own autocast may differ
 * widely: the test allows a small multiple of PyTorch's difference.
 *
 * The first step of each preset is also compared on the device "cuda", which is
 * emulated, or real in tests/gpu/run.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/emu.h"
#include "nn/fixture_dev.h"
#include "nn/preset_formula.h"

#define PROBES 8

typedef struct arithmetic {
    const char *name;
    bool bf16;
    double tolerance; /* relative to a norm or a loss */
    /* keys of PyTorch's own errors: of a tensor, and of the losses */
    const char *noise, *drift;
} arithmetic_t;

static const arithmetic_t single = {"fp32", false, PRESET_TOLERANCE, "noise",
                                    "drift"};
static const arithmetic_t half = {"bf16", true, 2e-2, "noise16", "drift16"};

/* ---- comparing ----------------------------------------------------------- */

/* Norm of the difference between [x] and the recorded tensor, estimated from
 * projections, relative to the recorded norm. */
static double distance(const json_t *recorded, const float *x, size_t count)
{
    const uint64_t key = preset_key("probe");
    double sums[1 + PROBES] = {0}, square = 0, norm;

    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = preset_mix(key + i);

        sums[0] += (double)x[i] * x[i];
        for (int k = 0; k < PROBES; k++)
            sums[1 + k] += (bits >> k & 1) != 0 ? -x[i] : x[i];
    }
    norm = json_number_value(json_array_get(recorded, 0));
    for (size_t k = 1; k <= PROBES; k++) {
        const double d =
            sums[k] - json_number_value(json_array_get(recorded, k));

        square += d * d / PROBES;
    }
    return fmax(sqrt(square), fabs(sqrt(sums[0]) - norm)) / norm;
}

static void expect_tensor(const json_t *json, const arithmetic_t *in,
                          const char *name, const float *x, size_t count)
{
    const json_t *tensor =
        json_object_get(json_object_get(json, "tensors"), name);
    const double noise = json_number_value(json_object_get(tensor, in->noise));
    double far;

    cr_assert_not_null(tensor, "%s has no %s in PyTorch",
                       json_string_value(json_object_get(json, "name")), name);
    far = distance(json_object_get(tensor, "probes"), x, count);
    cr_expect(far <= fmax(in->tolerance, PRESET_NOISE * noise),
              "%s, %s: %.2e from PyTorch's (its own %s: %.2e)",
              json_string_value(json_object_get(json, "name")), name, far,
              in->name, noise);
}

/* Compare the tensor that each loss reads. It is called "logits", or
 * "logits.NAME" if there are several losses. */
static void expect_outputs(const json_t *json, const arithmetic_t *in,
                           const nn_graph_t *graph, nn_exec_t *exec,
                           int64_t batch)
{
    const int losses = nn_graph_losses(graph);

    for (int k = 0; k < losses; k++) {
        const nn_loss_info_t loss = nn_graph_loss_info(graph, k);
        size_t count = (size_t)batch;
        char name[64] = "logits";
        err_t err = ERR_INIT;
        float *logits;

        for (int d = 0; d < loss.ndim; d++)
            count *= (size_t)loss.dims[d];
        if (losses > 1)
            snprintf(name, sizeof name, "logits.%s", loss.name);
        logits = malloc(count * sizeof *logits);
        cr_assert_eq(nn_exec_output(exec, k, logits, &err), ERR_OK, "%s",
                     err.text);
        expect_tensor(json, in, name, logits, count);
        free(logits);
    }
}

/* Compare the outputs, and the gradients, whose copy on the host is [grads]. */
static void expect_first(const json_t *json, const arithmetic_t *in,
                         const nn_graph_t *graph, nn_exec_t *exec,
                         const float *grads, int64_t batch)
{
    expect_outputs(json, in, graph, exec, batch);
    cr_expect_eq(json_object_size(json_object_get(json, "tensors")),
                 (size_t)(nn_graph_params(graph) + nn_graph_losses(graph)));
    for (int p = 0; p < nn_graph_params(graph); p++) {
        const nn_param_t *param = nn_graph_param(graph, p);

        expect_tensor(json, in, param->name, grads + param->offset,
                      param->count);
    }
}

/* Run forward and backward of the weighted sum of the losses' means. Returns
 * that sum. */
static double step_run(fixture_t *f)
{
    nn_result_t results[NN_FIELDS_MAX];
    double scales[NN_FIELDS_MAX], loss = 0;
    err_t err = ERR_INIT;

    cr_assert_eq(fixture_forward_losses(f, results, &err), ERR_OK, "%s",
                 err.text);
    for (int k = 0; k < nn_graph_losses(f->graph); k++) {
        scales[k] =
            nn_graph_loss_info(f->graph, k).weight /
            nn_batch_weigh(f->graph, k, &f->batch, f->samples).denominator;
        loss += scales[k] * results[k].loss_sum;
    }
    cr_assert_eq(fixture_backward_losses(f, scales, false, &err), ERR_OK, "%s",
                 err.text);
    return loss;
}

static void check_case(const json_t *json, const arithmetic_t *in)
{
    const int64_t batch = json_integer_value(json_object_get(json, "batch"));
    const float lr = (float)json_number_value(json_object_get(json, "lr"));
    const double drift = json_number_value(json_object_get(json, in->drift));
    const json_t *losses = json_object_get(json, "losses");
    nn_graph_t *graph =
        fixture_graph(json_string_value(json_object_get(json, "run")));
    fixture_t f;

    cr_assert_eq(json_array_size(losses), PRESET_STEPS);
    fixture_open_as(&f, graph,
                    &(nn_exec_config_t){.op_backend = "cpu",
                                        .batch = batch,
                                        .training = true,
                                        .threads = 1,
                                        .compute_type = in->bf16 ? OP_BFLOAT16
                                                                 : OP_FLOAT32},
                    0);
    preset_weights(graph, f.params);
    for (int64_t step = 0; step < PRESET_STEPS; step++) {
        const double expected =
            json_number_value(json_array_get(losses, (size_t)step));
        double found;

        preset_batch(&f, batch, step);
        found = step_run(&f);
        cr_expect(fabs(found - expected) <=
                      fmax(in->tolerance, PRESET_NOISE * drift) *
                          fabs(expected),
                  "%s in %s, step %d: loss %.8g, PyTorch has %.8g",
                  json_string_value(json_object_get(json, "name")), in->name,
                  (int)step, found, expected);
        if (step == 0)
            expect_first(json, in, graph, f.exec, f.bind.grads, batch);
        for (size_t i = 0; i < nn_graph_param_elems(graph); i++)
            f.params[i] -= lr * f.bind.grads[i];
    }
    fixture_close(&f);
    nn_graph_close(graph);
}

/* Check all cases of the file [name] in tests/data; expect at least [least]
 * cases. */
static void check_file(const char *name, size_t least, const arithmetic_t *in)
{
    const op_backend_ops_t *cpu = NULL;
    json_t *json, *cases;
    err_t err = ERR_INIT;

    if (op_backend_get("cpu", &cpu, &err) != ERR_OK)
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    if (in->bf16 && op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    json = preset_load(name);
    cases = json_object_get(json, "cases");
    cr_assert_geq(json_array_size(cases), least);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i), in);
    json_decref(json);
}

Test(preset_parity, presets_compute_what_pytorch_computes)
{
    check_file("presets.json", 13, &single);
}

Test(preset_parity, presets_in_bf16_are_near_pytorch)
{
    check_file("presets.json", 13, &half);
}

Test(preset_parity, so_do_several_inputs_and_losses)
{
    check_file("fields.json", 1, &single);
}

/* ---- on a GPU ------------------------------------------------------------ */

/* A sanitizer makes the emulation four times as slow. */
#ifdef __SANITIZE_ADDRESS__
#define CUDA_CASES 2
#else
#define CUDA_CASES 100
#endif

static void check_first_on_cuda(const json_t *json, const arithmetic_t *in)
{
    const int64_t batch = json_integer_value(json_object_get(json, "batch"));
    const double expected =
        json_number_value(json_array_get(json_object_get(json, "losses"), 0));
    const double drift = json_number_value(json_object_get(json, in->drift));
    nn_graph_t *graph =
        fixture_graph(json_string_value(json_object_get(json, "run")));
    nn_exec_config_t config = {
        .op_backend = "ref", .batch = batch, .training = true, .threads = 1};
    fixture_dev_t cuda;
    nn_result_t *result;
    fixture_t host;
    err_t err = ERR_INIT;
    float *grads;
    double scale;

    cr_assert_eq(nn_graph_losses(graph), 1);
    fixture_open_as(&host, graph, &config, 0);
    preset_weights(graph, host.params);
    preset_batch(&host, batch, 0);
    scale = 1 / nn_batch_weigh(graph, 0, &host.batch, host.samples).denominator;
    host.step.scales[0] = (float)scale;
    config.compute_type = in->bf16 ? OP_BFLOAT16 : OP_FLOAT32;
    fixture_dev_open(&cuda, &host, &config, "cuda", 0);
    cr_assert_eq(nn_exec_forward(cuda.exec, &cuda.batch, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(nn_exec_backward(cuda.exec, &cuda.batch, false, &err), ERR_OK,
                 "%s", err.text);
    grads = fixture_dev_read(&cuda, cuda.bind.grads,
                             nn_graph_param_elems(graph) * sizeof *grads);
    result = fixture_dev_read(&cuda, cuda.bind.results, sizeof *result);
    cr_expect(fabs(scale * result->loss_sum - expected) <=
                  fmax(in->tolerance, PRESET_NOISE * drift) * fabs(expected),
              "%s in %s: loss %.8g, PyTorch has %.8g",
              json_string_value(json_object_get(json, "name")), in->name,
              scale * result->loss_sum, expected);
    expect_first(json, in, graph, cuda.exec, grads, batch);
    free(grads);
    free(result);
    fixture_dev_close(&cuda);
    fixture_close(&host);
    nn_graph_close(graph);
}

static void check_presets_on_cuda(const arithmetic_t *in)
{
    json_t *json, *cases;

    emu_or_gpu();
    json = preset_load("presets.json");
    cases = json_object_get(json, "cases");
    for (size_t i = 0; i < json_array_size(cases) && i < CUDA_CASES; i++)
        check_first_on_cuda(json_array_get(cases, i), in);
    json_decref(json);
}

Test(preset_parity, cuda_fp32, .timeout = 600)
{
    check_presets_on_cuda(&single);
}

Test(preset_parity, cuda_bf16, .timeout = 600)
{
    check_presets_on_cuda(&half);
}
