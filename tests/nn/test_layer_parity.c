/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Single layers compared with PyTorch, whose results
 * tests/python/make_layer_reference.py recorded in tests/data/layers.json.
 * With equal weights, input and target, the output, the loss and the gradient
 * of every parameter agree to 1e-5 of the norm; in bfloat16, compared with the
 * same numbers, to 2e-2.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "nn/fixture.h"

typedef struct arithmetic {
    const char *backend;
    bool bf16;
    double tolerance;
} arithmetic_t;

static json_t *reference_load(void)
{
    const char *source = getenv("srcdir");
    char *path =
        str_printf("%s/tests/data/layers.json", source != NULL ? source : ".");
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);

    cr_assert_not_null(json, "%s: %s", path, error.text);
    free(path);
    return json;
}

static double number(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

static void floats_copy(const json_t *list, float *to, size_t count)
{
    cr_assert_eq(json_array_size(list), count);
    for (size_t i = 0; i < count; i++)
        to[i] = (float)number(list, i);
}

static void tokens_copy(const json_t *list, int32_t *to)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        to[i] = (int32_t)number(list, i);
}

static void weights_copy(fixture_t *f, const json_t *params)
{
    cr_assert_eq(json_object_size(params), (size_t)nn_graph_params(f->graph));
    for (int i = 0; i < nn_graph_params(f->graph); i++) {
        const nn_param_t *param = nn_graph_param(f->graph, i);

        floats_copy(json_object_get(params, param->name),
                    f->params + param->offset, param->count);
    }
}

/* Copy the running statistics of cases that have them. */
static void buffers_copy(fixture_t *f, const json_t *buffers)
{
    for (int i = 0; i < nn_graph_buffers(f->graph) && buffers != NULL; i++) {
        const nn_param_t *buffer = nn_graph_buffer(f->graph, i);

        floats_copy(json_object_get(buffers, buffer->name),
                    f->buffers + buffer->offset, buffer->count);
    }
}

/* Check the norm of the difference, relative to the norm of PyTorch's result.
 */
static void check_near(const char *name, const arithmetic_t *in,
                       const char *what, const float *found, const json_t *list)
{
    double apart = 0, size = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        double expected = number(list, i);

        apart += pow((double)found[i] - expected, 2);
        size += pow(expected, 2);
    }
    cr_expect(sqrt(apart) <= in->tolerance * sqrt(size),
              "%s on %s: %s differs from PyTorch's by %.2e of its norm", name,
              in->backend, what, sqrt(apart / size));
}

static void check_gradients(const fixture_t *f, const char *name,
                            const arithmetic_t *in, const json_t *grads)
{
    for (int i = 0; i < nn_graph_params(f->graph); i++) {
        const nn_param_t *param = nn_graph_param(f->graph, i);

        check_near(name, in, param->name, f->bind.grads + param->offset,
                   json_object_get(grads, param->name));
    }
}

static void check_case(const json_t *json, const arithmetic_t *in)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    nn_graph_t *graph =
        fixture_graph(json_string_value(json_object_get(json, "run")));
    int64_t batch = json_integer_value(json_object_get(json, "batch"));
    const json_t *input = json_object_get(json, "input");
    const json_t *output = json_object_get(json, "output");
    double loss = json_real_value(json_object_get(json, "loss"));
    size_t elems = json_array_size(output);
    float *out = malloc(elems * sizeof *out);
    double divisor, found;
    fixture_t f;

    fixture_open_as(&f, graph,
                    &(nn_exec_config_t){.op_backend = in->backend,
                                        .batch = batch,
                                        .training = true,
                                        .threads = 1,
                                        .compute_type = in->bf16 ? OP_BFLOAT16
                                                                 : OP_FLOAT32},
                    0);
    weights_copy(&f, json_object_get(json, "params"));
    buffers_copy(&f, json_object_get(json, "buffers"));
    if (nn_graph_input_info(graph, 0).tokens > 0)
        tokens_copy(input, f.input);
    else
        floats_copy(input, f.input, json_array_size(input));
    floats_copy(json_object_get(json, "target"), f.target, elems);
    divisor = nn_loss_denominator(graph, 0, batch);
    cr_assert_eq((size_t)divisor, elems);
    found = fixture_forward(&f) / divisor;
    cr_expect(fabs(found - loss) <= in->tolerance * loss,
              "%s on %s: loss %.9g, PyTorch has %.9g", name, in->backend, found,
              loss);
    cr_assert_eq(nn_exec_output(f.exec, 0, out, NULL), ERR_OK);
    check_near(name, in, "the output", out, output);
    fixture_backward(&f, 1 / divisor, false);
    check_gradients(&f, name, in, json_object_get(json, "grads"));
    fixture_close(&f);
    nn_graph_close(graph);
    free(out);
}

static void check_all(const arithmetic_t *in)
{
    json_t *reference = reference_load();
    const json_t *cases = json_object_get(reference, "cases"), *json;
    size_t index;

    cr_assert_gt(json_array_size(cases), 0);
    json_array_foreach(cases, index, json) check_case(json, in);
    json_decref(reference);
}

Test(layer_parity, ref_computes_what_pytorch_computes)
{
    check_all(&(arithmetic_t){.backend = "ref", .tolerance = 1e-5});
}

Test(layer_parity, cpu_computes_what_pytorch_computes)
{
    check_all(&(arithmetic_t){.backend = "cpu", .tolerance = 1e-5});
}

Test(layer_parity, ref_is_near_pytorch_in_bf16)
{
    check_all(&(arithmetic_t){"ref", true, 2e-2});
}

Test(layer_parity, cpu_is_near_pytorch_in_bf16)
{
    if (!fixture_has_bf16("cpu"))
        cr_skip_test("this CPU cannot multiply bfloat16");
    check_all(&(arithmetic_t){"cpu", true, 2e-2});
}
