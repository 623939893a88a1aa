/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tensors stored as bfloat16 between layers: which ones, how much memory that
 * saves, that gradients stay close to those of the reference, and that no
 * memory plan changes a bit. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/cost.h"
#include "nn/exec_priv.h"
#include "nn/fixture.h"

#define BATCH 6

/* A shortcut, whose gradient has two terms; pools; a branch whose last reader
 * is a mul, which takes float32 only; and a loss directly after an activation
 * of a convolution. */
static const char *const stored_model =
    "model:\n"
    "  input: [3, 12, 12]\n"
    "  layers:\n"
    "    - {name: c0, conv: {out: 32, kernel: 3, pad: 1}}\n"
    "    - {name: n0, batchnorm: }\n"
    "    - {name: r0, relu: }\n"
    "    - {name: c1, conv: {out: 32, kernel: 3, pad: 1}}\n"
    "    - {name: n1, batchnorm: }\n"
    "    - {name: a1, add: , from: [n1, r0]}\n"
    "    - {name: r1, relu: }\n"
    "    - {name: p1, maxpool: {kernel: 2}}\n"
    "    - {name: c2, conv: {out: 19, kernel: 3, stride: 2, pad: 1}}\n"
    "    - {name: l2, leaky_relu: {slope: 0.3}}\n"
    "    - {name: p2, avgpool: {kernel: 2, stride: 1}}\n"
    "    - {name: c3, conv: {out: 19, kernel: 1}}\n"
    "    - {name: m3, mul: , from: [c3, p2]}\n"
    "    - {name: m4, mean: }\n"
    "    - {name: f5, linear: {out: 12}}\n"
    "    - {name: v5, reshape: {shape: [3, 2, 2]}}\n"
    "    - {name: c5, conv: {out: 5, kernel: 1}}\n"
    "    - {name: t5, tanh: }\n"
    "loss: mse\n";

static void need_bf16(void)
{
    if (!fixture_has_bf16("cpu"))
        cr_skip_test("the cpu backend (oneDNN) multiplies no bfloat16 here");
}

static void open_stored(const nn_graph_t *graph, const char *backend, bool bf16,
                        bool unfused, bool recompute, fixture_t *f)
{
    const nn_exec_config_t config = {.op_backend = backend,
                                     .batch = BATCH,
                                     .training = true,
                                     .compute_type =
                                         bf16 ? OP_BFLOAT16 : OP_FLOAT32,
                                     .unfused = unfused,
                                     .recompute = recompute,
                                     .threads = 1};

    fixture_open_as(f, graph, &config, 0);
}

Test(store, readers_decide_how_outputs_lie, .init = need_bf16)
{
    static const bool rounded[] = {
        /* c0 n0 r0 c1 n1 a1 r1 p1: gradients in bfloat16 */
        true, true, true, true, true, true, true, true,
        /* c2 l2 p2 c3 (mul reads them), m3 m4 f5 v5 */
        false, false, false, false, false, false, false, false,
        /* c5 t5 (the loss reads them) */
        false, false};
    nn_graph_t *graph = fixture_graph(stored_model);
    fixture_t wide, f;

    open_stored(graph, "cpu", false, true, false, &wide);
    open_stored(graph, "cpu", true, true, false, &f);
    cr_assert_eq(sizeof rounded, (size_t)nn_graph_layers(graph));
    for (int i = 0; i < nn_graph_layers(graph); i++) {
        cr_expect_eq(nn_exec_layer_plan(f.exec, i).grad_stored_as ==
                         OP_BFLOAT16,
                     rounded[i], "%s", nn_graph_layer(graph, i).name);
        cr_expect_neq(nn_exec_layer_plan(wide.exec, i).stored_as, OP_BFLOAT16);
    }
    cr_expect_eq(nn_exec_facts(f.exec).bf16, 8);
    cr_expect_eq(2 * op_out(f.exec->nodes[2].op)->bytes,
                 op_out(wide.exec->nodes[2].op)->bytes);
    fixture_close(&wide);
    fixture_close(&f);
    nn_graph_close(graph);
}

/* Tensors between layers take half the memory, and half as many bytes are
 * moved. */
Test(store, a_residual_network_takes_less_memory, .init = need_bf16)
{
    nn_graph_t *graph = fixture_graph(
        "model: {preset: resnet18, input: [3, 32, 32], classes: 10, "
        "width: 32}\nloss: cross_entropy\n");
    fixture_t wide, f;

    open_stored(graph, "cpu", false, false, false, &wide);
    open_stored(graph, "cpu", true, false, false, &f);
    cr_expect_lt(3 * nn_exec_facts(f.exec).kept,
                 2 * nn_exec_facts(wide.exec).kept);
    cr_expect_lt(3 * nn_exec_cost(f.exec, 1e30, 1).seconds,
                 2 * nn_exec_cost(wide.exec, 1e30, 1).seconds);
    fixture_close(&wide);
    fixture_close(&f);
    nn_graph_close(graph);
}

static void run(fixture_t *f)
{
    fixture_poison(f);
    fixture_forward(f);
    fixture_backward(f, 1.0 / BATCH, false);
}

