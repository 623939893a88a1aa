/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Whole graphs: gradients by finite differences, accumulation, order of
 * grad_ready, and the cpu backend against ref. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
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

/* Derivative of the loss along [direction] of the parameter [p], by central
 * differences. */
static double slope(fixture_t *f, const nn_param_t *p, const float *direction)
{
    const double h = 1e-4; /* small: relu and maxpool have kinks */
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

/* Compare the gradient of every parameter along a few random directions. */
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
        /* A bias before batch norm has no gradient: hence the constant. */
        cr_expect_leq(fabs(found - expected), 0.02 * sqrt(size) + 0.01,
                      "%s: %g by differences, %g by backward", p->name,
                      expected, found);
        free(direction);
    }
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec, ref_gradients_of_an_mlp_match_finite_differences)
{
    check_gradients(fixture_mlp, "ref");
}

Test(exec, ref_gradients_of_a_cnn_match_finite_differences)
{
    check_gradients(fixture_cnn, "ref");
}

Test(exec, ref_gradients_of_a_branching_graph_match_finite_differences)
{
    check_gradients(fixture_graph_model, "ref");
}

Test(exec, ref_gradients_of_activations_and_norms_match_finite_differences)
{
    check_gradients(fixture_smooth, "ref");
}

Test(exec, ref_gradients_of_tied_embeddings_match_finite_differences)
{
    check_gradients(fixture_tokens, "ref");
}

Test(exec, ref_gradients_of_mse_match_finite_differences)
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

Test(exec, ref_gradients_of_a_class_for_each_position_match_differences)
{
    check_gradients(tokens_model, "ref");
    check_gradients(pixels_model, "ref");
}

Test(exec, what_counts_is_weighed)
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
    cr_assert_eq(nn_exec_forward(f.exec, &f.batch, &result, NULL), ERR_OK);
    cr_expect_eq(result.weight.counted, 5);
    cr_expect_eq(result.weight.denominator, weight.denominator);
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

