/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Layers that are fused into one call: which ones, and that fusing changes no
 * bit. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "nn/cost.h"
#include "nn/fixture.h"

#define BATCH 6

/* All fused forms, and forms that must not be fused: a batchnorm with other
 * readers, one that is not directly before the add, one whose input is also
 * added to it, an add of three tensors. */
static const char *const fused_model =
    "model:\n"
    "  input: [3, 8, 8]\n"
    "  layers:\n"
    "    - {name: c0, conv: {out: 19, kernel: 3, pad: 1}}\n"
    "    - {name: n0, batchnorm: }\n"
    "    - {name: r0, relu: }\n"
    "    - {name: c1, conv: {out: 19, kernel: 3, pad: 1}}\n"
    "    - {name: n1, batchnorm: }\n"
    "    - {name: a1, add: , from: [n1, r0]}\n"
    "    - {name: r1, relu: }\n"
    "    - {name: n2, batchnorm: }\n"
    "    - {name: c2, conv: {out: 19, kernel: 1}, from: r1}\n"
    "    - {name: n3, batchnorm: }\n"
    "    - {name: a2, add: , from: [n2, n3]}\n"
    "    - {name: r2, relu: }\n"
    "    - {name: n4, batchnorm: }\n"
    "    - {name: r3, relu: }\n"
    "    - {name: a3, add: , from: [r3, n4, r2]}\n"
    "    - {name: r4, relu: }\n"
    "    - {name: a4, add: , from: [r4, r4]}\n"
    "    - {name: r5, relu: }\n"
    "    - {name: n6, batchnorm: }\n"
    "    - {name: a5, add: , from: [n6, r5]}\n"
    "    - {name: r7, relu: }\n"
    "    - {name: a6, add: , from: [r7, r5]}\n"
    "    - linear: {out: 33}\n"
    "    - {name: n5, batchnorm: }\n"
    "    - {name: r6, relu: }\n"
    "    - linear: {out: 5}\n"
    "loss: cross_entropy\n";

/* Linear layers with activations, some after norms. Forms that must not be
 * fused: a linear layer and a norm with other readers, an activation that reads
 * another layer than the preceding one, an activation whose backward needs its
 * input. */
static const char *const token_model =
    "model:\n"
    "  input: [9, 20]\n"
    "  layers:\n"
    "    - {name: n0, layernorm: }\n"
    "    - {name: in, linear: {out: 60, flatten: false}}\n"
    "    - {name: heads, attention: {heads: 4, causal: true}}\n"
    "    - {name: out, linear: {out: 20, flatten: false}}\n"
    "    - {name: middle, add: , from: [out, n0]}\n"
    "    - {name: n1, layernorm: }\n"
    "    - {name: up, linear: {out: 50, flatten: false}}\n"
    "    - {name: g1, gelu: }\n"
    "    - {name: down, linear: {out: 20, flatten: false}}\n"
    "    - {name: end, add: , from: [middle, down]}\n"
    "    - {name: n2, rmsnorm: }\n"
    "    - {name: l2, linear: {out: 20, flatten: false, bias: false}}\n"
    "    - {name: s2, silu: }\n"
    "    - {name: l3, linear: {out: 20, flatten: false}}\n"
    "    - {name: g3, gelu: {approximate: tanh}}\n"
    "    - {name: a3, add: , from: [l3, g3]}\n"
    "    - {name: l4, linear: {out: 20, flatten: false}}\n"
    "    - {name: t4, tanh: }\n"
    "    - {name: l5, linear: {out: 7}}\n"
    "    - {name: g5, gelu: {approximate: tanh}}\n"
    "    - linear: {out: 5}\n"
    "loss: cross_entropy\n";

static nn_exec_config_t config_of(bool unfused, bool training)
{
    return (nn_exec_config_t){.op_backend = "cpu",
                              .batch = BATCH,
                              .training = training,
                              .unfused = unfused,
                              .threads = 1};
}

static void open_fused(const nn_graph_t *graph, bool unfused, bool training,
                       fixture_t *f)
{
    const nn_exec_config_t config = config_of(unfused, training);

    fixture_open_as(f, graph, &config, 0);
}

static int layer_called(const nn_graph_t *graph, const char *name)
{
    for (int i = 0; i < nn_graph_layers(graph); i++)
        if (strcmp(nn_graph_layer(graph, i).name, name) == 0)
            return i;
    cr_assert_fail("no layer %s", name);
    return -1;
}

static void expect_joined(const fixture_t *f, const char *layer,
                          const char *with)
{
    const int found =
        nn_exec_layer_plan(f->exec, layer_called(f->graph, layer)).joined;

    cr_expect_eq(found, with == NULL ? -1 : layer_called(f->graph, with),
                 "%s is joined to layer %d", layer, found);
}

