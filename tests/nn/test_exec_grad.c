/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Whole graphs: gradients compared with finite differences, their sum over half
 * batches, several losses, and the cpu backend compared with ref. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/fixture.h"

#define BATCH 6

static const char *const mse_model = "model:\n"
                                     "  input: [2, 5, 5]\n"
                                     "  layers:\n"
                                     "    - conv: {out: 3, kernel: 3}\n"
                                     "    - batchnorm: {eps: 1.0e-3}\n"
                                     "    - relu\n"
                                     "loss: mse\n";

/* Derivative of the loss by parameter [p] along [direction], by central
 * differences. */
static double slope(fixture_t *f, const nn_param_t *p, const float *direction)
{
    const double h = 1e-4; /* small, because relu and maxpool have kinks */
    float *at = f->params + p->offset;
    double sums[2];
    float *saved = malloc(p->count * sizeof *saved);

    memcpy(saved, at, p->count * sizeof *saved);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < p->count; i++)
            at[i] = saved[i] + (float)(side == 0 ? -h : h) * direction[i];
        sums[side] = fixture_forward(f);
    }
    memcpy(at, saved, p->count * sizeof *saved);
    free(saved);
    return (sums[1] - sums[0]) / (2 * h);
}

/* Compare the gradient of every parameter with finite differences along a few
 * random directions. */
static void check_gradients(const char *yaml, const char *backend)
{
    nn_graph_t *graph = fixture_graph(yaml);
    fixture_t f;
    rng_t rng;

    fixture_open(&f, graph, backend, 0, BATCH, true);
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    rng_open(&rng, 4, RNG_ISING, 0, 0);
    for (int k = 0; k < 3 * nn_graph_params(graph); k++) {
        const nn_param_t *p = nn_graph_param(graph, k / 3);
        float *direction = malloc(p->count * sizeof *direction);
        double expected, found = 0, size = 0;

        for (size_t i = 0; i < p->count; i++) {
            float g = f.bind.grads[p->offset + i];

            direction[i] = (float)rng_normal(&rng);
            found += (double)g * (double)direction[i];
            size += (double)g * (double)g;
        }
        expected = slope(&f, p, direction);
        /* The gradient of a bias before batch norm is 0 up to rounding, hence
         * the constant in the tolerance. */
        cr_expect_leq(fabs(found - expected), 0.02 * sqrt(size) + 0.01,
                      "%s: %g by differences, %g by backward", p->name,
                      expected, found);
        free(direction);
    }
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec_grad, ref_gradients_of_an_mlp_match_finite_differences)
{
    check_gradients(fixture_mlp, "ref");
}

Test(exec_grad, ref_gradients_of_a_cnn_match_finite_differences)
{
    check_gradients(fixture_cnn, "ref");
}

Test(exec_grad, ref_gradients_of_a_branching_graph_match_finite_differences)
{
    check_gradients(fixture_graph_model, "ref");
}

Test(exec_grad, ref_gradients_of_activations_and_norms_match_finite_differences)
{
    check_gradients(fixture_smooth, "ref");
}

Test(exec_grad, ref_gradients_of_tied_embeddings_match_finite_differences)
{
    check_gradients(fixture_tokens, "ref");
}

Test(exec_grad, ref_gradients_of_mse_match_finite_differences)
{
    check_gradients(mse_model, "ref");
}

static const char *const tokens_model =
    "model:\n"
    "  input: [4, 5]\n"
    "  layers:\n"
    "    - linear: {out: 7, flatten: false}\n"
    "    - tanh\n"
    "    - linear: {out: 3, flatten: false}\n"
    "loss: {cross_entropy: {label_smoothing: 0.1, weight: [1, 2, 0.5], "
    "ignore_index: 0}}\n";

static const char *const pixels_model =
    "model:\n"
    "  input: [2, 5, 4]\n"
    "  layers:\n"
    "    - conv: {out: 3, kernel: 3, pad: 1}\n"
    "loss: cross_entropy\n";

Test(exec_grad, ref_gradients_of_a_class_for_each_position_match_differences)
{
    check_gradients(tokens_model, "ref");
    check_gradients(pixels_model, "ref");
}

