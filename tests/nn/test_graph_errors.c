/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Every sentence about a wrong model, with its place. */
#include <criterion/criterion.h>
#include <string.h>

#include "nn/fixture.h"

typedef struct wrong {
    const char *yaml;
    const char *begins; /* of the sentence */
    const char *says[3];
} wrong_t;

/* The layer stands in line 4, column 7. */
#define LAYER(text) "model:\n  input: [3, 8, 8]\n  layers:\n    - " text
#define LOSS "\nloss: cross_entropy\n"
#define HEAD "\n    - linear: {out: 2}" LOSS

static const wrong_t wrongs[] = {
    {LAYER("convv: {out: 2}") HEAD,
     "m.yaml:4:7: unknown layer 'convv'; did you mean 'conv'?",
     {"flatten"}},
    {LAYER("wavelet") HEAD,
     "m.yaml:4:7: unknown layer 'wavelet' (known: ",
     {"linear, conv"}},
    {LAYER("linear") HEAD,
     "m.yaml:4:7: model.layers[0].linear.out is missing",
     {NULL}},
    {LAYER("linear:") HEAD, "m.yaml:4:7: ", {"linear.out is missing"}},
    {LAYER("conv: 3") HEAD,
     "m.yaml:4:13: model.layers[0].conv: expected",
     {NULL}},
    {LAYER("conv: {out: 2, kernl: 3}") HEAD,
     "m.yaml:4:22: unknown key 'kernl'",
     {"kernel"}},
    {LAYER("conv: {out: 2, kernel: [1, 2, 3]}") HEAD,
     "m.yaml:4:30: kernel takes one number, or one for each of the 2 "
     "dimensions",
     {NULL}},
    {LAYER("conv: {out: 0, kernel: 3}") HEAD, "m.yaml:4:19: ", {"conv.out"}},
    {LAYER("conv: {out: 2, kernel: 11}") HEAD,
     "m.yaml:4:7: layer conv1 (conv)",
     {"[3, 8, 8]", "[11, 11]"}},
    {LAYER("conv: {out: 4, kernel: 3, groups: 2}") HEAD,
     "m.yaml:4:7: layer conv1 (conv) with input [3, 8, 8]",
     {"groups"}},
    {LAYER("flatten\n    - conv: {out: 4, kernel: 3}") HEAD,
     "m.yaml:5:7: layer conv1 (conv) with input [192]",
     {"channels, 1 to 3 dimensions"}},
    {LAYER("maxpool: {kernel: 2, pad: 2}") HEAD,
     "m.yaml:4:33: maxpool's pad 2 is more than half its kernel 2",
     {NULL}},
    {LAYER("{name: pool, maxpool: {kernel: 9}}") HEAD,
     "m.yaml:4:20: layer pool (maxpool) with input [3, 8, 8]",
     {"[9, 9]"}},
    {LAYER("dropout: {rate: 1}") HEAD, "m.yaml:4:23: ", {"dropout.rate"}},
    {LAYER("batchnorm: {eps: 0}") HEAD, "m.yaml:4:24: ", {"batchnorm.eps"}},
    {LAYER("{relu: , flatten: }") HEAD,
     "m.yaml:4:16: one layer has two kinds, 'relu' and 'flatten'",
     {NULL}},
    {LAYER("{name: a}") HEAD, "m.yaml:4:7: this layer names no kind", {NULL}},
    {LAYER("[relu]") HEAD, "m.yaml:4:7: a layer is a name or a map", {NULL}},
    {LAYER("{relu: , name: a}\n    - {relu: , name: a}") HEAD,
     "m.yaml:5:22: two layers are called 'a'",
     {"m.yaml:4:8"}},
    {LAYER("{relu: , name: relu2}\n    - relu") HEAD,
     "m.yaml:5:7: two layers are called 'relu2'",
     {"m.yaml:4:8"}},
    {LAYER("{relu: , name: a.b}") HEAD,
     "m.yaml:4:22: a layer's name is made",
     {"'a.b'"}},
    {LAYER("{relu: , name: input}") HEAD,
     "m.yaml:4:22: a layer's name is",
     {NULL}},
    {LAYER("relu\n    - flatten\n    - {relu: , from: relu1}") HEAD,
     "m.yaml:5:7: nothing uses the output of layer flatten1 (flatten)",
     {"from of a later layer"}},
    {LAYER("relu\n    - {flatten: , from: [relu1, input]}") HEAD,
     "m.yaml:5:25: layer flatten1 (flatten) takes 1 input, but from names 2",
     {NULL}},
    {LAYER("{relu: , name: act}\n    - {add: , from: [akt, input]}") HEAD,
     "m.yaml:5:22: layer add1: from names 'akt', but no layer is called so",
     {"did you mean 'act'?"}},
    {LAYER("relu\n    - {flatten: , from: nothing}") HEAD,
     "m.yaml:5:25: layer flatten1: from names 'nothing', but no layer",
     {"{name: nothing, relu: }"}},
    {LAYER("{relu: , from: flatten1}\n    - flatten") HEAD,
     "m.yaml:4:22: layer relu1: from names 'flatten1', which comes after it",
     {"cycle"}},
    {LAYER("{relu: , from: relu1}") HEAD,
     "m.yaml:4:22: layer relu1: from names 'relu1', which is the layer itself",
     {"cycle"}},
    {LAYER("{relu: , from: {a: b}}") HEAD,
     "m.yaml:4:22: layer relu1: from takes names",
     {NULL}},
    {LAYER("{relu: , from: entry}") HEAD,
     "m.yaml:4:22: layer relu1: 'entry' is what an iteration starts from",
     {"inside of a repeat"}},
    {LAYER("add") HEAD,
     "m.yaml:4:7: layer add1 (add) takes 2 to 8 inputs",
     {"{add: , from: [a, b]}"}},
    {LAYER("{mul: , from: [input]}") HEAD,
     "m.yaml:4:21: layer mul1 (mul) takes 2 to 8 inputs",
     {NULL}},
    {LAYER("{add: , from: [input, input, input, input, input, input, input, "
           "input, input]}") HEAD,
     "m.yaml:4:21: layer add1 (add) takes 2 to 8 inputs, but from names 9",
     {NULL}},
    {LAYER("conv: {out: 4, kernel: 3}\n    - {add: , from: [conv1, input]}")
         HEAD,
     "m.yaml:5:8: layer add1 (add) with input [4, 6, 6]: ",
     {"input 1 is [1, 4, 6, 6]", "input 2 is [1, 3, 8, 8]"}},
    {LAYER("conv: {out: 4, kernel: 3}\n    - {concat: , from: [conv1, input]}")
         HEAD,
     "m.yaml:5:8: layer concat1 (concat) with input [4, 6, 6]: ",
     {"[1, 4, 6, 6]", "[1, 3, 8, 8]"}},
    {LAYER("{concat: {axis: 4}, from: [input, input]}") HEAD,
     "m.yaml:4:8: layer concat1",
     {"no axis 4"}},
    {LAYER("reshape: {shape: [5, -1]}") HEAD,
     "m.yaml:4:7: layer reshape1 (reshape) with input [3, 8, 8]: ",
     {"192 elements"}},
    {LAYER("reshape: {shape: [-1, -1]}") HEAD,
     "m.yaml:4:24: a shape has positive numbers, and at most one -1",
     {NULL}},
    {LAYER("permute: {order: [1, 2]}") HEAD,
     "m.yaml:4:7: layer permute1 (permute) with input [3, 8, 8]: ",
     {"1 to 3 once"}},
    {LAYER("slice: {start: 2, size: 2}") HEAD,
     "m.yaml:4:7: layer slice1 (slice) with input [3, 8, 8]: ",
     {"dimension 1, which has 3"}},
    {LAYER("mean: {axes: [1, 3]}") HEAD,
     "m.yaml:4:20: axes must be neighbours",
     {"[2, 3]"}},
    {LAYER("upsample: {factor: [2, 2, 2]}") HEAD,
     "m.yaml:4:7: layer upsample1 (upsample) with input [3, 8, 8]: ",
     {"one factor"}},
    {LAYER("linear: {out: 5}\n    - {linear: {out: 5}, share: linear1}") HEAD,
     "m.yaml:5:8: layer linear2 needs a weight of shape [5, 5]",
     {"share that of layer linear1, which is [5, 192]"}},
    {LAYER("linear: {out: 5}\n    - {linear: {out: 5, bias: no}, share: "
           "linear1}") HEAD,
     "m.yaml:5:8: layer linear2 has 1 parameters and cannot share the 2 of "
     "layer linear1",
     {NULL}},
    {LAYER("relu\n    - {linear: {out: 5}, share: relu1}") HEAD,
     "m.yaml:5:33: layer linear1 (linear) cannot share the parameters of relu1 "
     "(relu)",
     {NULL}},
    {LAYER("{linear: {out: 5}, share: input}") HEAD,
     "m.yaml:4:33: layer linear1 (linear) cannot share the parameters of input",
     {NULL}},
    {LAYER("relu\n    - {relu: , share: relu1}") HEAD,
     "m.yaml:5:23: layer relu2: a relu has no parameters to share",
     {NULL}},
    {LAYER("batchnorm\n    - {batchnorm: , share: batchnorm1}") HEAD,
     "m.yaml:5:28: layer batchnorm2: a batchnorm has running statistics",
     {NULL}},
    {LAYER("{conv: {out: 2, kernel: 3}, init: kaimin}") HEAD,
     "m.yaml:4:41: unknown init 'kaimin'; did you mean 'kaiming'?",
     {"normal, zeros"}},
    {LAYER("{conv: {out: 2, kernel: 3}, init: {xavier: {gian: 2}}}") HEAD,
     "m.yaml:4:51: unknown key 'gian' in model.layers[0].init.xavier",
     {"'gain'"}},
    {LAYER("{conv: {out: 2, kernel: 3}, init: [zeros]}") HEAD,
     "m.yaml:4:41: layer conv1: init is a name or a map with one name",
     {"{kaiming: {mode: fan_out}}"}},
    {LAYER("{relu: , init: zeros}") HEAD,
     "m.yaml:4:22: layer relu1: a relu has no parameters to begin with",
     {NULL}},
    {LAYER("{batchnorm: , init: xavier}") HEAD,
     "m.yaml:4:8: layer batchnorm1: init xavier needs a weight of two or more",
     {"zeros or normal"}},
    {LAYER("linear: {out: 192}\n    - {linear: {out: 192}, share: linear1, "
           "init: zeros}") HEAD,
     "m.yaml:5:50: layer linear2 shares its parameters",
     {NULL}},
    {LAYER("{repeat: {times: 2, layers: [relu]}, init: zeros}") HEAD,
     "m.yaml:4:8: a repeat takes what the layer before it gives",
     {"init"}},
    {LAYER("attention: {heads: 2}") HEAD,
     "m.yaml:4:7: layer attention1 (attention) with input [3, 8, 8]: ",
     {"[N, tokens, features]"}},
    {LAYER("reshape: {shape: [12, 16]}\n    - attention: {heads: 2}") HEAD,
     "m.yaml:5:7: layer attention1 (attention) with input [12, 16]: ",
     {"a multiple of 6"}},
    {LAYER(
         "reshape: {shape: [12, 16]}\n    - attention: {heads: 3, kv_heads: 2}")
         HEAD,
     "m.yaml:5:7: layer attention1 (attention) with input [12, 16]: ",
     {"multiple of kv_heads, which is 2"}},
    {LAYER("relu\n    - embedding: {vocabulary: 5, out: 4}") HEAD,
     "m.yaml:5:7: layer embedding1 (embedding) with input [3, 8, 8]: ",
     {"let it read the model's input"}},
    {LAYER("embedding: {vocabulary: 5}") HEAD,
     "m.yaml:4:18: model.layers[0].embedding.out is missing",
     {NULL}},
    {LAYER("embedding: {vocabulary: 0, out: 4}") HEAD,
     "m.yaml:4:31: model.layers[0].embedding.vocabulary",
     {NULL}},
    {LAYER(
         "embedding: {vocabulary: 5, out: 4}\n    - {flatten: , from: input}\n"
         "    - {add: , from: [embedding1, flatten1]}") HEAD,
     "m.yaml:5:8: layer flatten1 (flatten) takes the input as real numbers, "
     "but layer embedding1 (embedding) at m.yaml:4:7 takes it as tokens",
     {NULL}},
    {LAYER("flatten\n    - {embedding: {vocabulary: 5, out: 4}, from: input}\n"
           "    - {add: , from: [embedding1, flatten1]}") HEAD,
     "m.yaml:5:8: layer embedding1 (embedding) takes the input as tokens, but "
     "layer flatten1 (flatten) at m.yaml:4:7 takes it as real numbers",
     {NULL}},
    {LAYER(
         "embedding: {vocabulary: 5, out: 4}\n    - {linear: {out: 5, flatten: "
         "false}, share: embedding1}") HEAD,
     "m.yaml:5:8: layer linear1 has 2 parameters and cannot share the 1 of "
     "layer embedding1",
     {NULL}},
    {LAYER("embedding: {vocabulary: 5, out: 4}\n    - {linear: {out: 5, bias: "
           "false}, share: embedding1}") HEAD,
     "m.yaml:5:8: layer linear1 needs a weight of shape [5, 768] and cannot "
     "share that of layer embedding1, which is [5, 4]",
     {NULL}},
    {LAYER("reshape: {shape: [12, 16]}\n    - rotary: {heads: 2}") HEAD,
     "m.yaml:5:7: layer rotary1 (rotary) with input [12, 16]: ",
     {"16 features must be a multiple of 12"}},
    {LAYER("rotary: {heads: 2}") HEAD,
     "m.yaml:4:7: layer rotary1 (rotary) with input [3, 8, 8]: ",
     {"[N, tokens, features]"}},
    {LAYER("gelu: {approximate: erf}") HEAD,
     "m.yaml:4:27: model.layers[0].gelu.approximate",
     {"tanh"}},
    {LAYER("leaky_relu: {slope: -1}") HEAD,
     "m.yaml:4:27: model.layers[0].leaky_relu.slope",
     {NULL}},
    {LAYER("groupnorm: {groups: 2}") HEAD,
     "m.yaml:4:7: layer groupnorm1 (groupnorm) with input [3, 8, 8]: ",
     {"groups"}},
    {LAYER("layernorm: {axis: 4}") HEAD,
     "m.yaml:4:7: layer layernorm1 (layernorm) with input [3, 8, 8]: ",
     {"no dimension 4"}},
    {LAYER("repeat: {times: 2, layers: [relu], name: a}") HEAD,
     "m.yaml:4:42: unknown key 'name'",
     {NULL}},
    {LAYER("{repeat: {times: 2, layers: [relu]}, name: a}") HEAD,
     "m.yaml:4:8: a repeat takes what the layer before it gives",
     {NULL}},
    {LAYER("repeat: {times: 2, layer: [relu]}") HEAD,
     "m.yaml:4:26: unknown key 'layer'",
     {"layers"}},
    {LAYER("repeat: {times: 0, layers: [relu]}") HEAD,
     "m.yaml:4:23: model.layers[0].repeat.times",
     {NULL}},
    {LAYER("repeat: {times: 2, layers: []}") HEAD,
     "m.yaml:4:34: model.layers[0].repeat.layers must be a list",
     {NULL}},
    {LAYER("repeat: {times: 20000, layers: [relu, relu]}") HEAD,
     "m.yaml:4:39: the model has more than 20000 layers",
     {NULL}},
    {LAYER("repeat: {times: 2, layers: [{conv: {out: 3, kernl: 1}}]}") HEAD,
     "m.yaml:4:51: unknown key 'kernl'",
     {"model.layers[0].repeat.layers[0].conv"}},
    {LAYER("linear: {out: 2}") "\nloss: {cross_entropy: {weight: [1]}}\n",
     "m.yaml:5:32: loss cross_entropy: weight is a list of one number",
     {"2 classes", "has 1"}},
    {LAYER("linear: {out: 2}") "\nloss: {cross_entropy: {weight: [1, -1]}}\n",
     "m.yaml:5:36: loss cross_entropy: the weight of class 1",
     {"from 0"}},
    {LAYER("linear: {out: 2}") "\nloss: {cross_entropy: {weight: [0, 0]}}\n",
     "m.yaml:5:32: loss cross_entropy: all weights are 0",
     {NULL}},
    {LAYER("linear: {out: 2}") "\nloss: {cross_entropy: {ignore_index: x}}\n",
     "m.yaml:5:38: loss cross_entropy: ignore_index is no integer",
     {NULL}},
    {LAYER("linear: {out: 2}") "\nloss: {bce: {pos_weight: 0}}\n",
     "m.yaml:5:26: loss.bce.pos_weight",
     {NULL}},
    {LAYER("linear: {out: 2}") "\nloss: cross_entropi\n",
     "m.yaml:5:7: unknown loss 'cross_entropi'; did you mean 'cross_entropy'?",
     {"mse"}},
    {LAYER("linear: {out: 2}") "\nloss: {mse: {a: 1}}\n",
     "m.yaml:5:14: ",
     {"unknown key 'a'"}},
    {LAYER("linear: {out: 2}") "\nloss: [mse]\n",
     "m.yaml:5:7: a loss is a name or a map",
     {NULL}},
    {LAYER("linear: {out: 2}") "\n",
     "the run file has no loss",
     {"loss: cross_entropy"}},
    {LAYER("relu") "\nloss: mse\n",
     "m.yaml:4:7: the model has nothing to train",
     {NULL}},
    {LAYER("linear: {out: 2}") "\n    - linear: {out: 200000000}\n"
                               "    - linear: {out: 200000000}" LOSS,
     "m.yaml:6:7: layer linear3 has 40000000200000000 parameters",
     {"2^40"}},
    {LAYER("conv: {out: 200000000, kernel: 1000000, pad: 1000000}") HEAD,
     "m.yaml:4:7: layer conv1 (conv) with input [3, 8, 8]: its sizes",
     {NULL}},
    {LAYER("linear: {out: 10000}\n    - linear: {out: 9000000000}") LOSS,
     "m.yaml:5:21: model.layers[1].linear.out: expected 1 to",
     {NULL}},
    {"model: {input: [3], layers: []}" LOSS,
     "m.yaml:1:29: model.layers must be a list",
     {NULL}},
    {"model: {input: [3], layers: relu}" LOSS,
     "m.yaml:1:29: model.layers must be a list",
     {NULL}},
    {"model: {input: [3]}" LOSS, "m.yaml:1:8: model.layers is missing", {NULL}},
    {"model: {layers: [relu]}" LOSS,
     "m.yaml:1:8: model.input is missing",
     {NULL}},
    {"model: {input: [1, 1, 1, 1, 1, 1], layers: [relu]}" LOSS,
     "m.yaml:1:16: model.input has 6 dimensions",
     {"1 to 5"}},
    {"model: {input: [0], layers: [relu]}" LOSS,
     "m.yaml:1:17: model.input",
     {NULL}},
    {"model: {input: [100000, 100000, 100000], layers: [relu]}" LOSS,
     "m.yaml:1:16: model.input has 1e+15 elements",
     {"2^33"}},
    {LAYER("conv: {out: 10000000, kernel: 1, pad: 100}") HEAD,
     "m.yaml:4:7: layer conv1 (conv): its output [10000000, 208, 208] is",
     {"2^33"}},
    {"other: 1" LOSS, "model.input is missing", {NULL}},
};

