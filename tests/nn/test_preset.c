/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Presets: published numbers of parameters, errors with their place, and equal
 * results on both backends. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/fixture.h"
#include "nn/preset.h"

#define BATCH 2

static nn_graph_t *preset_graph(const char *model, const char *loss)
{
    char yaml[256];

    snprintf(yaml, sizeof yaml, "model: {%s}\nloss: %s\n", model, loss);
    return fixture_graph(yaml);
}

/* Number of parameters, without the padding between tensors. */
static size_t parameters(const nn_graph_t *graph)
{
    size_t sum = 0;

    for (int i = 0; i < nn_graph_params(graph); i++)
        sum += nn_graph_param(graph, i)->count;
    return sum;
}

static void expect_parameters(const char *model, const char *loss, size_t count)
{
    nn_graph_t *graph = preset_graph(model, loss);

    cr_expect_eq(parameters(graph), count, "%s: %zu", model, parameters(graph));
    nn_graph_close(graph);
}

/* The numbers are those of torchvision and of the papers. */
Test(preset, sizes_are_those_of_the_originals)
{
    expect_parameters("preset: resnet18, input: [3, 224, 224], classes: 1000",
                      "cross_entropy", 11689512);
    expect_parameters("preset: resnet34, input: [3, 224, 224], classes: 1000",
                      "cross_entropy", 21797672);
    expect_parameters("preset: resnet50, input: [3, 224, 224], classes: 1000",
                      "cross_entropy", 25557032);
    expect_parameters("preset: resnet18, input: [3, 32, 32], classes: 10",
                      "cross_entropy", 11173962);
    expect_parameters("preset: lenet, input: [1, 28, 28], classes: 10",
                      "cross_entropy", 61706);
    /* The preset is one of the layers, and its input has another name. */
    expect_parameters("input: {image: [1, 28, 28]}, layers: [{preset: {lenet: "
                      "{classes: 10}}, from: input}]",
                      "cross_entropy", 61706);
    /* timm's vit_tiny_patch16_224 with average pooling (no class token, and a
     * norm after the last block). */
    expect_parameters("preset: vit, input: [3, 224, 224], classes: 1000",
                      "cross_entropy", 5717416 - 2 * 192);
    /* torchvision's vit_b_16. */
    expect_parameters("preset: vit, input: [3, 224, 224], classes: 1000, "
                      "width: 768, heads: 12, pool: token, eps: 1.0e-6",
                      "cross_entropy", 86567656);
    /* GPT-2 as published, and with an output layer that does not share the
     * embedding's weights. */
    expect_parameters("preset: gpt2, input: [1024]", "cross_entropy",
                      124439808);
    expect_parameters("preset: gpt2, input: [1024], tied: false",
                      "cross_entropy", 124439808 + 50257 * 768);
    /* torch.nn.LSTM(28, 16, 2, bidirectional=True) and a linear of 32 to 10. */
    expect_parameters("preset: lstm, input: [28, 28], out: 10, width: 16, "
                      "depth: 2, bidirectional: true",
                      "cross_entropy",
                      2 * 4 * 16 * (28 + 16 + 2) + 2 * 4 * 16 * (32 + 16 + 2) +
                          330);
    expect_parameters("preset: mlp, input: [1, 28, 28], classes: 10",
                      "cross_entropy", 669706);
    /* MLPerf HPC: five convolutions with kernels of 2^3, from 4 to 512
     * channels, then linear layers from 64 * 512 features to 128, 64 and 4. */
    expect_parameters("preset: cosmoflow, input: [4, 128, 128, 128]", "mse",
                      1394656 + 4194432 + 8256 + 260);
}

static void expect_shape_of(const nn_graph_t *graph, const char *name,
                            const char *shape)
{
    char text[NN_SHAPE_TEXT] = "no such layer";

    for (int i = 0; i < graph->layer_count; i++)
        if (strcmp(graph->layers[i].name, name) == 0)
            nn_shape_format(&graph->layers[i].out, text);
    cr_expect_str_eq(text, shape, "%s: %s", name, text);
}