Test(exec_grad, what_counts_is_weighed)
{
    nn_graph_t *graph = fixture_graph(tokens_model);
    nn_graph_t *pixels = fixture_graph(pixels_model);
    const int64_t labels[] = {0, 1, 2, 0, 2, 2, 1, 0};
    nn_weight_t weight = nn_loss_weigh(graph, 0, labels, 2);
    nn_result_t result = {0};
    fixture_t f;

    cr_expect(nn_graph_weighs(graph));
    cr_expect_eq(weight.counted, 5);
    cr_expect_eq(weight.denominator, 2 * 2 + 3 * 0.5);
    cr_expect_eq(nn_graph_loss_info(graph, 0).class_axis, 2);
    cr_expect(nn_graph_loss_info(graph, 0).ignore);
    cr_expect_eq(nn_graph_loss_info(graph, 0).ignored, 0);
    fixture_open(&f, graph, "cpu", 0, 2, false);
    f.batch.target = labels;
    cr_assert_eq(fixture_forward_losses(&f, &result, NULL), ERR_OK);
    cr_expect_eq(nn_batch_weigh(graph, 0, &f.batch, f.samples).counted, 5);
    cr_expect_eq(nn_batch_weigh(graph, 0, &f.batch, f.samples).denominator,
                 weight.denominator);
    cr_expect_leq(result.correct, 5);
    fixture_close(&f);
    cr_expect_not(nn_graph_weighs(pixels));
    cr_expect_eq(nn_graph_loss_info(pixels, 0).elems, 20);
    cr_expect_eq(nn_graph_loss_info(pixels, 0).classes, 3);
    cr_expect_eq(nn_graph_loss_info(pixels, 0).class_axis, 1);
    cr_expect_eq(nn_loss_weigh(pixels, 0, NULL, 3).counted, 60);
    cr_expect_eq(nn_loss_denominator(pixels, 0, 3), 60);
    nn_graph_close(graph);
    nn_graph_close(pixels);
}

/* A model without batch norm: samples are independent of each other. */
static const char *const plain_cnn = "model:\n"
                                     "  input: [2, 8, 8]\n"
                                     "  layers:\n"
                                     "    - conv: {out: 6, kernel: 3}\n"
                                     "    - relu\n"
                                     "    - dropout\n"
                                     "    - linear: {out: 3}\n"
                                     "loss: cross_entropy\n";

Test(exec_grad, two_half_batches_accumulate_to_a_full_one)
{
    nn_graph_t *graph = fixture_graph(plain_cnn);
    const size_t elems = nn_graph_param_elems(graph);
    fixture_t full, first, second;
    double sum;

    fixture_open(&full, graph, "ref", 0, 2 * BATCH, true);
    fixture_open(&first, graph, "ref", 0, BATCH, true);
    fixture_open(&second, graph, "ref", BATCH, BATCH, true);
    /* Both halves write to one gradient arena. */
    mem_free(second.bind.grads);
    second.bind.grads = first.bind.grads;
    nn_exec_bind(second.exec, &second.bind);
    sum = fixture_forward(&first);
    fixture_backward(&first, 0.5, false);
    sum += fixture_forward(&second);
    fixture_backward(&second, 0.5, true);
    cr_expect_float_eq(fixture_forward(&full), sum, 1e-5 * sum);
    fixture_backward(&full, 0.5, false);
    cr_expect_lt(fixture_distance(full.bind.grads, first.bind.grads, elems),
                 1e-5 * fixture_largest(full.bind.grads, elems));
    second.bind.grads = NULL;
    fixture_close(&full);
    fixture_close(&first);
    fixture_close(&second);
    nn_graph_close(graph);
}

/* ---- cpu against ref ----------------------------------------------------- */

static void compare_backends(const char *yaml)
{
    nn_graph_t *graph = fixture_graph(yaml);
    const size_t elems = nn_graph_param_elems(graph);
    const size_t outs =
        (size_t)(BATCH *
                 nn_sample_elems(&graph->layers[graph->layer_count].config.in));
    float *out[2] = {malloc(outs * sizeof(float)),
                     malloc(outs * sizeof(float))};
    fixture_t f[2];
    double loss[2];
    err_t err = ERR_INIT;

    for (int b = 0; b < 2; b++) {
        fixture_open(&f[b], graph, b == 0 ? "ref" : "cpu", 0, BATCH, true);
        loss[b] = fixture_forward(&f[b]);
        cr_assert_eq(nn_exec_output(f[b].exec, 0, out[b], &err), ERR_OK);
        fixture_backward(&f[b], 1, false);
    }
    cr_expect_float_eq(loss[0], loss[1], 1e-5 * fabs(loss[0]));
    cr_expect_lt(fixture_distance(out[0], out[1], outs),
                 1e-5 * fixture_largest(out[0], outs));
    cr_expect_lt(fixture_distance(f[0].bind.grads, f[1].bind.grads, elems),
                 1e-4 * fixture_largest(f[0].bind.grads, elems));
    for (size_t i = 0; i < nn_graph_moment_elems(graph); i++)
        cr_expect_float_eq(f[0].bind.moments[i], f[1].bind.moments[i],
                           1e-4 * (1 + fabs(f[0].bind.moments[i])));
    for (int b = 0; b < 2; b++) {
        fixture_close(&f[b]);
        free(out[b]);
    }
    nn_graph_close(graph);
}

