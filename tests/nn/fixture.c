/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "conf/conf.h"

const char *const fixture_mlp = "model:\n"
                                "  input: [7]\n"
                                "  layers:\n"
                                "    - linear: {out: 9}\n"
                                "    - relu\n"
                                "    - linear: {out: 5}\n"
                                "    - relu\n"
                                "    - linear: {out: 4}\n"
                                "loss: cross_entropy\n";

const char *const fixture_cnn =
    "model:\n"
    "  input: [2, 8, 8]\n"
    "  layers:\n"
    "    - conv: {out: 6, kernel: 3, pad: 1}\n"
    "    - batchnorm\n"
    "    - relu\n"
    "    - maxpool: {kernel: 2}\n"
    "    - conv: {out: 4, kernel: [3, 2], stride: [1, 2], groups: 2}\n"
    "    - relu\n"
    "    - dropout: {rate: 0.25}\n"
    "    - flatten\n"
    "    - linear: {out: 5}\n"
    "    - relu\n"
    "    - linear: {out: 3}\n"
    "loss: cross_entropy\n";

/* All ways to connect layers: two repeats of a residual block, a tensor with
 * four readers, a layer that reads a tensor twice, several inputs, and weights
 * that three layers share. */
const char *const fixture_graph_model =
    "model:\n"
    "  input: [2, 6, 6]\n"
    "  layers:\n"
    "    - {name: stem, conv: {out: 4, kernel: 3, pad: 1}}\n"
    "    - repeat:\n"
    "        times: 2\n"
    "        layers:\n"
    "          - {name: a, conv: {out: 4, kernel: 3, pad: 1, bias: false}}\n"
    "          - batchnorm\n"
    "          - {name: act, relu: }\n"
    "          - {name: sum, add: , from: [entry, act, a, stem]}\n"
    "    - {name: twice, mul: , from: [sum_2, sum_2]}\n"
    "    - {name: s1, conv: {out: 4, kernel: 1}, from: twice}\n"
    "    - {name: s2, conv: {out: 4, kernel: 1}, share: s1}\n"
    "    - {name: s3, conv: {out: 4, kernel: 1}, from: stem, share: s2}\n"
    "    - {name: wide, concat: , from: [s2, s3, act_2, input]}\n"
    "    - slice: {start: 1, size: 9}\n"
    "    - upsample\n"
    "    - permute: {order: [1, 3, 2]}\n"
    "    - relu\n"
    "    - mean\n"
    "    - {name: skip, linear: {out: 9}}\n"
    "    - {add: , from: [skip, mean1]}\n"
    "    - {name: shaped, reshape: {shape: [3, -1]}}\n"
    "    - linear: {out: 3}\n"
    "loss: cross_entropy\n";

/* Activations and norms; those with options appear in two settings. */
const char *const fixture_smooth =
    "model:\n"
    "  input: [2, 6, 5]\n"
    "  layers:\n"
    "    - conv: {out: 6, kernel: 3}\n"
    "    - groupnorm: {groups: 3}\n"
    "    - silu\n"
    "    - {name: a, layernorm: }\n"
    "    - {name: b, gelu: {approximate: tanh}}\n"
    "    - instancenorm: {affine: true}\n"
    "    - sigmoid\n"
    "    - {name: c, layernorm: {axis: 1, bias: false}}\n"
    "    - {add: , from: [c, a, b]}\n"
    "    - linear: {out: 4, flatten: false}\n"
    "    - reshape: {shape: [6, 16]}\n"
    "    - position\n"
    "    - attention: {heads: 2, kv_heads: 1, causal: true}\n"
    "    - rmsnorm: {axis: 2}\n"
    "    - tanh\n"
    "    - leaky_relu: {slope: 0.3}\n"
    "    - linear: {out: 7}\n"
    "    - elu: {alpha: 0.5}\n"
    "    - linear: {out: 7}\n"
    "    - softplus: {beta: 2}\n"
    "    - gelu\n"
    "    - layernorm: {affine: false}\n"
    "    - linear: {out: 3}\n"
    "loss: cross_entropy\n";

