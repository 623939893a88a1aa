/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Twenty steps of several models and optimizers compared with PyTorch, whose
 * results tests/python/make_reference.py recorded in tests/data. Weights,
 * samples and their order are equal. The loss of each step agrees to a
 * relative 1e-4, and so does a loss in evaluation mode at the end, which
 * depends on the running statistics of batch norm.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "conf/conf.h"
#include "nn/nn.h"
#include "optim/optim_rig.h"

/* A backend, its precision, and the relative tolerance of its losses. */
typedef struct arithmetic {
    const char *backend;
    bool bf16;
    double tolerance;
} arithmetic_t;

/* Data of all cases: reference.json and the samples of reference.h5. */
typedef struct reference {
    json_t *json;
    hid_t file;
    int64_t batch;
    float *input, *values;
    int64_t *labels;
} reference_t;

/* One case: a model, its memory, and two execs. */
typedef struct parity {
    const reference_t *reference;
    const json_t *json;
    const arithmetic_t *arithmetic;
    nn_graph_t *graph;
    optim_t *optim;
    dev_device_t *dev;
    nn_exec_t *train, *eval;
    nn_bind_t bind;
    op_step_t step;
    float *params, *grads, *buffers;
    double *moments;
    int64_t sample_elems, target_elems;
} parity_t;

static void *zeros(size_t bytes)
{
    void *block = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(mem_alloc(bytes, "a test", &block, &err), ERR_OK);
    return block;
}

static char *data_path(const char *name)
{
    const char *source = getenv("srcdir");

    return str_printf("%s/tests/data/%s", source != NULL ? source : ".", name);
}

/* Read all of dataset [name] as [type], with [item] bytes per element. */
static void *read_all(hid_t file, const char *name, hid_t type, size_t item)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space;
    void *values;

    cr_assert(set >= 0, "reference.h5 has no %s", name);
    space = H5Dget_space(set);
    values = zeros((size_t)H5Sget_simple_extent_npoints(space) * item);
    cr_assert(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    return values;
}