Test(exec_grad, cpu_agrees_with_ref)
{
    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    compare_backends(fixture_mlp);
    compare_backends(fixture_cnn);
    compare_backends(fixture_graph_model);
    compare_backends(fixture_smooth);
    compare_backends(fixture_tokens);
    compare_backends(plain_cnn);
    compare_backends(mse_model);
}

/* Losses whose target has the shape of the output. The targets here are any
 * real numbers; kl takes them as logarithms. */
Test(exec_grad, ref_gradients_of_other_losses_match_finite_differences)
{
    static const char *const losses[] = {"mae", "{huber: {delta: 0.3}}", "bce",
                                         "{kl: {log_target: true}}",
                                         ("{cross_entropy: {soft_target: true, "
                                          "weight: [1, 2, 0.5]}}")};
    char text[256];

    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        snprintf(text, sizeof text,
                 "model:\n  input: [5]\n  layers:\n"
                 "    - linear: {out: 4}\n    - tanh\n    - linear: {out: 3}\n"
                 "loss: %s\n",
                 losses[i]);
        check_gradients(text, "ref");
        compare_backends(text);
    }
}

/* The mean is over positions. Neither the probabilities of a target nor the
 * class weights change its denominator. */
Test(exec_grad, a_target_may_be_probabilities_of_classes)
{
    static const char model[] =
        "model:\n  input: [2, 4, 5]\n"
        "  layers: [{conv: {out: 3, kernel: 1}}]\n"
        "loss:\n  - {cross_entropy: {soft_target: true, weight: [1, 2, 3]}, "
        "target: p}\n"
        "  - {mse: , target: p, name: q}\n"
        "  - {cross_entropy: , target: p, name: r}\n"
        "  - {cross_entropy: {soft_target: true}, target: p, name: s, "
        "sample_weight: w}\n";
    nn_graph_t *graph = fixture_graph(model);
    const nn_loss_info_t info = nn_graph_loss_info(graph, 0);
    const float weights[] = {2, 0, 1};
    nn_batch_t batch = {.targets = {NULL}};

    check_gradients(model, "ref");
    compare_backends(model);
    cr_assert_eq(nn_graph_targets(graph), 3, "mse reads what the first reads");
    cr_expect_eq(nn_graph_target_info(graph, 0).classes, 0);
    cr_expect_eq(nn_graph_target_info(graph, 0).elems, 60);
    cr_expect_eq(nn_graph_target_info(graph, 0).bytes, 60 * sizeof(float));
    cr_expect_eq(nn_graph_target_info(graph, 1).classes, 3);
    cr_expect(info.soft && info.shares && !info.plain && !info.weighs);
    cr_expect_eq(info.classes, 3);
    cr_expect_eq(info.elems, 60);
    cr_expect_eq(info.terms, 20);
    cr_expect_eq(nn_loss_denominator(graph, 0, 3), 60);
    cr_expect_eq(nn_loss_weigh(graph, 0, NULL, 3).counted, 60);
    batch.targets[2] = weights;
    cr_expect_eq(nn_batch_weigh(graph, 3, &batch, 3).denominator, 3 * 20);
    cr_expect_eq(nn_batch_weigh(graph, 3, &batch, 3).counted, 60);
    nn_graph_close(graph);
}

/* Inputs are tokens and numbers, targets are classes and numbers. Two losses
 * and a layer read one tensor, and two losses share one target. */
static const char *const several_model =
    "model:\n"
    "  input: {words: [6], image: [2, 5, 4]}\n"
    "  layers:\n"
    "    - {conv: {out: 3, kernel: 3, pad: 1}, from: image}\n"
    "    - tanh\n"
    "    - {name: seen, flatten: }\n"
    "    - {embedding: {vocabulary: 7, out: 4}, from: words}\n"
    "    - {name: read, flatten: }\n"
    "    - {concat: , from: [read, seen]}\n"
    "    - {name: both, linear: {out: 3}}\n"
    "    - {tanh: , from: both}\n"
    "    - {name: far, linear: {out: 2}}\n"
    "loss:\n"
    "  - {mse: , from: both, target: place}\n"
    "  - {cross_entropy: , from: far, target: kind, weight: 0.3}\n"
    "  - {huber: {delta: 0.5}, from: both, target: place, name: near}\n";

