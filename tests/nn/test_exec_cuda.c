/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole graphs on the emulated device "cuda": results and gradients are those
 * of cpu in float32. In bfloat16, tensors between convolutions are stored so,
 * with channels last, and results are near.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emu.h"
#include "fixture_dev.h"
#include "nn/cost.h"

enum { BATCH = 6 };

/* A block of a residual network: convolutions, batch norms, a sum, pools. */
static const char residual[] =
    "model: {input: [3, 12, 12], layers: [\n"
    "  {name: stem, conv: {out: 12, kernel: 3, pad: 1, bias: false}},\n"
    "  batchnorm, {name: start, relu: {}},\n"
    "  {conv: {out: 12, kernel: 3, pad: 1, bias: false}}, batchnorm, relu,\n"
    "  {conv: {out: 12, kernel: 3, pad: 1}}, {name: end, batchnorm: {}},\n"
    "  {add: {}, from: [end, start]}, relu, {maxpool: {kernel: 2}},\n"
    "  {conv: {out: 20, kernel: 3, stride: 2, pad: 1}}, gelu, flatten,\n"
    "  {linear: {out: 5}}]}\n"
    "loss: cross_entropy\n";

static double distance(const float *got, const float *want, size_t count)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        difference += pow((double)got[i] - (double)want[i], 2);
        norm += pow((double)want[i], 2);
    }
    cr_assert(norm > 0);
    return sqrt(difference / norm);
}

static void check_results(fixture_dev_t *cuda, const nn_result_t *want,
                          double limit)
{
    const size_t losses = (size_t)nn_graph_losses(cuda->like->graph);
    nn_result_t *got =
        fixture_dev_read(cuda, cuda->bind.results, losses * sizeof *got);

    for (size_t k = 0; k < losses; k++)
        cr_expect(fabs(got[k].loss_sum - want[k].loss_sum) <=
                      limit * fabs(want[k].loss_sum),
                  "loss %zu is %g, not %g", k, got[k].loss_sum,
                  want[k].loss_sum);
    free(got);
}

/* Compare with cpu in float32: gradients may differ by [limit] of their norm,
 * losses by a fifth of it. Returns the bytes of activations. */