Test(preset, stems_follow_the_image)
{
    nn_graph_t *large = preset_graph(
        "preset: resnet50, input: [3, 224, 224], classes: 5", "cross_entropy");
    nn_graph_t *small = preset_graph(
        "preset: resnet50, input: [3, 32, 32], classes: 5", "cross_entropy");
    nn_graph_t *forced = preset_graph(
        "preset: resnet18, input: [3, 32, 32], classes: 5, stem: imagenet",
        "cross_entropy");

    expect_shape_of(large, "stem", "[64, 56, 56]");
    expect_shape_of(large, "s1b3", "[256, 56, 56]");
    expect_shape_of(large, "s4b3", "[2048, 7, 7]");
    expect_shape_of(large, "pool", "[2048]");
    expect_shape_of(small, "stem", "[64, 32, 32]");
    expect_shape_of(small, "s4b3", "[2048, 4, 4]");
    expect_shape_of(forced, "stem", "[64, 8, 8]");
    nn_graph_close(large);
    nn_graph_close(small);
    nn_graph_close(forced);
}

Test(preset, options_change_the_layers)
{
    nn_graph_t *mlp = preset_graph("preset: mlp, input: [7], classes: 3, "
                                   "hidden: 5, batchnorm: true, dropout: 0.5",
                                   "cross_entropy");
    nn_graph_t *unet =
        preset_graph("preset: unet2d, input: [2, 16, 8], out: 3, width: 4, "
                     "depth: 2, mask: 0.25",
                     "mse");
    nn_graph_t *unet3d, *deepcam;

    cr_expect_eq(nn_graph_layers(mlp), 5);
    cr_expect_str_eq(nn_graph_layer(mlp, 1).kind, "batchnorm");
    cr_expect_eq(mlp->layers[3].config.rate, 0.5);
    unet3d = preset_graph("preset: unet3d, input: [1, 8, 16, 32], out: 1, "
                          "width: 4, depth: 3",
                          "bce");
    deepcam = preset_graph("preset: deepcam, input: [16, 96, 64], blocks: 0",
                           "cross_entropy");
    expect_shape_of(unet3d, "bottom", "[32, 1, 2, 4]");
    expect_shape_of(unet3d, "head", "[1, 8, 16, 32]");
    expect_shape_of(deepcam, "fine", "[64, 24, 16]");
    expect_shape_of(deepcam, "entry16", "[256, 6, 4]");
    expect_shape_of(deepcam, "encoded", "[128, 6, 4]");
    expect_shape_of(deepcam, "head", "[3, 96, 64]");
    nn_graph_close(unet3d);
    nn_graph_close(deepcam);
    expect_shape_of(unet, "mask", "[2, 16, 8]");
    expect_shape_of(unet, "down1", "[8, 8, 4]");
    expect_shape_of(unet, "bottom", "[16, 4, 2]");
    expect_shape_of(unet, "joined0", "[8, 16, 8]");
    expect_shape_of(unet, "head", "[3, 16, 8]");
    nn_graph_close(mlp);
    nn_graph_close(unet);
}

static void expect_cosmoflow(const char *options, const char *third)
{
    char model[128];
    nn_graph_t *graph;

    snprintf(model, sizeof model, "preset: cosmoflow, width: 4, %s", options);
    graph = preset_graph(model, "mse");
    expect_shape_of(graph, "maxpool3", third);
    expect_shape_of(graph, "linear2", "[64]");
    expect_shape_of(graph, "scale1", "[4]");
    cr_expect_float_eq(graph->layers[1].config.alpha, 0.3, 1e-12);
    cr_expect_float_eq(graph->layers[nn_graph_layers(graph) - 1].config.alpha,
                       1.2, 1e-12);
    nn_graph_close(graph);
}

/* Each stage halves the edge, whatever the kernel; an odd edge is rounded up,
 * because the pooling of 2 is padded. */
Test(preset, cosmoflow_takes_volumes_of_any_edge)
{
    expect_cosmoflow("input: [4, 32, 32, 32]", "[16, 4, 4, 4]");
    expect_cosmoflow("input: [1, 32, 40, 64]", "[16, 4, 5, 8]");
    expect_cosmoflow("input: [4, 32, 32, 32], kernel: 3", "[16, 4, 4, 4]");
    expect_cosmoflow("input: [4, 33, 35, 47], kernel: 3", "[16, 4, 4, 5]");
    expect_cosmoflow("input: [2, 8, 8, 9], depth: 3", "[16, 1, 1, 2]");
}

/* Standard deviation of the weights called [name]. */
static double spread(const nn_graph_t *graph, const float *params,
                     const char *name)
{
    for (int i = 0; i < nn_graph_params(graph); i++) {
        const nn_param_t *param = nn_graph_param(graph, i);
        double sum = 0;

        if (strcmp(param->name, name) != 0)
            continue;
        for (size_t k = 0; k < param->count; k++)
            sum += pow((double)params[param->offset + k], 2);
        return sqrt(sum / (double)param->count);
    }
    cr_assert_fail("there is no %s", name);
    return NAN;
}