/* A model of tokens: the last layer shares the weight of the embedding. */
const char *const fixture_tokens =
    "model:\n"
    "  input: [6]\n"
    "  layers:\n"
    "    - {name: words, embedding: {vocabulary: 11, out: 8}}\n"
    "    - {name: more, embedding: {vocabulary: 13, out: 8}, from: input}\n"
    "    - {name: sum, add: , from: [words, more]}\n"
    "    - {name: ahead, lstm: {out: 4}}\n"
    "    - {name: back, gru: {out: 4, reverse: true}, from: sum}\n"
    "    - {concat: {axis: 2}, from: [ahead, back]}\n"
    "    - position\n"
    "    - linear: {out: 24, flatten: false}\n"
    "    - rotary: {heads: 2}\n"
    "    - attention: {heads: 2, causal: true}\n"
    "    - slice: {axis: 1, start: 5, size: 1}\n"
    "    - {linear: {out: 11, bias: false}, share: words}\n"
    "loss: cross_entropy\n";

err_code_t fixture_graph_try(const char *yaml, nn_graph_t **out, err_t *err)
{
    tree_t *tree = NULL;
    err_code_t rc = conf_parse("m.yaml", yaml, &tree, err);

    if (rc == ERR_OK)
        rc = nn_graph_open(tree_get(tree, "model"), tree_get(tree, "loss"), out,
                           err);
    tree_free(tree);
    return rc;
}

nn_graph_t *fixture_graph(const char *yaml)
{
    nn_graph_t *graph = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(fixture_graph_try(yaml, &graph, &err), ERR_OK, "%s", err.text);
    return graph;
}

bool fixture_has_backend(const char *backend)
{
    const op_backend_ops_t *ops;

    return op_backend_get(backend, &ops, NULL) == ERR_OK;
}

bool fixture_has_bf16(const char *backend)
{
    const op_backend_ops_t *ops;

    return op_backend_get(backend, &ops, NULL) == ERR_OK &&
           op_backend_lacks(ops, NULL, OP_BFLOAT16) == NULL;
}

static void *zeros(size_t bytes)
{
    void *block = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(mem_alloc(bytes, "a test", &block, &err), ERR_OK);
    return block;
}

static void make_input(const nn_input_info_t *info, rng_t *rng, int64_t n,
                       void *out)
{
    for (int64_t i = n * info->elems; i < (n + 1) * info->elems; i++)
        if (info->tokens > 0)
            ((int32_t *)out)[i] =
                (int32_t)rng_below(rng, (uint64_t)info->tokens);
        else
            ((float *)out)[i] = (float)rng_normal(rng);
}

static void make_target(const nn_target_info_t *target, rng_t *rng, int64_t n,
                        void *out)
{
    for (int64_t i = n * target->elems; i < (n + 1) * target->elems; i++)
        if (target->classes > 0)
            ((int64_t *)out)[i] =
                (int64_t)rng_below(rng, (uint64_t)target->classes);
        else if (target->weights)
            ((float *)out)[i] = (float)rng_uniform(rng);
        else
            ((float *)out)[i] = (float)rng_normal(rng);
}

/* Fill the batch. The numbers of a sample depend only on its index in the data
 * set, not on the batch. */
static void make_batch(fixture_t *f, int64_t from, int64_t batch)
{
    const nn_graph_t *graph = f->graph;
    rng_t rng;

    for (int k = 0; k < nn_graph_inputs(graph); k++)
        f->inputs[k] = zeros((size_t)batch * sizeof(float) *
                             (size_t)nn_graph_input_info(graph, k).elems);
    for (int k = 0; k < nn_graph_targets(graph); k++)
        f->targets[k] =
            zeros((size_t)batch * nn_graph_target_info(graph, k).bytes);
    f->ids = zeros((size_t)batch * sizeof(uint64_t));
    for (int64_t n = 0; n < batch; n++) {
        f->ids[n] = (uint64_t)(from + n);
        rng_open(&rng, 2, RNG_ISING, f->ids[n], 0);
        for (int k = 0; k < nn_graph_inputs(graph); k++) {
            nn_input_info_t input = nn_graph_input_info(graph, k);

            make_input(&input, &rng, n, f->inputs[k]);
        }
        for (int k = 0; k < nn_graph_targets(graph); k++) {
            nn_target_info_t target = nn_graph_target_info(graph, k);

            make_target(&target, &rng, n, f->targets[k]);
        }
    }
    f->input = f->inputs[0];
    f->target = f->targets[0];
    f->samples = batch;
    f->batch = (nn_batch_t){.sample_ids = f->ids};
    for (int k = 0; k < NN_FIELDS_MAX; k++) {
        f->batch.inputs[k] = f->inputs[k];
        f->batch.targets[k] = f->targets[k];
    }
}

void fixture_open(fixture_t *f, const nn_graph_t *graph, const char *backend,
                  int64_t from, int64_t batch, bool training)
{
    const nn_exec_config_t config = {.op_backend = backend,
                                     .batch = batch,
                                     .training = training,
                                     .threads = 1};

    fixture_open_as(f, graph, &config, from);
}

