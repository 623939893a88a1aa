/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Initial values, and running statistics from moments. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/fixture.h"

static const nn_param_t *find(const nn_graph_t *graph, const char *name)
{
    for (int i = 0; i < nn_graph_params(graph); i++)
        if (strcmp(nn_graph_param(graph, i)->name, name) == 0)
            return nn_graph_param(graph, i);
    cr_assert_fail("no parameter %s", name);
    return NULL;
}

static float *init(const nn_graph_t *graph, uint64_t seed, float *buffers)
{
    float *params = malloc(nn_graph_param_elems(graph) * sizeof *params);
    float *own = NULL;

    if (buffers == NULL)
        buffers = own =
            malloc((nn_graph_buffer_elems(graph) + 1) * sizeof *own);
    memset(params, 0xff, nn_graph_param_elems(graph) * sizeof *params);
    nn_graph_init(graph, seed, NULL, params, buffers);
    free(own);
    return params;
}

/* Check range, mean and variance of a uniform distribution in [-bound, bound].
 */
static void expect_uniform(const float *values, size_t count, double bound)
{
    double sum = 0, squares = 0;
    double largest = fixture_largest(values, count);

    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    sum /= (double)count;
    squares /= (double)count;
    cr_expect_leq(largest, bound * (1 + 1e-6));
    cr_expect_gt(largest, 0.99 * bound);
    /* Mean and mean square are within five standard errors. */
    cr_expect_lt(fabs(sum), 5 * bound / sqrt(3.0 * (double)count));
    cr_expect_lt(fabs(squares - bound * bound / 3),
                 5 * bound * bound * sqrt(4.0 / 45 / (double)count));
}

Test(graph_init, ranges_are_pytorchs)
{
    nn_graph_t *graph = fixture_graph("model:\n"
                                      "  input: [8, 9, 9]\n"
                                      "  layers:\n"
                                      "    - conv: {out: 64, kernel: 3, "
                                      "groups: 2}\n"
                                      "    - batchnorm\n"
                                      "    - linear: {out: 500}\n"
                                      "loss: cross_entropy\n");
    float *buffers = malloc(nn_graph_buffer_elems(graph) * sizeof *buffers);
    float *params = init(graph, 5, buffers);
    const nn_param_t *p;

    p = find(graph, "conv1.weight");
    expect_uniform(params + p->offset, p->count, 1 / sqrt(4.0 * 9));
    p = find(graph, "linear1.weight");
    expect_uniform(params + p->offset, p->count, 1 / sqrt(64.0 * 49));
    p = find(graph, "linear1.bias");
    expect_uniform(params + p->offset, p->count, 1 / sqrt(64.0 * 49));
    p = find(graph, "batchnorm1.weight");
    for (size_t i = 0; i < p->count; i++)
        cr_expect_eq(params[p->offset + i], 1);
    p = find(graph, "batchnorm1.bias");
    for (size_t i = 0; i < p->count; i++)
        cr_expect_eq(params[p->offset + i], 0);
    for (size_t i = 0; i < 64; i++) {
        cr_expect_eq(buffers[i], 0);
        cr_expect_eq(buffers[nn_graph_buffer(graph, 1)->offset + i], 1);
    }
    /* The padding after the 500 biases is zero. */
    p = find(graph, "linear1.bias");
    for (size_t i = p->count; i % 16 != 0; i++)
        cr_expect_eq(params[p->offset + i], 0);
    free(params);
    free(buffers);
    nn_graph_close(graph);
}

/* Check that mean and variance are those of a normal distribution, within five
 * standard errors. */
static void expect_normal(const float *values, size_t count, double mean,
                          double std)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++) {
        double x = ((double)values[i] - mean) / std;

        sum += x;
        squares += x * x;
    }
    cr_expect_lt(fabs(sum), 5 * sqrt((double)count));
    cr_expect_lt(fabs(squares / (double)count - 1), 5 * sqrt(2 / (double)count),
                 "std is %g of %g", sqrt(squares / (double)count), std);
    cr_expect_gt(fixture_largest(values, count), fabs(mean) + 2 * std);
}

/* A model with a conv of weights [64, 4, 3, 3] in 2 groups, and a linear of
 * weights [500, 64 * 49]. */
static nn_graph_t *init_graph(const char *conv, const char *linear)
{
    char text[512];

    snprintf(text, sizeof text,
             "model:\n"
             "  input: [8, 9, 9]\n"
             "  layers:\n"
             "    - {conv: {out: 64, kernel: 3, groups: 2}, init: %s}\n"
             "    - flatten\n"
             "    - {linear: {out: 500}, init: %s}\n"
             "loss: cross_entropy\n",
             conv, linear);
    return fixture_graph(text);
}