Test(preset, gpt2_begins_as_published)
{
    nn_graph_t *graph =
        preset_graph("preset: gpt2, input: [64], vocabulary: 100, width: 64, "
                     "depth: 8, heads: 4, dropout: 0.1",
                     "cross_entropy");
    float *params = calloc(nn_graph_param_elems(graph), sizeof *params);

    expect_shape_of(graph, "b3_attention_in", "[64, 192]");
    expect_shape_of(graph, "b8_mlp_in", "[64, 256]");
    expect_shape_of(graph, "head", "[64, 100]");
    cr_expect_eq(nn_graph_input_info(graph, 0).tokens, 100);
    nn_graph_init(graph, 1, NULL, params, NULL);
    cr_expect_float_eq(spread(graph, params, "tokens.weight"), 0.02, 1e-3);
    cr_expect_float_eq(spread(graph, params, "b3_mlp_in.weight"), 0.02, 1e-3);
    cr_expect_float_eq(spread(graph, params, "b3_mlp_out.weight"), 0.005, 3e-4);
    cr_expect_float_eq(spread(graph, params, "b8_attention_out.weight"), 0.005,
                       3e-4);
    cr_expect_eq(spread(graph, params, "b1_mlp_in.bias"), 0);
    free(params);
    nn_graph_close(graph);
}

Test(preset, lstm_answers_once_or_for_each_token)
{
    nn_graph_t *once =
        preset_graph("preset: lstm, input: [9, 4], out: 3, width: 6, depth: 2, "
                     "bidirectional: true",
                     "cross_entropy");
    nn_graph_t *each =
        preset_graph("preset: lstm, input: [9], vocabulary: 20, out: 20, "
                     "width: 6, depth: 2, dropout: 0.5, each: true",
                     "cross_entropy");

    expect_shape_of(once, "l1", "[9, 12]");
    expect_shape_of(once, "l2", "[12]");
    expect_shape_of(once, "head", "[3]");
    expect_shape_of(each, "tokens", "[9, 6]");
    expect_shape_of(each, "d1", "[9, 6]");
    expect_shape_of(each, "l2", "[9, 6]");
    expect_shape_of(each, "head", "[9, 20]");
    nn_graph_close(once);
    nn_graph_close(each);
}

static void expect_error(const char *yaml, const char *begins, const char *says)
{
    nn_graph_t *graph = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(fixture_graph_try(yaml, &graph, &err), ERR_CONFIG, "%s", yaml);
    cr_expect_null(graph);
    cr_expect_eq(strncmp(err.text, begins, strlen(begins)), 0,
                 "expected: %s\n   found: %s", begins, err.text);
    cr_expect_not_null(strstr(err.text, says), "expected: %s\n   found: %s",
                       says, err.text);
}

#define LOSS "\nloss: cross_entropy\n"

