/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a built graph reports: shapes, names, arenas, documentation. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "nn/fixture.h"

static void expect_layer(const nn_graph_t *graph, int index, const char *name,
                         const char *shape)
{
    const nn_layer_t *layer = &graph->layers[index];
    char text[NN_SHAPE_TEXT];

    cr_expect_str_eq(nn_graph_layer(graph, index).name, name);
    cr_expect_str_eq(nn_shape_format(&layer->out, text), shape, "%s: %s", name,
                     text);
}

Test(graph, shapes_and_names_of_a_cnn)
{
    nn_graph_t *graph = fixture_graph(fixture_cnn);

    cr_expect_eq(nn_graph_layers(graph), 11);
    expect_layer(graph, 0, "conv1", "[6, 8, 8]");
    expect_layer(graph, 1, "batchnorm1", "[6, 8, 8]");
    expect_layer(graph, 2, "relu1", "[6, 8, 8]");
    expect_layer(graph, 3, "maxpool1", "[6, 4, 4]");
    expect_layer(graph, 4, "conv2", "[4, 2, 2]");
    expect_layer(graph, 5, "relu2", "[4, 2, 2]");
    expect_layer(graph, 6, "dropout1", "[4, 2, 2]");
    expect_layer(graph, 7, "flatten1", "[16]");
    expect_layer(graph, 8, "linear1", "[5]");
    expect_layer(graph, 10, "linear2", "[3]");
    cr_expect_eq(nn_graph_layer(graph, 4).params, 4 * 3 * 3 * 2 + 4);
    cr_expect_str_eq(nn_graph_layer(graph, 4).kind, "conv");
    cr_expect_str_eq(nn_graph_loss_info(graph, 0).kind, "cross_entropy");
    cr_expect_eq(nn_graph_loss_info(graph, 0).classes, 3);
    cr_expect_eq(nn_graph_loss_info(graph, 0).elems, 1);
    cr_expect_eq(nn_loss_denominator(graph, 0, 12), 12);
    cr_expect_eq(nn_graph_input_info(graph, 0).ndim, 3);
    cr_expect_eq(nn_graph_input_info(graph, 0).dims[0], 2);
    cr_expect_eq(nn_graph_input_info(graph, 0).dims[2], 8);
    nn_graph_close(graph);
}

Test(graph, options_reach_the_op)
{
    nn_graph_t *graph =
        fixture_graph("model:\n"
                      "  input: [4, 9, 9]\n"
                      "  layers:\n"
                      "    - conv:\n"
                      "        out: 6\n"
                      "        kernel: [3, 2]\n"
                      "        stride: 2\n"
                      "        pad: [1, 0]\n"
                      "        dilation: [1, 2]\n"
                      "        groups: 2\n"
                      "        bias: false\n"
                      "    - batchnorm: {eps: 0.5}\n"
                      "    - maxpool: {kernel: [2, 3], pad: 1}\n"
                      "    - dropout: {rate: 0.125}\n"
                      "loss: mse\n");
    const op_config_t *conv = &graph->layers[0].config;
    const op_config_t *pool = &graph->layers[2].config;

    cr_expect_eq(conv->conv.kernel[1], 2);
    cr_expect_eq(conv->conv.stride[1], 2);
    cr_expect_eq(conv->conv.pad[0], 1);
    cr_expect_eq(conv->conv.pad[1], 0);
    cr_expect_eq(conv->conv.dilation[1], 2);
    cr_expect_eq(conv->conv.groups, 2);
    cr_expect_not(conv->bias);
    cr_expect_eq(graph->layers[1].config.epsilon, 0.5);
    cr_expect_eq(graph->layers[1].momentum, 0.1);
    cr_expect_eq(pool->pool.stride[0], 2, "the kernel's, by default");
    cr_expect_eq(pool->pool.stride[1], 3);
    cr_expect_eq(graph->layers[3].config.rate, 0.125);
    nn_graph_close(graph);
}

Test(graph, linear_flattens_by_itself)
{
    nn_graph_t *graph =
        fixture_graph("model: {input: [2, 3, 4], layers: [linear: {out: 5}]}\n"
                      "loss: {mse: }\n");

    expect_layer(graph, 0, "linear1", "[5]");
    cr_expect_eq(nn_graph_param(graph, 1)->dims[1], 24);
    cr_expect_eq(nn_graph_loss_info(graph, 0).classes, 0);
    cr_expect_eq(nn_graph_loss_info(graph, 0).elems, 5);
    cr_expect_eq(nn_loss_denominator(graph, 0, 3), 15);
    nn_graph_close(graph);
}