static void expect_all(const float *params, const nn_param_t *p, float value)
{
    for (size_t i = 0; i < p->count; i++)
        cr_assert_eq(params[p->offset + i], value, "%s", p->name);
}

Test(graph_init, kaiming_is_torch_nn_inits)
{
    nn_graph_t *graph = init_graph(
        "kaiming", "{kaiming: {mode: fan_out, distribution: uniform, "
                   "nonlinearity: leaky_relu, slope: 0.5}}");
    float *params = init(graph, 5, NULL);
    const nn_param_t *p = find(graph, "conv1.weight");

    expect_normal(params + p->offset, p->count, 0, sqrt(2.0 / (4 * 9)));
    expect_all(params, find(graph, "conv1.bias"), 0);
    p = find(graph, "linear1.weight");
    expect_uniform(params + p->offset, p->count,
                   sqrt(3 * 2 / (1 + 0.25) / 500));
    expect_all(params, find(graph, "linear1.bias"), 0);
    free(params);
    nn_graph_close(graph);
}

Test(graph_init, xavier_is_torch_nn_inits)
{
    nn_graph_t *graph = init_graph("{xavier: {distribution: uniform, gain: 2}}",
                                   "{xavier: {bias: default}}");
    float *params = init(graph, 5, NULL);
    const nn_param_t *p = find(graph, "conv1.weight");

    expect_uniform(params + p->offset, p->count,
                   2 * sqrt(6.0 / (4 * 9 + 64 * 9)));
    p = find(graph, "linear1.weight");
    expect_normal(params + p->offset, p->count, 0, sqrt(2.0 / (64 * 49 + 500)));
    p = find(graph, "linear1.bias");
    expect_uniform(params + p->offset, p->count, 1 / sqrt(64.0 * 49));
    free(params);
    nn_graph_close(graph);
}

Test(graph_init, normal_and_zeros)
{
    nn_graph_t *graph = init_graph("{normal: {std: 0.5, mean: 1}}", "normal");
    float *params = init(graph, 5, NULL);
    const nn_param_t *p = find(graph, "conv1.weight");

    expect_normal(params + p->offset, p->count, 1, 0.5);
    p = find(graph, "linear1.weight");
    expect_normal(params + p->offset, p->count, 0, 0.02);
    free(params);
    nn_graph_close(graph);
    graph = init_graph("{kaiming: {nonlinearity: tanh}}", "zeros");
    params = init(graph, 5, NULL);
    p = find(graph, "conv1.weight");
    expect_normal(params + p->offset, p->count, 0, 5.0 / 3 / sqrt(36));
    expect_all(params, find(graph, "linear1.weight"), 0);
    expect_all(params, find(graph, "linear1.bias"), 0);
    free(params);
    nn_graph_close(graph);
}

/* Typically used for the last norm of a residual block. */
Test(graph_init, zeros_of_a_norm)
{
    nn_graph_t *graph =
        fixture_graph("model: {input: [8, 3, 3], layers: [{batchnorm: , init: "
                      "zeros}, flatten, {linear: {out: 2}}]}\n"
                      "loss: cross_entropy\n");
    float *params = init(graph, 5, NULL);

    expect_all(params, find(graph, "batchnorm1.weight"), 0);
    free(params);
    nn_graph_close(graph);
}

/* Check that a crew of [members] threads draws the values that one thread alone
 * drew. */
static void expect_crew(const nn_graph_t *graph, int members,
                        const float *alone)
{
    const size_t bytes = nn_graph_param_elems(graph) * sizeof(float);
    float *params = malloc(bytes);
    crew_t *crew = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(crew_open(members, "test", &crew, &err), ERR_OK);
    memset(params, 0xff, bytes);
    nn_graph_init(graph, 5, crew, params, NULL);
    cr_expect_eq(memcmp(params, alone, bytes), 0, "%d members", members);
    crew_close(crew);
    free(params);
}

/* Two weights, of 333 * 333 and of 1001 * 333 numbers: both are large enough
 * for a crew to share the work. */