static size_t check_model(const char *model, nn_exec_config_t config,
                          op_type_t type, double limit)
{
    nn_graph_t *graph = fixture_graph(model);
    nn_result_t results[NN_FIELDS_MAX] = {{0}};
    const size_t count = nn_graph_param_elems(graph);
    fixture_dev_t cuda;
    fixture_t cpu;
    err_t err = ERR_INIT;
    size_t bytes;
    float *grads;
    double far;

    fixture_open_as(&cpu, graph, &config, 0);
    for (int k = 0; k < nn_graph_losses(graph); k++)
        cpu.step.scales[k] = 0.25;
    config.compute_type = type;
    fixture_dev_open(&cuda, &cpu, &config, "cuda", 0);
    cpu.bind.results = results;
    nn_exec_bind(cpu.exec, &cpu.bind);
    cr_assert_eq(nn_exec_forward(cpu.exec, &cpu.batch, &err), ERR_OK);
    cr_assert_eq(nn_exec_backward(cpu.exec, &cpu.batch, false, &err), ERR_OK);
    cr_assert_eq(nn_exec_forward(cuda.exec, &cuda.batch, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(nn_exec_backward(cuda.exec, &cuda.batch, false, &err), ERR_OK,
                 "%s", err.text);
    grads = fixture_dev_read(&cuda, cuda.bind.grads, count * sizeof *grads);
    far = distance(grads, cpu.bind.grads, count);
    cr_expect_leq(far, limit, "gradients differ by %g in %s", far, model);
    check_results(&cuda, results, limit / 5);
    bytes = nn_exec_activation_bytes(cuda.exec);
    free(grads);
    fixture_dev_close(&cuda);
    fixture_close(&cpu);
    nn_graph_close(graph);
    return bytes;
}

static const nn_exec_config_t training = {
    .op_backend = "cpu", .batch = BATCH, .training = true, .threads = 1};

Test(exec_cuda, float32, .timeout = 300)
{
    const char *const models[] = {fixture_mlp,         fixture_cnn,
                                  fixture_graph_model, fixture_smooth,
                                  fixture_tokens,      residual};

    emu_open();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(models[i], training, OP_FLOAT32, 2e-5);
}

Test(exec_cuda, recompute, .timeout = 300)
{
    nn_exec_config_t config = training;

    emu_open();
    config.recompute = true;
    check_model(residual, config, OP_FLOAT32, 2e-5);
}

Test(exec_cuda, bfloat16, .timeout = 300)
{
    const char *const models[] = {fixture_cnn, fixture_tokens};

    emu_open();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(models[i], training, OP_BFLOAT16, 1e-1);
}

/* The tensors between the layers of a residual network take half the memory,
 * although 12 channels are stored as 16. */
Test(exec_cuda, bfloat16_is_stored, .timeout = 300)
{
    size_t bytes[2];

    emu_open();
    bytes[0] = check_model(residual, training, OP_FLOAT32, 2e-5);
    bytes[1] = check_model(residual, training, OP_BFLOAT16, 1e-1);
    cr_expect_lt(bytes[1], bytes[0], "%zu bytes, not less than %zu", bytes[1],
                 bytes[0]);
}

/* Logits of more classes than there are other numbers in the model: backward
 * writes their gradient over them. */
Test(exec_cuda, gradients_of_losses_lie_over_their_inputs, .timeout = 300)
{
    static const char wide[] = "model: {input: [7], layers: [\n"
                               "  {linear: {out: 9}}, relu,\n"
                               "  {linear: {out: 2000}}]}\n"
                               "loss: cross_entropy\n";
    const char *const models[] = {fixture_mlp, fixture_graph_model,
                                  fixture_smooth, fixture_tokens, residual};
    nn_exec_config_t config = training;
    size_t bytes[2];

    emu_open();
    config.consume = true;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(models[i], config, OP_FLOAT32, 2e-5);
    bytes[0] = check_model(wide, training, OP_FLOAT32, 2e-5);
    bytes[1] = check_model(wide, config, OP_FLOAT32, 2e-5);
    cr_expect_lt(bytes[1], bytes[0] - sizeof(float) * BATCH * 1900,
                 "%zu bytes, and %zu if backward may not", bytes[1], bytes[0]);
}

/* ---- attention ----------------------------------------------------------- */

/* Calls that opening an exec of [text] makes. */
static int64_t calls_of(const char *text, nn_exec_config_t config)
{
    const fake_cuda_t *fake = emu_open();
    nn_graph_t *graph = fixture_graph(text);
    const int64_t before = fake->counts().calls;
    nn_exec_t *exec;
    err_t err = ERR_INIT;
    int64_t calls;

    cr_assert_eq(nn_exec_open(graph, &config, &exec, &err), ERR_OK, "%s",
                 err.text);
    calls = fake->counts().calls - before;
    cr_assert_str_eq(nn_exec_layer_plan(exec, 1).note, "by cuDNN");
    nn_exec_close(exec);
    nn_graph_close(graph);
    return calls;
}

static nn_exec_config_t rounded_on(dev_device_t **dev)
{
    nn_exec_config_t config = training;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_open("cuda", 0, dev, &err), ERR_OK, "%s", err.text);
    config.op_backend = "cuda";
    config.compute_type = OP_BFLOAT16;
    config.dev = *dev;
    return config;
}

Test(exec_cuda, attentions_of_one_shape_are_planned_once, .timeout = 300)
{
    static const char same[] = "model: {input: [8, 48], layers: [\n"
                               "  {linear: {out: 48, flatten: false}},\n"
                               "  {attention: {heads: 2}},\n"
                               "  {linear: {out: 48, flatten: false}},\n"
                               "  {attention: {heads: 2}}]}\n"
                               "loss: mse\n";
    static const char other[] = "model: {input: [8, 48], layers: [\n"
                                "  {linear: {out: 48, flatten: false}},\n"
                                "  {attention: {heads: 2}},\n"
                                "  {linear: {out: 48, flatten: false}},\n"
                                "  {attention: {heads: 2, causal: true}}]}\n"
                                "loss: mse\n";
    nn_exec_config_t config;
    dev_device_t *dev;
    int64_t once;

    emu_open();
    config = rounded_on(&dev);
    once = calls_of(same, config);
    cr_assert_gt(calls_of(other, config), once + 100);
    dev_close(dev);
}

/* The thread's error names the layer, and an exec may be closed before it is
 * settled. */
Test(exec_cuda, errors_of_plans_come_before_the_first_pass, .timeout = 300)
{
    static const char text[] = "model: {input: [8, 48], layers: [\n"
                               "  {linear: {out: 48, flatten: false}},\n"
                               "  {name: look, attention: {heads: 2}}]}\n"
                               "loss: mse\n";
    const fake_cuda_t *fake = emu_open();
    nn_graph_t *graph = fixture_graph(text);
    nn_exec_config_t config;
    dev_device_t *dev;
    nn_exec_t *exec;
    err_t err = ERR_INIT;
    int64_t calls;

    config = rounded_on(&dev);
    calls = calls_of(text, config);
    cr_assert_eq(nn_exec_begin(graph, &config, &exec, &err), ERR_OK, "%s",
                 err.text);
    nn_exec_close(exec);
    /* One of the thread's last calls: the attention is opened last. */
    emu_set(fake, fail, calls - 20);
    cr_assert_eq(nn_exec_begin(graph, &config, &exec, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_neq(nn_exec_settle(exec, &err), ERR_OK);
    cr_assert_eq(fake->get().fail, 0);
    cr_assert_not_null(strstr(err.text, "layer look"), "%s", err.text);
    nn_exec_close(exec);
    nn_graph_close(graph);
    dev_close(dev);
    cr_assert_eq(fake->counts().objects, 0);
}
