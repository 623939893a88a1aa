/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Losses compared with PyTorch, whose results
 * tests/python/make_loss_reference.py recorded in tests/data/losses.json: the
 * mean over the targets that count, and the gradient of the logits, to 1e-5 of
 * the norm. The model is a position layer of zeros, so that its gradient is
 * the gradient of the logits, summed over samples.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "nn/fixture.h"

#define TOLERANCE 1e-5

static double number(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

static nn_graph_t *graph_open(const json_t *json)
{
    const json_t *shape = json_object_get(json, "shape");
    const char *loss = json_string_value(json_object_get(json, "loss"));
    char yaml[512], dims[64] = "";

    for (size_t i = 0; i < json_array_size(shape); i++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%d",
                 i == 0 ? "" : ", ", (int)number(shape, i));
    snprintf(yaml, sizeof yaml,
             "model: {input: [%s], layers: [position]}\nloss: %s\n", dims,
             loss);
    return fixture_graph(yaml);
}

static void batch_copy(fixture_t *f, const json_t *json)
{
    const json_t *logits = json_object_get(json, "logits");
    const json_t *target = json_object_get(json, "target");
    const json_t *weights = json_object_get(json, "weights");

    for (size_t i = 0; i < json_array_size(weights); i++)
        ((float *)f->targets[1])[i] = (float)number(weights, i);
    for (size_t i = 0; i < json_array_size(logits); i++)
        ((float *)f->input)[i] = (float)number(logits, i);
    for (size_t i = 0; i < json_array_size(target); i++)
        if (nn_graph_target_info(f->graph, 0).classes > 0)
            ((int64_t *)f->target)[i] = (int64_t)number(target, i);
        else
            ((float *)f->target)[i] = (float)number(target, i);
}

static void check_case(const json_t *json, int64_t samples, const char *backend)
{
    const char *name = json_string_value(json_object_get(json, "loss"));
    const json_t *gradient = json_object_get(json, "gradient");
    double mean = json_real_value(json_object_get(json, "mean"));
    nn_graph_t *graph = graph_open(json);
    double divisor, found, apart = 0, size = 0;
    fixture_t f;

    fixture_open(&f, graph, backend, 0, samples, true);
    memset(f.params, 0, nn_graph_param_elems(graph) * sizeof *f.params);
    batch_copy(&f, json);
    divisor = nn_batch_weigh(graph, 0, &f.batch, samples).denominator;
    found = fixture_forward(&f) / divisor;
    cr_expect(fabs(found - mean) <= TOLERANCE * mean,
              "%s on %s: loss %.9g, PyTorch has %.9g", name, backend, found,
              mean);
    fixture_backward(&f, 1 / divisor, false);
    for (size_t i = 0; i < json_array_size(gradient); i++) {
        double expected = number(gradient, i);

        apart += pow((double)f.bind.grads[i] - expected, 2);
        size += pow(expected, 2);
    }
    cr_expect(sqrt(apart) <= TOLERANCE * sqrt(size),
              "%s on %s: the gradient differs from PyTorch's by %.2e of its "
              "norm",
              name, backend, sqrt(apart / size));
    fixture_close(&f);
    nn_graph_close(graph);
}

static void check_all(const char *backend)
{
    const char *source = getenv("srcdir");
    char *path =
        str_printf("%s/tests/data/losses.json", source != NULL ? source : ".");
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    const json_t *cases = json_object_get(json, "cases"), *one;
    size_t index;

    cr_assert_not_null(json, "%s: %s", path, error.text);
    cr_assert_geq(json_array_size(cases), 20);
    json_array_foreach(cases, index, one) check_case(
        one, json_integer_value(json_object_get(json, "samples")), backend);
    json_decref(json);
    free(path);
}

Test(loss_parity, ref_computes_what_pytorch_computes)
{
    check_all("ref");
}

Test(loss_parity, cpu_computes_what_pytorch_computes)
{
    check_all("cpu");
}