Test(graph, names_are_given_or_counted_by_kind)
{
    nn_graph_t *graph = fixture_graph("model:\n"
                                      "  input: [3]\n"
                                      "  layers:\n"
                                      "    - {linear: {out: 4}, name: in-1}\n"
                                      "    - {name: act, relu: }\n"
                                      "    - {from: act, linear: {out: 4}}\n"
                                      "    - {relu: {}, from: [linear2]}\n"
                                      "loss: cross_entropy\n");

    cr_expect_str_eq(nn_graph_layer(graph, 0).name, "in-1");
    cr_expect_str_eq(nn_graph_layer(graph, 1).name, "act");
    cr_expect_str_eq(nn_graph_layer(graph, 2).name, "linear2");
    cr_expect_str_eq(nn_graph_layer(graph, 3).name, "relu2");
    cr_expect_str_eq(nn_graph_param(graph, 3)->name, "in-1.weight");
    nn_graph_close(graph);
}

Test(graph, parameters_lie_in_reverse_order_of_use)
{
    static const char *const names[] = {"linear2.bias",    "linear2.weight",
                                        "linear1.bias",    "linear1.weight",
                                        "conv2.bias",      "conv2.weight",
                                        "batchnorm1.bias", "batchnorm1.weight",
                                        "conv1.bias",      "conv1.weight"};
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    size_t end = 0;

    cr_assert_eq(nn_graph_params(graph), 10);
    for (int i = 0; i < 10; i++) {
        const nn_param_t *p = nn_graph_param(graph, i);

        cr_expect_str_eq(p->name, names[i]);
        cr_expect_eq(p->offset, end, "%s", p->name);
        end = (p->offset + p->count + 15) / 16 * 16;
    }
    cr_expect_eq(nn_graph_param_elems(graph), end);
    cr_expect_eq(nn_graph_param(graph, 5)->ndim, 4);
    cr_expect_eq(nn_graph_param(graph, 5)->dims[1], 3);
    cr_expect_eq(nn_graph_param(graph, 5)->layer, 4);
    nn_graph_close(graph);
}

/* A frozen batch norm keeps its running statistics, and needs no sums of other
 * ranks. */
Test(graph, frozen_batch_norm_has_no_moments)
{
    static const char yaml[] =
        "model:\n"
        "  input: [2, 4, 4]\n"
        "  layers:\n"
        "    - conv: {out: 3, kernel: 3}\n"
        "    - batchnorm: {frozen: true}\n"
        "    - syncbatchnorm: {frozen: true, affine: false}\n"
        "    - batchnorm\n"
        "    - linear: {out: 2}\n"
        "loss: cross_entropy\n";
    nn_graph_t *graph = fixture_graph(yaml);
    const double moments[6] = {16, 16, 16, 32, 32, 32};
    float buffers[6 * NN_TENSOR_ALIGN] = {0};

    cr_expect_eq(nn_graph_buffers(graph), 6);
    cr_expect_eq(nn_graph_syncs(graph), 0);
    cr_assert_eq(nn_graph_moment_elems(graph), 6);
    cr_assert_eq(nn_graph_buffer_elems(graph), 6 * NN_TENSOR_ALIGN);
    nn_graph_fold_moments(graph, moments, 4, buffers);
    for (int i = 0; i < 4 * NN_TENSOR_ALIGN; i++)
        cr_expect_eq(buffers[i], 0, "number %d of what is frozen changed", i);
    cr_expect_neq(buffers[4 * NN_TENSOR_ALIGN], 0);
    nn_graph_close(graph);
}

static void sync_expect(const nn_graph_t *graph, int index, size_t count,
                        bool back, int grads)
{
    const nn_sync_t sync = nn_graph_sync(graph, index);

    cr_expect_eq(sync.count, count, "call %d: %zu numbers", index, sync.count);
    cr_expect_eq(sync.back, back, "call %d", index);
    cr_expect_eq(sync.grads, grads, "call %d: %d gradients", index, sync.grads);
}

/* The arena begins with the weight and bias of the last layer. The first layer
 * has no backward, as it has no parameters, and no layer before it. */
Test(graph, sums_of_syncbatchnorm)
{
    nn_graph_t *graph = fixture_graph("model:\n"
                                      "  input: [3, 4, 4]\n"
                                      "  layers:\n"
                                      "    - syncbatchnorm: {affine: false}\n"
                                      "    - conv: {out: 5, kernel: 1}\n"
                                      "    - syncbatchnorm\n"
                                      "    - conv: {out: 7, kernel: 1}\n"
                                      "    - syncbatchnorm: {affine: false}\n"
                                      "    - linear: {out: 2}\n"
                                      "loss: cross_entropy\n");

    cr_assert_eq(nn_graph_syncs(graph), 3);
    cr_assert_eq(nn_graph_params(graph), 8);
    sync_expect(graph, 0, 7, false, 0);
    sync_expect(graph, 1, 11, false, 0);
    sync_expect(graph, 2, 15, false, 0);
    sync_expect(graph, 3, 14, true, 2);
    sync_expect(graph, 4, 10, true, 4);
    sync_expect(graph, 5, 0, true, 8);
    nn_graph_close(graph);
}

