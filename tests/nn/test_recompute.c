/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Recomputing blocks of layers gives equal bits in less memory. Random graphs
 * are in test_plan.c; that a step allocates nothing is in test_exec_alloc.c. */
#include <criterion/criterion.h>
#include <string.h>

#include "nn/cost.h"
#include "nn/fixture.h"

#define BATCH 4

static const char *const presets[] = {
    "model: {preset: mlp, input: [20], hidden: [40, 40, 40, 40, 40, 40], "
    "classes: 7}\n"
    "loss: cross_entropy\n",
    "model: {preset: resnet18, input: [3, 16, 16], classes: 5, width: 16}\n"
    "loss: cross_entropy\n",
    "model: {preset: gpt2, input: [16], vocabulary: 31, width: 32, depth: 8, "
    "heads: 2, dropout: 0.1}\n"
    "loss: cross_entropy\n",
    "model: {preset: lstm, input: [12], vocabulary: 31, out: 31, width: 16, "
    "depth: 3}\n"
    "loss: cross_entropy\n",
    "model: {preset: vit, input: [3, 16, 16], classes: 5, patch: 4, width: 32, "
    "depth: 6, heads: 2, dropout: 0.1}\n"
    "loss: cross_entropy\n"};

/* One loss reads an early layer, and one input is read by a late layer. */
static const char several[] =
    "model:\n"
    "  input: {x: [40], words: [6]}\n"
    "  layers:\n"
    "    - {linear: {out: 60}, from: x}\n"
    "    - {name: start, tanh: }\n"
    "    - {name: early, linear: {out: 7}}\n"
    "    - {dropout: {rate: 0.1}, from: start}\n"
    "    - repeat: {times: 8, layers: [{linear: {out: 60}}, tanh]}\n"
    "    - {name: deep, linear: {out: 24}}\n"
    "    - {embedding: {vocabulary: 9, out: 4}, from: words}\n"
    "    - {name: read, flatten: }\n"
    "    - {name: both, add: , from: [deep, read]}\n"
    "loss:\n"
    "  - {cross_entropy: , from: early, target: kind}\n"
    "  - {mse: , from: both, target: place, weight: 0.25}\n";

static void open_both(const nn_graph_t *graph, int threads, fixture_t *plain,
                      fixture_t *blocks)
{
    nn_exec_config_t config = {.op_backend = "cpu",
                               .batch = BATCH,
                               .training = true,
                               .threads = threads};

    fixture_open_as(plain, graph, &config, 0);
    config.recompute = true;
    fixture_open_as(blocks, graph, &config, 0);
}

static void close_both(fixture_t *plain, fixture_t *blocks)
{
    fixture_close(plain);
    fixture_close(blocks);
}

static void step(fixture_t *f, bool accumulate, double *loss)
{
    *loss = fixture_forward(f);
    fixture_backward(f, 1.0 / BATCH, accumulate);
}

/* Compare two micro-batches whose gradients are added. */
static void expect_same_bits(const char *yaml, int threads)
{
    nn_graph_t *graph = fixture_graph(yaml);
    const size_t bytes = nn_graph_param_elems(graph) * sizeof(float);
    fixture_t plain, blocks;

    open_both(graph, threads, &plain, &blocks);
    cr_expect_gt(nn_exec_facts(blocks.exec).recomputed, 0, "%s", yaml);
    cr_expect_lt(nn_exec_activation_bytes(blocks.exec),
                 nn_exec_activation_bytes(plain.exec), "%s", yaml);
    for (int micro = 0; micro < 2; micro++) {
        double losses[2];

        step(&plain, micro > 0, &losses[0]);
        step(&blocks, micro > 0, &losses[1]);
        cr_expect_eq(losses[0], losses[1], "%s", yaml);
        cr_expect_gt(fixture_largest(plain.bind.grads, bytes / sizeof(float)),
                     0);
        cr_expect_eq(memcmp(plain.bind.grads, blocks.bind.grads, bytes), 0,
                     "%s, micro-batch %d", yaml, micro);
    }
    /* The moments count each batch once, although layers run twice. */
    cr_expect_eq(memcmp(plain.bind.moments, blocks.bind.moments,
                        nn_graph_moment_elems(graph) * sizeof(double)),
                 0, "%s", yaml);
    close_both(&plain, &blocks);
    nn_graph_close(graph);
}

Test(recompute, presets_have_the_same_bits)
{
    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        for (int threads = 1; threads <= 2; threads++)
            expect_same_bits(presets[i], threads);
}

static void expect_same_outputs(const fixture_t *plain, const fixture_t *blocks)
{
    for (int k = 0; k < nn_graph_losses(plain->graph); k++) {
        float a[BATCH * 24], b[BATCH * 24];
        const size_t bytes =
            BATCH * sizeof *a *
            (size_t)nn_graph_loss_info(plain->graph, k).dims[0];

        cr_assert_eq(nn_exec_output(plain->exec, k, a, NULL), ERR_OK);
        cr_assert_eq(nn_exec_output(blocks->exec, k, b, NULL), ERR_OK);
        cr_expect_eq(memcmp(a, b, bytes), 0, "output %d", k);
    }
}