/* |a - b| / |b|, Euclidean. */
static double apart(const float *a, const float *b, size_t count)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < count; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        all += (double)b[i] * (double)b[i];
    }
    return sqrt(off / all);
}

/* Storing tensors between products as bfloat16 is about as precise as rounding
 * the products' factors only, as ref does. */
Test(store, gradients_are_about_as_precise_as_the_reference, .init = need_bf16)
{
    nn_graph_t *graph = fixture_graph(stored_model);
    fixture_t f, ref, exact;

    open_stored(graph, "cpu", true, false, false, &f);
    open_stored(graph, "ref", true, false, false, &ref);
    open_stored(graph, "ref", false, false, false, &exact);
    run(&f);
    run(&ref);
    run(&exact);
    for (int i = 0; i < nn_graph_params(graph); i++) {
        const nn_param_t *param = nn_graph_param(graph, i);
        const float *want = exact.bind.grads + param->offset;
        const double got =
            apart(f.bind.grads + param->offset, want, param->count);
        const double usual =
            apart(ref.bind.grads + param->offset, want, param->count);

        /* The gradient of a bias before a batchnorm is 0 up to rounding. */
        if (strcmp(param->name, "c0.bias") != 0 &&
            strcmp(param->name, "c1.bias") != 0)
            cr_expect_leq(got, 3 * usual + 1e-2, "%s: %g, ref %g", param->name,
                          got, usual);
    }
    fixture_close(&f);
    fixture_close(&ref);
    fixture_close(&exact);
    nn_graph_close(graph);
}

/* Set the target to a probability for each of 4 channels at every position. */
static void probabilities_set(fixture_t *f, int64_t positions)
{
    static const float shares[][4] = {
        {0.1f, 0.2f, 0.3f, 0.4f}, {1, 0, 0, 0}, {0.25f, 0, 0.5f, 0.25f}};
    float *target = f->targets[0];

    for (int64_t i = 0; i < BATCH * 4 * positions; i++)
        target[i] = shares[(i % positions + i / (4 * positions)) % 3]
                          [i / positions % 4];
}

/* Only rounding errors remain where targets are probabilities. */
Test(store, losses_of_probabilities_behind_bf16, .init = need_bf16)
{
    static const char *const ends[] = {
        "]}\nloss: {cross_entropy: {soft_target: true, weight: [1, 2, 1, 0.5], "
        "label_smoothing: 0.1}}\n",
        ", {log_softmax: {axis: 1}}]}\nloss: kl\n"};

    for (int i = 0; i < 2; i++) {
        char text[400];
        nn_graph_t *graph;
        fixture_t f, ref, exact;
        fixture_t *const all[] = {&f, &ref, &exact};
        double loss[3], usual;
        size_t count;

        snprintf(text, sizeof text,
                 "model: {input: [3, 8, 8], layers: [{conv: {out: 32, kernel: "
                 "3, pad: 1}}, relu, {maxpool: {kernel: 2}}, {conv: {out: 4, "
                 "kernel: 3}}%s",
                 ends[i]);
        graph = fixture_graph(text);
        count = nn_graph_param_elems(graph);
        open_stored(graph, "cpu", true, false, false, &f);
        open_stored(graph, "ref", true, false, false, &ref);
        open_stored(graph, "ref", false, false, false, &exact);
        cr_expect_gt(nn_exec_facts(f.exec).bf16, 1);
        for (int k = 0; k < 3; k++) {
            probabilities_set(all[k], 4);
            fixture_poison(all[k]);
            loss[k] = fixture_forward(all[k]);
            fixture_backward(all[k], 1.0 / BATCH, false);
        }
        usual = apart(ref.bind.grads, exact.bind.grads, count);
        cr_expect_leq(apart(f.bind.grads, exact.bind.grads, count),
                      3 * usual + 1e-2, "%s", text);
        cr_expect_leq(fabs(loss[0] - loss[2]), 1e-2 * fabs(loss[2]), "%g, %g",
                      loss[0], loss[2]);
        for (int k = 0; k < 3; k++)
            fixture_close(all[k]);
        nn_graph_close(graph);
    }
}

/* Recomputation in backward gives equal bits. */
Test(store, recomputing_changes_no_bit, .init = need_bf16)
{
    nn_graph_t *graph = fixture_graph(stored_model);
    const size_t bytes = nn_graph_param_elems(graph) * sizeof(float);
    fixture_t once, again;
    err_t err = ERR_INIT;

    open_stored(graph, "cpu", true, false, false, &once);
    open_stored(graph, "cpu", true, false, true, &again);
    cr_assert_eq(nn_exec_plan_parts(again.exec, 3, &err), ERR_OK);
    cr_assert_gt(nn_exec_facts(again.exec).recomputed, 0);
    fixture_rebind(&again);
    run(&once);
    run(&again);
    cr_expect_eq(memcmp(once.bind.grads, again.bind.grads, bytes), 0);
    fixture_close(&once);
    fixture_close(&again);
    nn_graph_close(graph);
}