Test(graph, buffers_and_moments_of_batch_norm)
{
    nn_graph_t *graph = fixture_graph("model:\n"
                                      "  input: [3, 4, 4]\n"
                                      "  layers:\n"
                                      "    - batchnorm\n"
                                      "    - conv: {out: 20, kernel: 1}\n"
                                      "    - batchnorm\n"
                                      "loss: mse\n");

    cr_assert_eq(nn_graph_buffers(graph), 4);
    cr_expect_str_eq(nn_graph_buffer(graph, 0)->name,
                     "batchnorm1.running_mean");
    cr_expect_str_eq(nn_graph_buffer(graph, 3)->name, "batchnorm2.running_var");
    cr_expect_eq(nn_graph_buffer(graph, 1)->offset, 16);
    cr_expect_eq(nn_graph_buffer(graph, 3)->offset, 64);
    cr_expect_eq(nn_graph_buffer(graph, 3)->count, 20);
    cr_expect_eq(nn_graph_buffer_elems(graph), 96);
    cr_expect_eq(nn_graph_moment_elems(graph), 46);
    cr_expect_eq(graph->layers[2].moments, 6);
    nn_graph_close(graph);
}

Test(graph, documentation_names_every_kind_and_option)
{
    str_buf_t text = {0};

    nn_graph_document(&text);
    for (int i = 0; nn_layer_kinds()[i] != NULL; i++) {
        cr_expect_not_null(strstr(text.text, nn_layer_kinds()[i]->name));
        for (const opt_row_t *row = nn_layer_kinds()[i]->rows;
             row->name != NULL; row++)
            cr_expect_not_null(strstr(text.text, row->help), "%s", row->name);
    }
    cr_expect_not_null(strstr(text.text, "cross_entropy"));
    cr_expect_not_null(strstr(text.text, "mse"));
    str_buf_free(&text);
}

static void expect_from(const nn_graph_t *graph, const char *name,
                        const char *from)
{
    str_buf_t text = {0};

    for (int i = 0; i < graph->layer_count; i++) {
        const nn_layer_t *layer = &graph->layers[i];

        if (strcmp(layer->name, name) != 0)
            continue;
        for (int k = 0; k < layer->inputs; k++)
            str_buf_add(&text, "%s%s", k > 0 ? " " : "",
                        layer->from[k] == NN_INPUT
                            ? "input"
                            : graph->layers[layer->from[k]].name);
    }
    cr_expect_str_eq(text.text == NULL ? "no such layer" : text.text, from,
                     "%s", name);
    str_buf_free(&text);
}

Test(graph, from_names_any_earlier_layers)
{
    nn_graph_t *graph = fixture_graph(fixture_graph_model);

    expect_from(graph, "stem", "input");
    expect_from(graph, "a_1", "stem");
    expect_from(graph, "sum_1", "stem act_1 a_1 stem");
    expect_from(graph, "a_2", "sum_1");
    expect_from(graph, "sum_2", "sum_1 act_2 a_2 stem");
    expect_from(graph, "twice", "sum_2 sum_2");
    expect_from(graph, "wide", "s2 s3 act_2 input");
    expect_from(graph, "slice1", "wide");
    expect_layer(graph, 13, "wide", "[14, 6, 6]");
    expect_layer(graph, 14, "slice1", "[9, 6, 6]");
    expect_layer(graph, 15, "upsample1", "[9, 12, 12]");
    expect_layer(graph, 18, "mean1", "[9]");
    expect_layer(graph, 21, "shaped", "[3, 3]");
    nn_graph_close(graph);
}

Test(graph, repeats_may_lie_in_repeats)
{
    nn_graph_t *graph = fixture_graph(
        "model:\n"
        "  input: [3]\n"
        "  layers:\n"
        "    - {name: a, linear: {out: 3}}\n"
        "    - repeat:\n"
        "        times: 2\n"
        "        layers:\n"
        "          - {name: b, linear: {out: 3}}\n"
        "          - repeat:\n"
        "              times: 2\n"
        "              layers:\n"
        "                - {name: c, linear: {out: 3}, share: b}\n"
        "                - {add: , name: d, from: [a, b, c, entry]}\n"
        "          - {relu: , name: f}\n"
        "          - {add: , name: e, from: [entry, f]}\n"
        "    - repeat: {times: 1, layers: [{relu: , from: d_2_2}]}\n"
        "    - {add: , from: [e_2, relu3]}\n"
        "loss: mse\n");

    /* Each of two rounds has one parameter of b and two of c. */
    cr_expect_eq(nn_graph_params(graph), 2 * 3);
    cr_expect_str_eq(nn_graph_param(graph, 1)->name, "b_2.weight");
    expect_from(graph, "b_1", "a");
    expect_from(graph, "d_1_1", "a b_1 c_1_1 b_1");
    expect_from(graph, "d_1_2", "a b_1 c_1_2 d_1_1");
    expect_from(graph, "f_1", "d_1_2");
    expect_from(graph, "e_1", "a f_1");
    expect_from(graph, "b_2", "e_1");
    expect_from(graph, "d_2_1", "a b_2 c_2_1 b_2");
    expect_from(graph, "e_2", "e_1 f_2");
    expect_from(graph, "relu3", "d_2_2");
    expect_from(graph, "add7", "e_2 relu3");
    nn_graph_close(graph);
}
