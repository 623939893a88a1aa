/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Whole graphs: how backward treats existing gradients, the order of
 * grad_ready, moments, dropout, outputs, and errors in a batch.
 * test_exec_grad.c checks that gradients are right. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "nn/fixture.h"

#define BATCH 6

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
    /* The gradient is final: it has been written. */
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
    cr_expect_eq(fixture_backward_losses(&f, &one, true, &err), ERR_PEER);
    cr_expect_eq(order.next, 3);
    fixture_close(&f);
    nn_graph_close(graph);
}

Test(exec, gradients_are_ready_in_order_of_the_arena)
{
    check_order(fixture_cnn);
    check_order(fixture_graph_model);
}

/* A layer used three times in a row computes what three layers with equal
 * weights compute; its gradient is the sum of their gradients. */
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
    /* A second backward adds the same gradients again. */
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

/* The output layer writes the gradient of the shared table, and the embedding
 * adds to it. A second backward adds everything again. */
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
    /* Evaluation does not depend on the epoch, and adds no moments. */
    fixture_open(&e, graph, "ref", 0, BATCH, false);
    fixture_open(&again, graph, "ref", 0, BATCH, false);
    again.step.epoch = 9;
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
    /* The second batchnorm gets inputs with mean 0 and variance 1. */
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
    /* Three quarters of the outputs, within five standard deviations. */
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
    cr_expect_eq(fixture_forward_losses(&f, &result, &err), ERR_DATA);
    cr_expect_eq(result.correct, -5);
    cr_expect_not_null(strstr(err.text, "4"), "%s", err.text);
    fixture_close(&f);
    nn_graph_close(graph);
}

/* Expect that forward fails with [says] if [token] is at position 2 of sample
 * 3. */
static void check_token(const nn_graph_t *graph, const char *backend,
                        int32_t token, const char *says)
{
    nn_result_t result;
    err_t err = ERR_INIT;
    fixture_t f;

    fixture_open(&f, graph, backend, 0, BATCH, true);
    ((int32_t *)f.input)[3 * 6 + 2] = token;
    cr_expect_eq(fixture_forward_losses(&f, &result, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, says), "%s: %s", backend, err.text);
    fixture_close(&f);
}

Test(exec, a_token_outside_of_the_vocabulary_is_named)
{
    nn_graph_t *graph = fixture_graph(fixture_tokens);
    const char *backends[] = {"ref", "cpu"};

    cr_expect_eq(nn_graph_input_info(graph, 0).tokens,
                 11); /* the smaller of the two vocabularies */
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