Test(graph_errors, every_sentence_has_its_place)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const wrong_t *w = &wrongs[i];
        nn_graph_t *graph = NULL;
        err_t err = ERR_INIT;
        err_code_t code = fixture_graph_try(w->yaml, &graph, &err);

        cr_expect_eq(code, ERR_CONFIG, "accepted: %s", w->yaml);
        cr_expect_null(graph);
        cr_expect_eq(strncmp(err.text, w->begins, strlen(w->begins)), 0,
                     "expected: %s\n   found: %s", w->begins, err.text);
        for (int k = 0; k < 3 && w->says[k] != NULL; k++)
            cr_expect_not_null(strstr(err.text, w->says[k]),
                               "expected: %s\n   found: %s", w->says[k],
                               err.text);
        nn_graph_close(graph);
    }
}

Test(graph_errors, an_unknown_backend_is_named)
{
    nn_graph_t *graph = fixture_graph(fixture_mlp);
    nn_exec_config_t config = {
        .op_backend = "abacus", .batch = 1, .threads = 1};
    nn_exec_t *exec = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(nn_exec_open(graph, &config, &exec, &err), ERR_UNAVAILABLE);
    cr_expect_null(exec);
    cr_expect_not_null(strstr(err.text, "abacus"), "%s", err.text);
    nn_graph_close(graph);
}