void fixture_open_as(fixture_t *f, const nn_graph_t *graph,
                     const nn_exec_config_t *asked, int64_t from)
{
    nn_exec_config_t config = *asked;
    err_t err = ERR_INIT;

    *f = (fixture_t){.graph = graph};
    cr_assert_eq(dev_open("cpu", 0, &f->dev, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(
        dev_stream_open(f->dev, DEV_STREAM_COMPUTE, &f->bind.stream, &err),
        ERR_OK);
    config.dev = f->dev;
    cr_assert_eq(nn_exec_open(graph, &config, &f->exec, &err), ERR_OK, "%s",
                 err.text);
    f->params = zeros(nn_graph_param_elems(graph) * sizeof(float));
    f->buffers = zeros(nn_graph_buffer_elems(graph) * sizeof(float));
    nn_graph_init(graph, 1, NULL, f->params, f->buffers);
    f->bind.params = f->params;
    f->step = (op_step_t){.seed = 3, .epoch = 1};
    f->bind.step = &f->step;
    f->bind.buffers = f->buffers;
    f->bind.grads = zeros(nn_graph_param_elems(graph) * sizeof(float));
    f->bind.moments = zeros(nn_graph_moment_elems(graph) * sizeof(double));
    make_batch(f, from, config.batch);
    fixture_rebind(f);
    fixture_poison(f);
}

void fixture_rebind(fixture_t *f)
{
    mem_free(f->bind.activations);
    f->bind.activations = zeros(nn_exec_activation_bytes(f->exec));
    nn_exec_bind(f->exec, &f->bind);
}

void fixture_poison(fixture_t *f)
{
    memset(f->bind.activations, 0xff, nn_exec_activation_bytes(f->exec));
    memset(f->bind.grads, 0, nn_graph_param_elems(f->graph) * sizeof(float));
    memset(f->bind.moments, 0,
           nn_graph_moment_elems(f->graph) * sizeof(double));
}

void fixture_close(fixture_t *f)
{
    nn_exec_close(f->exec);
    mem_free(f->params);
    mem_free(f->buffers);
    mem_free(f->bind.grads);
    mem_free(f->bind.moments);
    mem_free(f->bind.activations);
    for (int k = 0; k < NN_FIELDS_MAX; k++) {
        mem_free(f->inputs[k]);
        mem_free(f->targets[k]);
    }
    mem_free(f->ids);
    dev_stream_close(f->bind.stream);
    dev_close(f->dev);
}

err_code_t fixture_forward_losses(fixture_t *f, nn_result_t *results,
                                  err_t *err)
{
    err_code_t rc = nn_exec_forward(f->exec, &f->batch, err);

    return rc == ERR_OK ? nn_exec_results(f->exec, results, err) : rc;
}

double fixture_forward(fixture_t *f)
{
    nn_result_t results[NN_FIELDS_MAX] = {{0}};
    err_t err = ERR_INIT;
    double sum = 0;

    cr_assert_eq(fixture_forward_losses(f, results, &err), ERR_OK, "%s",
                 err.text);
    for (int k = 0; k < nn_graph_losses(f->graph); k++)
        sum += nn_graph_loss_info(f->graph, k).weight * results[k].loss_sum;
    return sum;
}

void fixture_backward(fixture_t *f, double scale, bool accumulate)
{
    double scales[NN_FIELDS_MAX];
    err_t err = ERR_INIT;

    for (int k = 0; k < nn_graph_losses(f->graph); k++)
        scales[k] = scale * nn_graph_loss_info(f->graph, k).weight;
    cr_assert_eq(fixture_backward_losses(f, scales, accumulate, &err), ERR_OK,
                 "%s", err.text);
}

err_code_t fixture_backward_losses(fixture_t *f, const double *scales,
                                   bool accumulate, err_t *err)
{
    for (int k = 0; k < nn_graph_losses(f->graph); k++)
        f->step.scales[k] = scales[k];
    return nn_exec_backward(f->exec, &f->batch, accumulate, err);
}

double fixture_distance(const float *a, const float *b, size_t count)
{
    double distance = 0;

    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - (double)b[i]);

        if (!(d <= distance))
            distance = d;
    }
    return distance;
}

double fixture_largest(const float *a, size_t count)
{
    double largest = 0;

    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)a[i]) <= largest))
            largest = fabs((double)a[i]);
    return largest;
}