Test(exec, gradients_are_scaled)
{
    nn_graph_t *graph = fixture_graph(fixture_mlp);
    const size_t elems = nn_graph_param_elems(graph);
    fixture_t f, g;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    fixture_open(&g, graph, "ref", 0, BATCH, true);
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    fixture_forward(&g);
    fixture_backward(&g, 0.25, false);
    for (size_t i = 0; i < elems; i++)
        g.bind.grads[i] *= 4;
    cr_expect_lt(fixture_distance(f.bind.grads, g.bind.grads, elems),
                 1e-6 * fixture_largest(f.bind.grads, elems));
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(graph);
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

Test(exec, two_half_batches_accumulate_to_a_full_one)
{
    nn_graph_t *graph = fixture_graph(plain_cnn);
    const size_t elems = nn_graph_param_elems(graph);
    fixture_t full, first, second;
    double sum;

    fixture_open(&full, graph, "ref", 0, 2 * BATCH, true);
    fixture_open(&first, graph, "ref", 0, BATCH, true);
    fixture_open(&second, graph, "ref", BATCH, BATCH, true);
    /* Both halves write into one gradient arena. */
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

Test(exec, overwriting_forgets_what_was_in_the_gradients)
{
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    const size_t elems = nn_graph_param_elems(graph);
    fixture_t f, g;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    fixture_open(&g, graph, "ref", 0, BATCH, true);
    for (int i = 0; i < nn_graph_params(graph); i++)
        for (size_t k = 0; k < nn_graph_param(graph, i)->count; k++)
            f.bind.grads[nn_graph_param(graph, i)->offset + k] = 7;
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    fixture_forward(&g);
    fixture_backward(&g, 1, false);
    cr_expect_eq(fixture_distance(f.bind.grads, g.bind.grads, elems), 0);
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(graph);
}

typedef struct order {
    int next, fail_at;
    const float *grads;
    const nn_graph_t *graph;
} order_t;

static err_code_t record_ready(void *context, int index, err_t *err)
{
    order_t *order = context;
    const nn_param_t *p = nn_graph_param(order->graph, index);

    cr_expect_eq(index, order->next);
    /* Final: it is written. */
    cr_expect_gt(fixture_largest(order->grads + p->offset, p->count), 0,
                 "%s has no gradient", p->name);
    order->next++;
    if (index == order->fail_at)
        return err_set(err, ERR_PEER, "a test's error");
    return ERR_OK;
}

static void check_order(const char *yaml)
{
    nn_graph_t *graph = fixture_graph(yaml);
    order_t order = {.graph = graph, .fail_at = -1};
    const double one = 1;
    fixture_t f;
    err_t err = ERR_INIT;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    order.grads = f.bind.grads;
    f.bind.grad_ready = record_ready;
    f.bind.context = &order;
    nn_exec_bind(f.exec, &f.bind);
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    cr_expect_eq(order.next, nn_graph_params(graph));
    order.next = 0;
    order.fail_at = 2;
    cr_expect_eq(nn_exec_backward(f.exec, &f.batch, &one, true, &err),
                 ERR_PEER);
    cr_expect_eq(order.next, 3);
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec, gradients_are_ready_in_order_of_the_arena)
{
    check_order(fixture_cnn);
    check_order(fixture_graph_model);
}

/* One layer three times in a row is the same as the layer three times with
 * equal weights, and its gradient is the sum of theirs. */
Test(exec, gradients_of_shared_weights_are_added)
{
    nn_graph_t *shared =
        fixture_graph("model: {input: [4], layers: [linear: {out: 4}, relu,"
                      "{linear: {out: 4}, share: linear1},"
                      "{linear: {out: 4}, share: linear2}]}\n"
                      "loss: mse\n");
    nn_graph_t *apart =
        fixture_graph("model: {input: [4], layers: [linear: {out: 4}, relu,"
                      "linear: {out: 4}, linear: {out: 4}]}\n"
                      "loss: mse\n");
    const size_t elems = nn_graph_param_elems(shared);
    fixture_t f, g;

    cr_expect_eq(nn_graph_params(shared), 2);
    cr_expect_eq(nn_graph_param_elems(apart), 3 * elems);
    fixture_open(&f, shared, "ref", 0, BATCH, true);
    fixture_open(&g, apart, "ref", 0, BATCH, true);
    for (int i = 0; i < 3; i++)
        memcpy(g.params + (size_t)i * elems, f.params, elems * sizeof(float));
    cr_expect_eq(fixture_forward(&f), fixture_forward(&g));
    fixture_backward(&f, 1, false);
    fixture_backward(&g, 1, false);
    for (size_t i = 0; i < elems; i++) {
        float sum = g.bind.grads[i] + g.bind.grads[elems + i] +
                    g.bind.grads[2 * elems + i];

        cr_expect_float_eq((double)f.bind.grads[i], (double)sum, 1e-5);
    }
    /* Once more on top. */
    fixture_forward(&f);
    fixture_backward(&f, 1, true);
    for (size_t i = 0; i < elems; i++)
        cr_expect_float_eq((double)f.bind.grads[i],
                           2 * ((double)g.bind.grads[i] +
                                (double)g.bind.grads[elems + i] +
                                (double)g.bind.grads[2 * elems + i]),
                           1e-5);
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(shared);
    nn_graph_close(apart);
}

/* The head writes the gradient of the shared table, the embedding adds to it;
 * a second backward adds all once more. */
Test(exec, a_tied_table_gets_the_gradients_of_all_its_users)
{
    nn_graph_t *graph = fixture_graph(
        "model: {preset: gpt2, input: [6], vocabulary: 9, width: 8, depth: 1, "
        "heads: 2}\nloss: cross_entropy\n");
    const size_t elems = nn_graph_param_elems(graph);
    fixture_t f, g;

    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    fixture_open(&f, graph, "ref", 0, BATCH, true);
    fixture_open(&g, graph, "cpu", 0, BATCH, true);
    for (int times = 1; times <= 2; times++) {
        fixture_forward(&f);
        fixture_forward(&g);
        fixture_backward(&f, 1, times > 1);
        fixture_backward(&g, 1, times > 1);
        cr_expect_lt(fixture_distance(f.bind.grads, g.bind.grads, elems),
                     1e-5 * fixture_largest(f.bind.grads, elems));
    }
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(graph);
}

Test(exec, moments_are_added_and_dropout_rests_in_evaluation)
{
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    fixture_t f, e, again;
    double first;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    fixture_forward(&f);
    first = f.bind.moments[6];
    cr_expect_gt(first, 0);
    fixture_forward(&f);
    cr_expect_float_eq(f.bind.moments[6], 2 * first, 1e-12 * first);
    /* Evaluation: the same whatever the epoch, no moments. */
    fixture_open(&e, graph, "ref", 0, BATCH, false);
    fixture_open(&again, graph, "ref", 0, BATCH, false);
    again.batch.epoch = 9;
    cr_expect_eq(fixture_forward(&e), fixture_forward(&again));
    cr_expect_eq(e.bind.moments[6], 0);
    fixture_close(&f);
    fixture_close(&e);
    fixture_close(&again);
    nn_graph_close(graph);
}

Test(exec, moments_of_each_layer_have_their_place)
{
    nn_graph_t *graph =
        fixture_graph("model: {input: [3, 2], layers: [batchnorm: {eps: 1e-9},"
                      " batchnorm, linear: {out: 2}]}\n"
                      "loss: mse\n");
    const double count = BATCH * 2;
    double sums[6] = {0};
    fixture_t f;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    fixture_forward(&f);
    for (int n = 0; n < BATCH; n++)
        for (int i = 0; i < 6; i++) {
            double x = (double)((float *)f.input)[n * 6 + i];

            sums[i / 2] += x;
            sums[3 + i / 2] += x * x;
        }
    for (int i = 0; i < 6; i++)
        cr_expect_float_eq(f.bind.moments[i], sums[i], 1e-5);
    /* The second one sees mean 0 and variance 1. */
    for (int c = 0; c < 3; c++) {
        cr_expect_float_eq(f.bind.moments[6 + c], 0, 1e-4);
        cr_expect_float_eq(f.bind.moments[9 + c], count, 1e-3);
    }
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec, every_dropout_has_its_own_mask)
{
    nn_graph_t *graph =
        fixture_graph("model: {input: [3], layers: [linear: {out: 500},"
                      " dropout, dropout]}\n"
                      "loss: mse\n");
    float out[BATCH * 500];
    int zeros = 0;
    err_t err = ERR_INIT;
    fixture_t f;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    fixture_forward(&f);
    cr_assert_eq(nn_exec_output(f.exec, 0, out, &err), ERR_OK);
    for (int i = 0; i < BATCH * 500; i++)
        zeros += out[i] == 0;
    /* Three quarters, within five standard deviations. */
    cr_expect_float_eq(zeros, 2250, 5 * 24, "%d", zeros);
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec, output_is_what_the_loss_sees_and_outlives_backward)
{
    nn_graph_t *graph = fixture_graph(fixture_mlp);
    fixture_t f;
    float out[BATCH * 4], after[BATCH * 4];
    double loss, expected = 0;
    err_t err = ERR_INIT;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    loss = fixture_forward(&f);
    cr_assert_eq(nn_exec_output(f.exec, 0, out, &err), ERR_OK);
    for (int n = 0; n < BATCH; n++) {
        double sum = 0;

        for (int k = 0; k < 4; k++)
            sum += exp((double)out[4 * n + k]);
        expected +=
            log(sum) - (double)out[4 * n + ((const int64_t *)f.target)[n]];
    }
    cr_expect_float_eq(loss, expected, 1e-5 * expected);
    fixture_backward(&f, 1, false);
    cr_assert_eq(nn_exec_output(f.exec, 0, after, &err), ERR_OK);
    cr_expect_arr_eq(out, after, sizeof out);
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec, a_target_that_is_no_class_is_an_error_that_names_it)
{
    nn_graph_t *graph = fixture_graph(fixture_mlp);
    nn_result_t result = {.correct = -5};
    err_t err = ERR_INIT;
    fixture_t f;

    fixture_open(&f, graph, "ref", 0, BATCH, true);
    ((int64_t *)f.target)[3] = 4;
    cr_expect_eq(nn_exec_forward(f.exec, &f.batch, &result, &err), ERR_DATA);
    cr_expect_eq(result.correct, -5);
    cr_expect_not_null(strstr(err.text, "4"), "%s", err.text);
    fixture_close(&f);
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

Test(exec, cpu_agrees_with_ref)
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

/* Losses of a target of the output's shape. */
Test(exec, ref_gradients_of_other_losses_match_finite_differences)
{
    static const char *const losses[] = {"mae", "{huber: {delta: 0.3}}", "bce",
                                         "kl"};
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

/* Tokens and numbers in; classes and numbers out; a tensor that two losses and
 * a layer read, and losses that read one target together. */
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

Test(exec, several_inputs_and_losses)
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

/* Even of targets that are no numbers. */
Test(exec, a_loss_of_scale_0_is_left_out)
{
    const double scales[] = {0, 1, 0}, alone[] = {1, 1, 1};
    nn_graph_t *graph = fixture_graph(several_model);
    const size_t elems = nn_graph_param_elems(graph);
    nn_result_t results[3];
    fixture_t f, g;

    fixture_open(&f, graph, "cpu", 0, BATCH, true);
    fixture_open(&g, graph, "cpu", 0, BATCH, true);
    ((float *)f.targets[0])[2] = NAN;
    cr_assert_eq(nn_exec_forward(f.exec, &f.batch, results, NULL), ERR_OK);
    cr_expect(isnan(results[0].loss_sum) && isnan(results[2].loss_sum));
    cr_expect(isfinite(results[1].loss_sum));
    cr_assert_eq(nn_exec_backward(f.exec, &f.batch, scales, false, NULL),
                 ERR_OK);
    cr_assert_eq(nn_exec_forward(g.exec, &g.batch, results, NULL), ERR_OK);
    cr_assert_eq(nn_exec_backward(g.exec, &g.batch, scales, false, NULL),
                 ERR_OK);
    cr_expect_gt(fixture_largest(f.bind.grads, elems), 0);
    cr_expect_eq(fixture_distance(f.bind.grads, g.bind.grads, elems), 0);
    cr_assert_eq(nn_exec_backward(g.exec, &g.batch, alone, false, NULL),
                 ERR_OK);
    cr_expect_gt(fixture_distance(f.bind.grads, g.bind.grads, elems), 0);
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(graph);
}

/* Forward of a batch in which [token] stands at position 2 of sample 3. */
static void check_token(const nn_graph_t *graph, const char *backend,
                        int32_t token, const char *says)
{
    nn_result_t result;
    err_t err = ERR_INIT;
    fixture_t f;

    fixture_open(&f, graph, backend, 0, BATCH, true);
    ((int32_t *)f.input)[3 * 6 + 2] = token;
    cr_expect_eq(nn_exec_forward(f.exec, &f.batch, &result, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, says), "%s: %s", backend, err.text);
    fixture_close(&f);
}

Test(exec, a_token_outside_of_the_vocabulary_is_named)
{
    nn_graph_t *graph = fixture_graph(fixture_tokens);
    const char *backends[] = {"ref", "cpu"};

    cr_expect_eq(nn_graph_input_info(graph, 0).tokens,
                 11); /* the smaller one */
    for (int i = 0; i < 2; i++) {
        if (!fixture_has_backend(backends[i]))
            continue;
        check_token(graph, backends[i], 11,
                    "layer words: embedding: position 2 of sample 3 of the "
                    "batch holds token 11, but the model has the tokens 0 to "
                    "10");
        check_token(graph, backends[i], -1, "holds token -1");
        check_token(graph, backends[i], INT32_MIN, "holds token -2147483648");
    }
    nn_graph_close(graph);
}