static void reference_open(reference_t *to)
{
    char *json = data_path("reference.json"), *h5 = data_path("reference.h5");
    json_error_t error;

    to->json = json_load_file(json, 0, &error);
    cr_assert_not_null(to->json, "%s: %s", json, error.text);
    to->file = H5Fopen(h5, H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert(to->file >= 0, "%s cannot be opened", h5);
    to->batch = json_integer_value(json_object_get(to->json, "batch"));
    to->input = read_all(to->file, "/input", H5T_NATIVE_FLOAT, sizeof(float));
    to->values = read_all(to->file, "/values", H5T_NATIVE_FLOAT, sizeof(float));
    to->labels =
        read_all(to->file, "/labels", H5T_NATIVE_INT64, sizeof(int64_t));
    free(h5);
    free(json);
}

static void reference_close(reference_t *reference)
{
    mem_free(reference->input);
    mem_free(reference->values);
    mem_free(reference->labels);
    H5Fclose(reference->file);
    json_decref(reference->json);
}

static const char *case_text(const parity_t *p, const char *key)
{
    return json_string_value(json_object_get(p->json, key));
}

/* Replace nn's initial weights by the recorded ones. */
static void weights_load(parity_t *p)
{
    for (int i = 0; i < nn_graph_params(p->graph); i++) {
        const nn_param_t *param = nn_graph_param(p->graph, i);
        char *name = str_printf("/%s/%s", case_text(p, "weights"), param->name);
        float *values =
            read_all(p->reference->file, name, H5T_NATIVE_FLOAT, sizeof(float));

        memcpy(p->params + param->offset, values, param->count * sizeof(float));
        mem_free(values);
        free(name);
    }
}

static nn_exec_t *exec_open(parity_t *p, bool training)
{
    nn_exec_config_t config = {.dev = p->dev,
                               .op_backend = p->arithmetic->backend,
                               .compute_type = p->arithmetic->bf16 ? OP_BFLOAT16
                                                                   : OP_FLOAT32,
                               .batch = p->reference->batch,
                               .training = training,
                               .threads = 1};
    nn_exec_t *exec = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(nn_exec_open(p->graph, &config, &exec, &err), ERR_OK, "%s",
                 err.text);
    return exec;
}

static void optim_open_for(parity_t *p, const tree_t *run)
{
    const int count = nn_graph_params(p->graph);
    optim_view_t views[32];
    optim_layout_t layout = {.dev = optim_rig_dev(),
                             .views = views,
                             .view_count = count,
                             .elems = nn_graph_param_elems(p->graph)};
    err_t err = ERR_INIT;

    cr_assert_leq(count, 32);
    for (int i = 0; i < count; i++) {
        const nn_param_t *param = nn_graph_param(p->graph, i);

        views[i] = (optim_view_t){.name = param->name,
                                  .offset = param->offset,
                                  .count = param->count,
                                  .ndim = param->ndim};
    }
    cr_assert_eq(
        optim_open(tree_get(run, "optimizer"), NULL, &layout, &p->optim, &err),
        ERR_OK, "%s", err.text);
}

static void model_open(parity_t *p)
{
    tree_t *run = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(
        conf_parse(case_text(p, "name"), case_text(p, "run"), &run, &err),
        ERR_OK, "%s", err.text);
    cr_assert_eq(nn_graph_open(tree_get(run, "model"), tree_get(run, "loss"),
                               &p->graph, &err),
                 ERR_OK, "%s", err.text);
    optim_open_for(p, run);
    tree_free(run);
}

static void parity_open(parity_t *p, const reference_t *reference,
                        const json_t *json, const arithmetic_t *arithmetic)
{
    size_t train_bytes, eval_bytes;
    err_t err = ERR_INIT;

    *p = (parity_t){
        .reference = reference, .json = json, .arithmetic = arithmetic};
    model_open(p);
    cr_assert_eq(dev_open("cpu", 0, &p->dev, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(
        dev_stream_open(p->dev, DEV_STREAM_COMPUTE, &p->bind.stream, &err),
        ERR_OK);
    p->train = exec_open(p, true);
    p->eval = exec_open(p, false);
    p->params = zeros(nn_graph_param_elems(p->graph) * sizeof(float));
    p->grads = zeros(nn_graph_param_elems(p->graph) * sizeof(float));
    p->buffers = zeros(nn_graph_buffer_elems(p->graph) * sizeof(float));
    p->moments = zeros(nn_graph_moment_elems(p->graph) * sizeof(double));
    nn_graph_init(p->graph, 1, NULL, p->params, p->buffers);
    weights_load(p);
    train_bytes = nn_exec_activation_bytes(p->train);
    eval_bytes = nn_exec_activation_bytes(p->eval);
    p->bind.params = p->params;
    p->bind.step = &p->step;
    p->bind.grads = p->grads;
    p->bind.buffers = p->buffers;
    p->bind.moments = p->moments;
    p->bind.activations =
        zeros(train_bytes > eval_bytes ? train_bytes : eval_bytes);
    nn_exec_bind(p->train, &p->bind);
    nn_exec_bind(p->eval, &p->bind);
    p->target_elems = nn_graph_loss_info(p->graph, 0).elems;
    p->sample_elems = 12 * 12;
}

static void parity_close(parity_t *p)
{
    nn_exec_close(p->train);
    nn_exec_close(p->eval);
    dev_stream_close(p->bind.stream);
    dev_close(p->dev);
    mem_free(p->bind.activations);
    mem_free(p->moments);
    mem_free(p->buffers);
    mem_free(p->grads);
    mem_free(p->params);
    optim_close(p->optim);
    nn_graph_close(p->graph);
}

/* Fill [batch] with the samples from [first] on, and return their mean loss. */
static double forward(parity_t *p, nn_exec_t *exec, int64_t first,
                      nn_batch_t *batch)
{
    const reference_t *r = p->reference;
    nn_result_t result;
    err_t err = ERR_INIT;
    static uint64_t ids[1024];

    *batch = (nn_batch_t){.input = r->input + first * p->sample_elems,
                          .target = nn_graph_loss_info(p->graph, 0).classes > 0
                                        ? (const void *)(r->labels + first)
                                        : r->values + first * p->target_elems,
                          .sample_ids = ids};
    cr_assert_eq(nn_exec_forward(exec, batch, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(nn_exec_results(exec, &result, &err), ERR_OK, "%s", err.text);
    return result.loss_sum / nn_loss_denominator(p->graph, 0, r->batch);
}

static double train_step(parity_t *p, int64_t step)
{
    int64_t samples = p->reference->batch;
    nn_batch_t batch;
    double loss;
    err_t err = ERR_INIT;

    memset(p->moments, 0, nn_graph_moment_elems(p->graph) * sizeof(double));
    loss = forward(p, p->train, step * samples, &batch);
    p->step.scales[0] = 1 / nn_loss_denominator(p->graph, 0, samples);
    cr_assert_eq(nn_exec_backward(p->train, &batch, false, &err), ERR_OK, "%s",
                 err.text);
    nn_graph_fold_moments(p->graph, p->moments, samples, p->buffers);
    optim_rig_step(p->optim, p->params, p->grads, optim_lr(p->optim), step + 1);
    return loss;
}

static void expect_near(const parity_t *p, const char *what, size_t step,
                        double found, const json_t *recorded)
{
    double expected = json_real_value(recorded);
    /* Rounding errors of the weights accumulate over the steps. */
    double drift = p->arithmetic->bf16 && step > 9 ? 2 : 1;

    cr_expect(fabs(found - expected) <=
                  drift * p->arithmetic->tolerance * fabs(expected),
              "%s on %s, %s %zu: loss %.8g, PyTorch has %.8g (relative %.1e)",
              case_text(p, "name"), p->arithmetic->backend, what, step, found,
              expected, fabs(found - expected) / fabs(expected));
}

static void check_case(const reference_t *reference, const json_t *json,
                       const arithmetic_t *arithmetic)
{
    const json_t *losses = json_object_get(json, "losses"), *loss;
    nn_batch_t batch;
    parity_t p;
    size_t step;

    parity_open(&p, reference, json, arithmetic);
    cr_assert_eq(json_array_size(losses), 20);
    json_array_foreach(losses, step, loss)
        expect_near(&p, "step", step, train_step(&p, (int64_t)step), loss);
    expect_near(&p, "evaluation after step", step,
                forward(&p, p.eval, 0, &batch),
                json_object_get(json, "eval_loss"));
    parity_close(&p);
}

static void check_all(const arithmetic_t *arithmetic)
{
    const json_t *cases, *json;
    reference_t reference;
    size_t index;

    reference_open(&reference);
    cases = json_object_get(reference.json, "cases");
    cr_assert_gt(json_array_size(cases), 7);
    json_array_foreach(cases, index, json)
        check_case(&reference, json, arithmetic);
    reference_close(&reference);
}

Test(parity, ref_computes_what_pytorch_computes)
{
    check_all(&(arithmetic_t){.backend = "ref", .tolerance = 1e-4});
}

Test(parity, cpu_computes_what_pytorch_computes)
{
    check_all(&(arithmetic_t){.backend = "cpu", .tolerance = 1e-4});
}

/* With factors rounded to bfloat16 the losses agree to two digits. */
Test(parity, ref_is_near_pytorch_in_bf16)
{
    check_all(&(arithmetic_t){"ref", true, 2e-2});
}

Test(parity, cpu_is_near_pytorch_in_bf16)
{
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK);
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    check_all(&(arithmetic_t){"cpu", true, 2e-2});
}