Test(fuse, what_goes_together_is_one_call)
{
    nn_graph_t *graph = fixture_graph(fused_model);
    fixture_t f;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    open_fused(graph, false, true, &f);
    expect_joined(&f, "n0", "r0");
    expect_joined(&f, "n1", "r1");
    expect_joined(&f, "a1", "r1");
    expect_joined(&f, "n2", NULL);
    expect_joined(&f, "n3", "r2");
    expect_joined(&f, "a2", "r2");
    expect_joined(&f, "n4", NULL);
    expect_joined(&f, "r3", NULL);
    expect_joined(&f, "a3", "r4");
    expect_joined(&f, "a4", "r5");
    expect_joined(&f, "n6", NULL);
    expect_joined(&f, "a5", "r7");
    expect_joined(&f, "n5", "r6");
    expect_joined(&f, "r6", NULL);
    cr_expect_eq(nn_exec_facts(f.exec).fused, 9);
    fixture_close(&f);
    open_fused(graph, true, true, &f);
    cr_expect_eq(nn_exec_facts(f.exec).fused, 0);
    fixture_close(&f);
    nn_graph_close(graph);
}

static void expect_rounded(const fixture_t *f, const char *layer, bool rounded)
{
    cr_expect_eq(
        nn_exec_layer_plan(f->exec, layer_called(f->graph, layer)).stored_as ==
            OP_BFLOAT16,
        rounded, "%s", layer);
}

Test(fuse, a_linear_takes_its_activation)
{
    nn_graph_t *graph = fixture_graph(token_model);
    nn_exec_config_t config = config_of(false, true);
    fixture_t f;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    open_fused(graph, false, true, &f);
    expect_joined(&f, "up", "g1");
    expect_joined(&f, "l2", "s2");
    expect_joined(&f, "l3", NULL);
    expect_joined(&f, "l4", NULL);
    expect_joined(&f, "l5", "g5");
    cr_expect_eq(nn_exec_facts(f.exec).fused, 3);
    cr_expect_eq(nn_exec_facts(f.exec).biases, 8);
    cr_expect_eq(nn_exec_facts(f.exec).bf16_output, 0);
    fixture_close(&f);
    config.compute_type = OP_BFLOAT16;
    if (fixture_has_bf16("cpu")) {
        fixture_open_as(&f, graph, &config, 0);
        expect_rounded(&f, "n0", false);
        expect_rounded(&f, "n1", true);
        expect_rounded(&f, "g1", true);
        expect_rounded(&f, "n2", true);
        expect_rounded(&f, "s2", true);
        expect_rounded(&f, "t4", false);
        expect_rounded(&f, "g5", true);
        cr_expect_eq(nn_exec_facts(f.exec).bf16_output, 5);
        fixture_close(&f);
    }
    nn_graph_close(graph);
}

/* Compare [model], run as [config] describes, with and without fusion. */
static void expect_same_bits(const char *model, nn_exec_config_t config)
{
    nn_graph_t *graph = fixture_graph(model);
    const size_t bytes = nn_graph_param_elems(graph) * sizeof(float);
    fixture_t fused, apart;

    fixture_open_as(&fused, graph, &config, 0);
    config.unfused = true;
    config.recompute = false;
    fixture_open_as(&apart, graph, &config, 0);
    cr_expect_eq(fixture_forward(&fused), fixture_forward(&apart));
    if (config.training) {
        fixture_backward(&fused, 1, false);
        fixture_backward(&apart, 1, false);
        fixture_forward(&fused);
        fixture_forward(&apart);
        fixture_backward(&fused, 0.5, true);
        fixture_backward(&apart, 0.5, true);
    }
    cr_expect_eq(memcmp(fused.bind.grads, apart.bind.grads, bytes), 0,
                 "training: %d, bf16: %d, recompute: %d", config.training,
                 config.compute_type == OP_BFLOAT16, config.recompute);
    cr_expect_eq(memcmp(fused.bind.moments, apart.bind.moments,
                        nn_graph_moment_elems(graph) * sizeof(double)),
                 0);
    fixture_close(&fused);
    fixture_close(&apart);
    nn_graph_close(graph);
}

/* In training, in training with recomputed blocks, and in evaluation.
 * Convolutions in bf16 are left out: unfused layers store rounded tensors
 * between them, a fused call does not. */
Test(fuse, fused_calls_change_no_bit)
{
    const char *const models[] = {fused_model, token_model};

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    for (int round = 0; round < 9; round++) {
        nn_exec_config_t config = config_of(false, round % 3 > 0);

        config.recompute = round % 3 == 2;
        config.compute_type = round >= 6 ? OP_BFLOAT16 : OP_FLOAT32;
        if (config.compute_type == OP_FLOAT32 || fixture_has_bf16("cpu"))
            expect_same_bits(models[round >= 3], config);
    }
}

/* A diverging run must be noticed: relu must not turn NaN into 0. */
Test(fuse, nan_passes_fused_calls)
{
    const char *const models[] = {fused_model, token_model};

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    for (int round = 0; round < 4; round++) {
        nn_graph_t *graph = fixture_graph(models[round / 2]);
        fixture_t f;

        open_fused(graph, false, round % 2, &f);
        ((float *)f.input)[7] = NAN;
        cr_expect(isnan(fixture_forward(&f)), "round %d", round);
        fixture_close(&f);
        nn_graph_close(graph);
    }
}