Test(graph_init, any_number_of_threads_draws_the_same_bits)
{
    nn_graph_t *graph = fixture_graph(
        "model:\n"
        "  input: [333]\n"
        "  layers:\n"
        "    - {linear: {out: 333}, init: {kaiming: {distribution: uniform}}}\n"
        "    - {linear: {out: 1001}, init: {normal: {std: 0.5, mean: 1}}}\n"
        "loss: cross_entropy\n");
    float *alone = init(graph, 5, NULL);

    for (int members = 1; members <= 9; members++)
        expect_crew(graph, members, alone);
    expect_crew(graph, 70, alone); /* more threads than can take part */
    free(alone);
    nn_graph_close(graph);
}

Test(graph_init, depends_on_seed_and_name_only)
{
    nn_graph_t *a = fixture_graph(
        "model: {input: [6], layers: [{linear: {out: 6}, name: x}, relu,"
        " {linear: {out: 6}, name: y}]}\n"
        "loss: mse\n");
    nn_graph_t *b = fixture_graph(
        "model: {input: [6], layers: [{linear: {out: 6}, name: y},"
        " {linear: {out: 6}, name: z}, {linear: {out: 6}, name: x}]}\n"
        "loss: mse\n");
    float *pa = init(a, 5, NULL), *pb = init(b, 5, NULL);
    float *other = init(a, 6, NULL);
    const float *x = pa + find(a, "x.weight")->offset;

    cr_expect_arr_eq(x, pb + find(b, "x.weight")->offset, 36 * sizeof *x);
    cr_expect_arr_eq(pa + find(a, "y.bias")->offset,
                     pb + find(b, "y.bias")->offset, 6 * sizeof *x);
    cr_expect_arr_neq(x, pa + find(a, "y.weight")->offset, 36 * sizeof *x);
    cr_expect_arr_neq(x, other + find(a, "x.weight")->offset, 36 * sizeof *x);
    free(pa);
    free(pb);
    free(other);
    nn_graph_close(a);
    nn_graph_close(b);
}

Test(graph_init, moments_become_pytorchs_running_statistics)
{
    nn_graph_t *graph = fixture_graph(
        "model: {input: [2, 1, 3], layers: [flatten, {batchnorm: {momentum: "
        "0.25}, name: a}, linear: {out: 2}, {batchnorm: , name: b}]}\n"
        "loss: mse\n");
    double moments[16] = {0};
    float buffers[64 + 64];
    const double x[] = {1, 2, 6};
    const double mean = 3, var = 7; /* unbiased: (4 + 1 + 9) / 2 */

    cr_assert_eq(nn_graph_moment_elems(graph), 16);
    cr_assert_leq(nn_graph_buffer_elems(graph), 128);
    for (size_t i = 0; i < nn_graph_buffer_elems(graph); i++)
        buffers[i] = 2;
    /* Feature 4 of layer a, and feature 1 of layer b. */
    for (int i = 0; i < 3; i++) {
        moments[4] += x[i];
        moments[6 + 4] += x[i] * x[i];
        moments[12 + 1] += x[i];
        moments[12 + 2 + 1] += x[i] * x[i];
    }
    nn_graph_fold_moments(graph, moments, 3, buffers);
    cr_expect_float_eq(buffers[4], 0.75 * 2 + 0.25 * mean, 1e-6);
    cr_expect_float_eq(buffers[16 + 4], 0.75 * 2 + 0.25 * var, 1e-6);
    cr_expect_float_eq(buffers[32 + 1], 0.9 * 2 + 0.1 * mean, 1e-6);
    cr_expect_float_eq(buffers[48 + 1], 0.9 * 2 + 0.1 * var, 1e-6);
    /* Without samples nothing changes. */
    nn_graph_fold_moments(graph, moments, 0, buffers);
    cr_expect_float_eq(buffers[32 + 1], 0.9 * 2 + 0.1 * mean, 1e-6);
    nn_graph_close(graph);
}

Test(graph_init, space_counts_in_running_statistics)
{
    nn_graph_t *graph =
        fixture_graph("model: {input: [1, 1, 2], layers: [batchnorm]}\n"
                      "loss: mse\n");
    double moments[2] = {3, 5}; /* of one sample with the values 1 and 2 */
    float buffers[32] = {0};

    nn_graph_fold_moments(graph, moments, 1, buffers);
    cr_expect_float_eq(buffers[0], 0.1 * 1.5, 1e-7);
    cr_expect_float_eq(buffers[16], 0.1 * 0.5, 1e-7);
    /* Rounding must not make a variance negative. */
    moments[1] = 4.499999;
    buffers[16] = 0;
    nn_graph_fold_moments(graph, moments, 1, buffers);
    cr_expect_eq(buffers[16], 0);
    nn_graph_close(graph);
}