Test(exec_grad, several_inputs_and_losses)
{
    nn_graph_t *graph = fixture_graph(several_model);

    check_gradients(several_model, "ref");
    compare_backends(several_model);
    cr_expect_eq(nn_graph_inputs(graph), 2);
    cr_expect_eq(nn_graph_input_info(graph, 0).tokens, 7);
    cr_expect_eq(nn_graph_input_info(graph, 1).tokens, 0);
    cr_expect_eq(nn_graph_losses(graph), 3);
    cr_expect_eq(nn_graph_targets(graph), 2);
    cr_expect_eq(nn_graph_loss_info(graph, 2).target, 0);
    cr_expect_str_eq(nn_graph_loss_info(graph, 2).name, "near");
    cr_expect_eq(nn_graph_target_info(graph, 1).bytes, sizeof(int64_t));
    nn_graph_close(graph);
}

static const char one_target_model[] =
    "model:\n"
    "  input: [3]\n"
    "  layers:\n"
    "    - {name: both, linear: {out: 4}}\n"
    "    - {name: one, linear: {out: 1}, from: both}\n"
    "loss:\n"
    "  - {cross_entropy: , from: both, target: y, sample_weight: w}\n"
    "  - {mse: , from: one, target: y, name: far, sample_weight: w}\n"
    "  - {mae: , from: one, target: y, name: near}\n"
    "  - {cross_entropy: {ignore_index: 9}, from: both, target: y, name: more}"
    "\n";

/* One target is read as class numbers, as real numbers, and as class numbers
 * with an ignored one. */
Test(exec_grad, losses_take_one_target_in_several_ways)
{
    nn_graph_t *graph = fixture_graph(one_target_model);

    check_gradients(one_target_model, "ref");
    compare_backends(one_target_model);
    cr_assert_eq(nn_graph_targets(graph), 4);
    for (int k = 0; k < 4; k++) {
        const nn_target_info_t target = nn_graph_target_info(graph, k);

        cr_expect_str_eq(target.name, k == 1 ? "w" : "y");
        cr_expect_eq(target.weights, k == 1);
        cr_expect_eq(target.classes, k == 0 || k == 3 ? 4 : 0);
        cr_expect_eq(target.elems, 1);
        cr_expect_eq(target.ignore, k == 3);
    }
    cr_expect_eq(nn_graph_loss_info(graph, 2).target, 2);
    cr_expect_eq(nn_graph_loss_info(graph, 0).sample_weight, 1);
    cr_expect_eq(nn_graph_loss_info(graph, 2).sample_weight, -1);
    nn_graph_close(graph);
}

/* It is left out even if its targets are NaN. */
Test(exec_grad, a_loss_of_scale_0_is_left_out)
{
    const double scales[] = {0, 1, 0}, alone[] = {1, 1, 1};
    nn_graph_t *graph = fixture_graph(several_model);
    const size_t elems = nn_graph_param_elems(graph);
    nn_result_t results[3];
    fixture_t f, g;

    fixture_open(&f, graph, "cpu", 0, BATCH, true);
    fixture_open(&g, graph, "cpu", 0, BATCH, true);
    ((float *)f.targets[0])[2] = NAN;
    cr_assert_eq(fixture_forward_losses(&f, results, NULL), ERR_OK);
    cr_expect(isnan(results[0].loss_sum) && isnan(results[2].loss_sum));
    cr_expect(isfinite(results[1].loss_sum));
    cr_assert_eq(fixture_backward_losses(&f, scales, false, NULL), ERR_OK);
    cr_assert_eq(fixture_forward_losses(&g, results, NULL), ERR_OK);
    cr_assert_eq(fixture_backward_losses(&g, scales, false, NULL), ERR_OK);
    cr_expect_gt(fixture_largest(f.bind.grads, elems), 0);
    cr_expect_eq(fixture_distance(f.bind.grads, g.bind.grads, elems), 0);
    cr_assert_eq(fixture_backward_losses(&g, alone, false, NULL), ERR_OK);
    cr_expect_gt(fixture_distance(f.bind.grads, g.bind.grads, elems), 0);
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(graph);
}