Test(recompute, losses_may_read_early_layers)
{
    nn_graph_t *graph;
    fixture_t plain, blocks;
    double loss;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    expect_same_bits(several, 1);
    graph = fixture_graph(several);
    open_both(graph, 1, &plain, &blocks);
    step(&plain, false, &loss);
    step(&blocks, false, &loss);
    /* Outputs can still be read after backward. */
    expect_same_outputs(&plain, &blocks);
    close_both(&plain, &blocks);
    nn_graph_close(graph);
}

Test(recompute, gpt2_with_8_blocks_needs_less_than_half)
{
    nn_graph_t *graph = fixture_graph(
        "model: {preset: gpt2, input: [64], vocabulary: 50, width: 64, "
        "depth: 8, heads: 2}\n"
        "loss: cross_entropy\n");
    nn_cost_t cost;
    nn_plan_facts_t facts;
    fixture_t plain, blocks;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    open_both(graph, 1, &plain, &blocks);
    cr_expect_lt(2 * nn_exec_activation_bytes(blocks.exec),
                 nn_exec_activation_bytes(plain.exec), "%zu and %zu bytes",
                 nn_exec_activation_bytes(blocks.exec),
                 nn_exec_activation_bytes(plain.exec));
    facts = nn_exec_facts(blocks.exec);
    cr_expect_geq(facts.recomputed_blocks, 7);
    cost = nn_exec_cost(blocks.exec, 1, 1);
    cr_expect_gt(cost.again_flops, 0.5 * cost.forward_flops);
    cr_expect_lt(cost.again_flops, cost.forward_flops);
    cost = nn_exec_cost(plain.exec, 1, 1);
    cr_expect_eq(cost.again_flops, 0);
    cr_expect_eq(nn_exec_facts(plain.exec).recomputed_blocks, 0);
    close_both(&plain, &blocks);
    nn_graph_close(graph);
}

/* A chain without branches is cut into about as many blocks as the square root
 * of its length. */
Test(recompute, a_chain_is_cut_into_about_equal_blocks)
{
    nn_graph_t *graph =
        fixture_graph("model:\n"
                      "  input: [32]\n"
                      "  layers:\n"
                      "    - repeat: {times: 25, layers: [linear: {out: 32}, "
                      "sigmoid]}\n"
                      "    - linear: {out: 3}\n"
                      "loss: cross_entropy\n");
    nn_exec_config_t config = {.op_backend = "ref",
                               .batch = 64,
                               .training = true,
                               .threads = 1,
                               .recompute = true};
    fixture_t f;
    int blocks;

    fixture_open_as(&f, graph, &config, 0);
    blocks = nn_exec_facts(f.exec).recomputed_blocks;
    cr_expect(blocks >= 3 && blocks <= 12, "%d blocks", blocks);
    fixture_close(&f);
    nn_graph_close(graph);
}

/* Counts the exchanges of sums between ranks; a recomputed layer must not
 * exchange them again. */
static err_code_t count_sums(void *context, double *sums, size_t count,
                             err_t *err)
{
    (void)sums;
    (void)count;
    (void)err;
    ++*(int *)context;
    return ERR_OK;
}

Test(recompute, syncbatchnorm_meets_other_ranks_once)
{
    nn_graph_t *graph = fixture_graph(
        "model:\n"
        "  input: [2, 8, 8]\n"
        "  layers:\n"
        "    - repeat: {times: 8, layers: [conv: {out: 8, kernel: 3, pad: 1}, "
        "syncbatchnorm, relu]}\n"
        "    - linear: {out: 3}\n"
        "loss: cross_entropy\n");
    fixture_t plain, blocks;
    int calls[2] = {0};
    double loss;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    open_both(graph, 1, &plain, &blocks);
    cr_expect_gt(nn_exec_facts(blocks.exec).recomputed, 0);
    plain.bind.reduce_small = blocks.bind.reduce_small = count_sums;
    plain.bind.context = &calls[0];
    blocks.bind.context = &calls[1];
    nn_exec_bind(plain.exec, &plain.bind);
    nn_exec_bind(blocks.exec, &blocks.bind);
    step(&plain, false, &loss);
    step(&blocks, false, &loss);
    cr_expect_eq(calls[0], 2 * nn_graph_syncs(graph));
    cr_expect_eq(calls[1], calls[0]);
    cr_expect_eq(fixture_distance(plain.bind.grads, blocks.bind.grads,
                                  nn_graph_param_elems(graph)),
                 0);
    close_both(&plain, &blocks);
    nn_graph_close(graph);
}