Test(preset, every_sentence_has_its_place)
{
    expect_error("model: {preset: resnet19, input: [3, 8, 8], classes: 2}" LOSS,
                 "m.yaml:1:17: unknown preset 'resnet19'; did you mean "
                 "'resnet18'?",
                 "lenet");
    expect_error("model: {preset: [a], input: [3, 8, 8]}" LOSS,
                 "m.yaml:1:17: unknown preset ''", "known: mlp");
    expect_error("model: {preset: mlp, classes: 2}" LOSS,
                 "m.yaml:1:8: model.input is missing", "");
    expect_error("model: {preset: mlp, input: [3]}" LOSS,
                 "m.yaml:1:8: model.classes is missing", "");
    expect_error("model: {preset: mlp, input: [3], clases: 2}" LOSS,
                 "m.yaml:1:34: unknown key 'clases'", "classes");
    expect_error("model: {preset: mlp, input: [3], layers: [relu]}" LOSS,
                 "m.yaml:1:42: the model has a preset and layers", "");
    expect_error("model: {preset: lenet, input: [3], classes: 2}" LOSS,
                 "m.yaml:1:17: preset lenet takes samples of shape [channels, "
                 "height, width], but model.input is [3]",
                 "");
    expect_error("model: {preset: lenet, input: [3, 5, 5], classes: 2}" LOSS,
                 "m.yaml:1:17: layer conv2 (conv) with input [6, 2, 2]",
                 "does not fit");
    expect_error("model: {preset: gpt2, input: [3, 8]}" LOSS,
                 "m.yaml:1:17: preset gpt2 takes samples of shape [tokens], "
                 "but model.input is [3, 8]",
                 "");
    expect_error("model: {preset: gpt2, input: [8], heads: 5}" LOSS,
                 "m.yaml:1:17: preset gpt2: its width 768 is no multiple",
                 "5 heads");
    expect_error("model: {preset: lstm, input: [8], out: 2}" LOSS,
                 "m.yaml:1:17: preset lstm takes samples of shape [tokens, "
                 "features], but model.input is [8]",
                 "");
    expect_error("model: {preset: vit, input: [3, 16, 24], classes: 2}" LOSS,
                 "m.yaml:1:17: preset vit cuts images into patches of 16 x 16",
                 "multiples of 16, but one is 24");
    expect_error("model: {preset: vit, input: [3, 16, 16], classes: 2, "
                 "heads: 5}" LOSS,
                 "m.yaml:1:17: preset vit: its width 192", "5 heads");
    expect_error("model: {preset: unet2d, input: [3, 16, 24], out: 2}" LOSS,
                 "m.yaml:1:17: preset unet2d halves images 4 times",
                 "multiples of 16, but one is 24");
    expect_error("model: {preset: cosmoflow, input: [4, 64, 16, 64]}" LOSS,
                 "m.yaml:1:17: preset cosmoflow halves volumes 5 times",
                 "at least 32, but one is 16");
    expect_error("model: {preset: unet3d, input: [1, 16, 32, 24], out: 2}" LOSS,
                 "m.yaml:1:17: preset unet3d halves volumes 4 times",
                 "multiples of 16, but one is 24");
    expect_error("model: {preset: unet3d, input: [1, 16, 32], out: 2}" LOSS,
                 "m.yaml:1:17: preset unet3d takes samples of shape",
                 "[channels, depth, height, width]");
    expect_error("model: {preset: deepcam, input: [16, 32, 40]}" LOSS,
                 "m.yaml:1:17: preset deepcam makes images 16 times smaller",
                 "but one is 40");
    expect_error("model: {preset: cosmoflow, input: [4, 64, 64]}" LOSS,
                 "m.yaml:1:17: preset cosmoflow takes samples of shape",
                 "[4, 64, 64]");
}

Test(preset, documentation_names_all)
{
    static const nn_preset_t *const all[] = {
        &nn_preset_mlp,      &nn_preset_lenet,     &nn_preset_resnet18,
        &nn_preset_resnet34, &nn_preset_resnet50,  &nn_preset_unet2d,
        &nn_preset_vit,      &nn_preset_cosmoflow, &nn_preset_unet3d,
        &nn_preset_deepcam,  &nn_preset_gpt2,      &nn_preset_lstm};
    str_buf_t text = {0};

    nn_graph_document(&text);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        cr_expect_not_null(strstr(text.text, all[i]->name));
        for (const opt_row_t *row = all[i]->rows; row->name != NULL; row++)
            cr_expect_not_null(strstr(text.text, row->help), "%s", row->name);
    }
    str_buf_free(&text);
}

/* Check that outputs and gradients of cpu are close to those of ref. */
static void compare_backends(const char *model, const char *loss)
{
    nn_graph_t *graph = preset_graph(model, loss);
    const size_t elems = nn_graph_param_elems(graph);
    double sums[2];
    fixture_t f[2];

    for (int b = 0; b < 2; b++) {
        fixture_open(&f[b], graph, b == 0 ? "ref" : "cpu", 0, BATCH, true);
        sums[b] = fixture_forward(&f[b]);
        fixture_backward(&f[b], 1, false);
    }
    cr_expect_float_eq(sums[0], sums[1], 1e-4 * fabs(sums[0]), "%s: %g %g",
                       model, sums[0], sums[1]);
    cr_expect_lt(fixture_distance(f[0].bind.grads, f[1].bind.grads, elems),
                 2e-3 * fixture_largest(f[0].bind.grads, elems), "%s", model);
    fixture_close(&f[0]);
    fixture_close(&f[1]);
    nn_graph_close(graph);
}

Test(preset, cpu_agrees_with_ref)
{
    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    compare_backends("preset: mlp, input: [9], classes: 4, hidden: [7, 8]",
                     "cross_entropy");
    compare_backends("preset: lenet, input: [1, 20, 20], classes: 4",
                     "cross_entropy");
    compare_backends("preset: resnet18, input: [2, 16, 16], classes: 3, "
                     "width: 4",
                     "cross_entropy");
    compare_backends("preset: resnet50, input: [2, 65, 33], classes: 3, "
                     "width: 2",
                     "cross_entropy");
    compare_backends("preset: vit, input: [2, 8, 12], classes: 3, patch: 4, "
                     "width: 12, heads: 3, depth: 2, dropout: 0.1",
                     "cross_entropy");
    compare_backends("preset: vit, input: [2, 8, 12], classes: 3, patch: 4, "
                     "width: 12, heads: 3, depth: 2, pool: token",
                     "cross_entropy");
    compare_backends("preset: unet2d, input: [2, 16, 8], out: 2, width: 4, "
                     "depth: 2",
                     "mse");
    compare_backends("preset: gpt2, input: [9], vocabulary: 11, width: 12, "
                     "depth: 2, heads: 3, dropout: 0.1",
                     "cross_entropy");
    compare_backends("preset: unet3d, input: [1, 4, 8, 4], out: 2, width: 3, "
                     "depth: 2",
                     "mse");
    compare_backends("preset: lstm, input: [9], vocabulary: 11, out: 11, "
                     "width: 6, depth: 2, dropout: 0.2, each: true",
                     "cross_entropy");
    compare_backends("preset: lstm, input: [5, 7], out: 3, width: 6, depth: 2, "
                     "bidirectional: true",
                     "cross_entropy");
    compare_backends("preset: deepcam, input: [3, 32, 48], width: 3, "
                     "blocks: 1",
                     "cross_entropy");
    compare_backends("preset: cosmoflow, input: [2, 8, 9, 12], width: 3, "
                     "depth: 3, hidden: [9, 7]",
                     "mse");
}

/* ---- among the layers ---------------------------------------------------- */

Test(preset, alone_among_the_layers_it_is_the_model)
{
    static const char *const models[][2] = {
        {"{input: [3, 16, 16], preset: lenet, classes: 3}",
         "{input: [3, 16, 16], layers: [{preset: {lenet: {classes: 3}}}]}"},
        {"{input: [9, 4], preset: lstm, out: 2, bidirectional: true}",
         "{input: [9, 4], layers: [{preset: {lstm: {out: 2, bidirectional: "
         "true}}, from: input}]}"},
        {"{input: {rows: [9, 4]}, preset: lstm, out: 2, bidirectional: true}",
         "{input: {rows: [9, 4]}, layers: [preset: {lstm: {out: 2, "
         "bidirectional: true}}]}"},
        {"{input: [12], preset: gpt2, vocabulary: 7, width: 8, depth: 2, "
         "heads: 2}",
         "{input: {text: [12]}, layers: [{preset: {gpt2: {vocabulary: 7, "
         "width: 8, depth: 2, heads: 2}}, from: text}]}"},
        {"{input: [1, 16, 16, 16], preset: cosmoflow, depth: 3}",
         "{input: [1, 16, 16, 16], layers: [preset: {cosmoflow: {depth: 3}}]}"},
    };

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        uint64_t hashes[2];

        for (int k = 0; k < 2; k++) {
            char *yaml = str_printf("model: %s\nloss: %s\n", models[i][k],
                                    strstr(models[i][k], "cosmoflow") != NULL
                                        ? "mse"
                                        : "cross_entropy");
            nn_graph_t *graph = fixture_graph(yaml);

            hashes[k] = nn_graph_hash(graph);
            nn_graph_close(graph);
            free(yaml);
        }
        cr_expect_eq(hashes[0], hashes[1], "%s", models[i][1]);
    }
}

Test(preset, several_work_side_by_side)
{
    nn_graph_t *graph = fixture_graph(
        "model:\n"
        "  input: {left: [1, 16, 16], right: [1, 16, 16], words: [9], rows: "
        "[5, 4]}\n"
        "  layers:\n"
        "    - {preset: {lenet: {classes: 6}}, from: left, name: a}\n"
        "    - {preset: {resnet18: {classes: 7, width: 4}}, from: right, "
        "name: b}\n"
        "    - {preset: {lstm: {out: 3, width: 4, depth: 2, bidirectional: "
        "true}}, from: rows, name: d}\n"
        "    - {preset: {gpt2: {vocabulary: 11, width: 8, depth: 1, heads: "
        "2}}, from: words, name: c}\n"
        "    - {name: told, mean: {axes: 1}}\n"
        "    - {concat: , from: [a, b, told, d]}\n"
        "    - linear: {out: 2}\n"
        "loss: cross_entropy\n");

    expect_shape_of(graph, "a", "[6]");
    expect_shape_of(graph, "stem_conv_b", "[4, 16, 16]");
    expect_shape_of(graph, "b", "[7]");
    expect_shape_of(graph, "tokens_c", "[9, 8]");
    expect_shape_of(graph, "c", "[9, 11]");
    expect_shape_of(graph, "l1_there_d", "[5, 4]");
    nn_graph_close(graph);
}
