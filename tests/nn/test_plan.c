/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The memory plan: blocks in use at the same time never overlap, with random
 * lifetimes and in the execs of random chains and graphs; and sharing memory
 * changes no bit. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "nn/exec_priv.h"
#include "nn/fixture.h"

static void expect_disjoint(const nn_region_t *blocks, int count, size_t total)
{
    for (int i = 0; i < count; i++) {
        const nn_region_t *a = &blocks[i];

        cr_expect_eq(a->offset % MEM_ALIGN, 0);
        cr_expect_leq(a->offset + a->bytes, total);
        for (int k = 0; k < i; k++) {
            const nn_region_t *b = &blocks[k];
            bool meet = a->first <= b->last && b->first <= a->last;
            bool overlap = a->offset < b->offset + b->bytes &&
                           b->offset < a->offset + a->bytes;

            cr_expect_not(meet && overlap, "blocks %d and %d", i, k);
        }
    }
}

Test(plan, random_lifetimes_never_overlap)
{
    nn_region_t blocks[40];
    size_t total = 0, sum;
    rng_t rng;

    rng_open(&rng, 1, RNG_ISING, 0, 0);
    for (int round = 0; round < 500; round++) {
        int count = (int)rng_below(&rng, 41);

        sum = 0;
        for (int i = 0; i < count; i++) {
            blocks[i].bytes = 1 + rng_below(&rng, round % 2 ? 5000 : 200);
            blocks[i].first = (int)rng_below(&rng, 30);
            blocks[i].last = blocks[i].first + (int)rng_below(&rng, 10);
            blocks[i].offset = 1;
            sum += mem_round(blocks[i].bytes);
        }
        cr_assert_eq(nn_plan_place(blocks, count, &total, NULL), ERR_OK);
        cr_expect_leq(total, sum);
        expect_disjoint(blocks, count, total);
    }
}

Test(plan, blocks_of_different_times_share_memory)
{
    nn_region_t blocks[] = {{.bytes = 100, .first = 0, .last = 1},
                            {.bytes = 100, .first = 2, .last = 3},
                            {.bytes = 60, .first = 1, .last = 2}};
    size_t total = 0;

    cr_assert_eq(nn_plan_place(blocks, 3, &total, NULL), ERR_OK);
    cr_expect_eq(blocks[0].offset, blocks[1].offset);
    cr_expect_eq(total, 128 + 64);
}

/* The text of a random valid chain: layers on [2, 6, 6], then layers on flat
 * tensors. */
static char *random_model(rng_t *rng)
{
    static const char *const spatial[] = {"conv: {out: 4, kernel: 3, pad: 1}",
                                          "batchnorm",
                                          "relu",
                                          "dropout",
                                          "maxpool: {kernel: 2, stride: 1}",
                                          "conv: {out: 3, kernel: 2}"};
    static const char *const flat[] = {"linear: {out: 6}", "relu",    "dropout",
                                       "batchnorm",        "flatten", "gelu",
                                       "layernorm",        "tanh"};
    str_buf_t text = {0};

    str_buf_add(&text, "model:\n  input: [2, 6, 6]\n  layers:\n");
    for (uint64_t i = rng_below(rng, 6); i > 0; i--)
        str_buf_add(&text, "    - %s\n", spatial[rng_below(rng, 6)]);
    if (rng_below(rng, 2) == 0)
        str_buf_add(&text, "    - flatten\n");
    else
        str_buf_add(&text, "    - linear: {out: 5}\n");
    for (uint64_t i = rng_below(rng, 6); i > 0; i--)
        str_buf_add(&text, "    - %s\n", flat[rng_below(rng, 8)]);
    str_buf_add(&text, "    - linear: {out: 3}\n");
    for (uint64_t i = rng_below(rng, 3); i > 0; i--)
        str_buf_add(&text, "    - %s\n", flat[1 + rng_below(rng, 7)]);
    str_buf_add(&text, "loss: %s\n",
                rng_below(rng, 2) == 0 ? "mse" : "cross_entropy");
    return text.text;
}

/* Pick at random one of the layers i with shapes[i] = [shape]; -1: there is
 * none. */
static int pick(rng_t *rng, const int *shapes, int count, int shape)
{
    int found = -1, seen = 0;

    for (int i = 0; i < count; i++)
        if (shapes[i] == shape && rng_below(rng, (uint64_t)++seen) == 0)
            found = i;
    return found;
}

#define GRAPH_LAYERS 14

/*
 * The text of a random graph on images: each layer reads random earlier
 * layers. Shape s means [s, 5, 5]. Outputs that no layer reads are added up at
 * the end. Some convolutions of equal shape share their weights.
 */
static char *random_graph(rng_t *rng)
{
    static const char *const unary[] = {
        "batchnorm: ",
        "relu: ",
        "dropout: ",
        "permute: {order: [1, 3, 2]}",
        "maxpool: {kernel: 3, stride: 1, pad: 1}",
        "silu: ",
        "groupnorm: {groups: 1}",
        "layernorm: "};
    int shapes[GRAPH_LAYERS] = {2}, last_conv[64] = {0}, count = 1;
    bool used[GRAPH_LAYERS] = {false};
    str_buf_t text = {0};

    str_buf_add(&text, "model:\n  input: [2, 5, 5]\n  layers:\n"
                       "    - {conv: {out: 2, kernel: 1}, name: n0}\n");
    while (count < GRAPH_LAYERS) {
        int a = (int)rng_below(rng, (uint64_t)count);
        int b = pick(rng, shapes, count, shapes[a]);
        int shape = shapes[a];

        str_buf_add(&text, "    - {name: n%d, ", count);
        switch (rng_below(rng, 6)) {
        case 0:
        case 1:
            str_buf_add(&text, "%s, from: n%d}\n", unary[rng_below(rng, 8)], a);
            break;
        case 2:
            str_buf_add(&text, "%s: , from: [n%d, n%d]}\n",
                        rng_below(rng, 2) ? "add" : "mul", a, b);
            used[b] = true;
            break;
        case 3:
            b = (int)rng_below(rng, (uint64_t)count);
            if (shapes[a] + shapes[b] < 20) {
                str_buf_add(&text, "concat: , from: [n%d, n%d]}\n", a, b);
                shape += shapes[b];
                used[b] = true;
                break;
            }
            str_buf_add(&text, "slice: {size: 2}, from: n%d}\n", a);
            shape = 2;
            break;
        default:
            str_buf_add(&text, "conv: {out: 3, kernel: 3, pad: 1}, from: n%d",
                        a);
            if (last_conv[shape] > 0 && rng_below(rng, 2) == 0)
                str_buf_add(&text, ", share: n%d", last_conv[shape]);
            str_buf_add(&text, "}\n");
            last_conv[shape] = count;
            shape = 3;
        }
        used[a] = true;
        shapes[count++] = shape;
    }
    str_buf_add(&text,
                "    - {name: c0, conv: {out: 2, kernel: 5}, from: n%d}\n",
                count - 1);
    for (int i = 0, k = 0; i < count - 1; i++)
        if (!used[i]) {
            str_buf_add(&text,
                        "    - {name: d%d, conv: {out: 2, kernel: 5}, "
                        "from: n%d}\n"
                        "    - {name: c%d, add: , from: [c%d, d%d]}\n",
                        k + 1, i, k + 1, k, k + 1);
            k++;
        }
    str_buf_add(&text, "    - flatten\nloss: cross_entropy\n");
    return text.text;
}

static int fresh_block(nn_region_t *blocks, int *count, size_t bytes)
{
    blocks[*count] = (nn_region_t){.bytes = bytes, .last = 1};
    return (*count)++;
}

/* Give every value of the exec its own memory, and add gradients in separate
 * calls. */
static void unshare(fixture_t *f)
{
    nn_exec_t *exec = f->exec;
    const int old = exec->region_count;
    int count = old;
    nn_region_t *blocks;
    void *block = NULL;

    cr_assert_eq(mem_alloc((size_t)(old + (2 + OP_INPUTS_MAX) * exec->count) *
                               sizeof *blocks,
                           "a test", &block, NULL),
                 ERR_OK);
    blocks = block;
    for (int i = 0; i < old; i++)
        blocks[i] = (nn_region_t){.bytes = exec->regions[i].bytes, .last = 1};
    for (int i = 0; i + 1 < exec->count; i++) {
        size_t bytes;

        if (exec->nodes[i].op == NULL)
            continue;
        bytes = op_out(exec->nodes[i].op)->bytes;
        exec->nodes[i].first.y = fresh_block(blocks, &count, bytes);
        exec->nodes[i].again.y = exec->nodes[i].first.y;
        if (exec->nodes[i].dy != NN_NONE)
            exec->nodes[i].dy = fresh_block(blocks, &count, bytes);
    }
    for (int i = 0; i < exec->count; i++)
        for (int k = 0; k < exec->nodes[i].inputs; k++) {
            nn_node_t *node = &exec->nodes[i];
            nn_node_t *input = &exec->nodes[exec->nodes[i].from[k]];

            if (k == 0 && node->sums) {
                node->sums = false;
                node->adds[0] = true;
            }
            if (node->grad[k] != NN_NONE)
                node->grad[k] =
                    node->adds[k]
                        ? fresh_block(blocks, &count, op_out(input->op)->bytes)
                        : input->dy;
        }
    /* All blocks have overlapping lifetimes, so none share memory. */
    cr_assert_eq(nn_plan_place(blocks, count, &exec->bytes, NULL), ERR_OK);
    mem_free(exec->regions);
    exec->regions = blocks;
    exec->region_count = count;
    fixture_rebind(f);
    fixture_poison(f);
}

/* Outputs are equal, also after backward. */
static void expect_same_output(fixture_t *f, fixture_t *g, const char *yaml)
{
    const op_desc_t *desc = op_out(f->exec->nodes[f->exec->count - 2].op);
    const size_t elems = (size_t)(desc->dims[0] * nn_sample_elems(desc));
    float *a = malloc(elems * sizeof *a), *b = malloc(elems * sizeof *b);

    cr_assert_eq(nn_exec_output(f->exec, 0, a, NULL), ERR_OK);
    cr_assert_eq(nn_exec_output(g->exec, 0, b, NULL), ERR_OK);
    cr_expect_eq(fixture_distance(a, b, elems), 0, "%s", yaml);
    free(a);
    free(b);
}

/* Compare steps with the plan for layers in [parts] blocks to steps without any
 * sharing of memory. */
static void compare_parts(const char *yaml, const char *backend, int parts)
{
    nn_graph_t *graph = fixture_graph(yaml);
    const size_t elems = nn_graph_param_elems(graph);
    fixture_t f, g;

    fixture_open(&f, graph, backend, 0, 3, true);
    fixture_open(&g, graph, backend, 0, 3, true);
    cr_assert_eq(nn_exec_plan_parts(f.exec, parts, NULL), ERR_OK);
    fixture_rebind(&f);
    fixture_poison(&f);
    expect_disjoint(f.exec->regions, f.exec->region_count, f.exec->bytes);
    unshare(&g);
    cr_expect_eq(fixture_forward(&f), fixture_forward(&g), "%s", yaml);
    for (int round = 0; round < 2; round++) {
        fixture_backward(&f, 1, false);
        fixture_backward(&g, 1, false);
        cr_expect_eq(fixture_distance(f.bind.grads, g.bind.grads, elems), 0,
                     "%s", yaml);
        expect_same_output(&f, &g, yaml);
        /* A second step adds to the gradients. */
        fixture_forward(&f);
        fixture_forward(&g);
        fixture_backward(&f, 1, true);
        fixture_backward(&g, 1, true);
        cr_expect_eq(fixture_distance(f.bind.grads, g.bind.grads, elems), 0,
                     "%s", yaml);
        fixture_forward(&f);
        fixture_forward(&g);
    }
    cr_expect_eq(memcmp(f.bind.moments, g.bind.moments,
                        nn_graph_moment_elems(graph) * sizeof(double)),
                 0);
    fixture_close(&f);
    fixture_close(&g);
    nn_graph_close(graph);
}

static void compare_plans(const char *yaml, const char *backend)
{
    for (int parts = 1; parts <= 6; parts += parts)
        compare_parts(yaml, backend, parts);
    compare_parts(yaml, backend, 3);
}

/* Adds both of whose terms may share one gradient, and norms that add to it:
 * the second term computed from the first, in either order; terms with other
 * readers; a term that is a graph input. */
static const char *const shortcuts =
    "model:\n"
    "  input: [4, 6]\n"
    "  layers:\n"
    "    - {name: x, linear: {out: 6, flatten: false}}\n"
    "    - {name: n1, layernorm: }\n"
    "    - {name: a1, add: , from: [x, n1]}\n"
    "    - {name: n2, layernorm: }\n"
    "    - {name: l2, linear: {out: 6, flatten: false}}\n"
    "    - {name: a2, add: , from: [a1, l2]}\n"
    "    - {name: n3, rmsnorm: }\n"
    "    - {name: l3, linear: {out: 6, flatten: false}}\n"
    "    - {name: l4, linear: {out: 6, flatten: false}, from: a2}\n"
    "    - {name: a3, add: , from: [l4, l3]}\n"
    "    - {name: a4, add: , from: [a3, l3]}\n"
    "    - {name: l5, linear: {out: 6, flatten: false}}\n"
    "    - {name: a5, add: , from: [input, l5]}\n"
    "    - {name: n6, layernorm: }\n"
    "    - {name: a6, add: , from: [n6, a5]}\n"
    "    - linear: {out: 3}\n"
    "loss: cross_entropy\n";

static void compare_random_plans(const char *backend)
{
    rng_t rng;

    /* The output is larger than all other tensors. */
    compare_plans("model: {input: [2, 6, 6], layers: [conv: {out: 2, kernel: "
                  "3}, conv: {out: 9, kernel: 1, pad: 3}]}\nloss: mse\n",
                  backend);
    compare_plans(shortcuts, backend);
    rng_open(&rng, 7, RNG_ISING, 0, 0);
    for (int round = 0; round < 120; round++) {
        char *yaml = round < 60 ? random_model(&rng) : random_graph(&rng);

        compare_plans(yaml, backend);
        free(yaml);
    }
}

Test(plan, sharing_and_recomputing_change_no_bit_on_ref)
{
    compare_random_plans("ref");
}

Test(plan, sharing_and_recomputing_change_no_bit_on_cpu)
{
    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    compare_random_plans("cpu");
}

Test(plan, evaluation_needs_less_than_training)
{
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    fixture_t f, e;

    fixture_open(&f, graph, "ref", 0, 8, true);
    fixture_open(&e, graph, "ref", 0, 8, false);
    cr_expect_lt(nn_exec_activation_bytes(e.exec),
                 nn_exec_activation_bytes(f.exec));
    fixture_close(&f);
    fixture_close(&e);
    nn_graph_close(graph);
}

/* A layer of large weights, and another layer that shares them. */
static const char *const large =
    "model: {input: [5], layers: [{linear: {out: 200}}, {linear: {out: 200}}, "
    "{linear: {out: 200}, share: linear2}, {linear: {out: 3}}]}\n"
    "loss: cross_entropy\n";

static const char *const unshared =
    "model: {input: [5], layers: [{linear: {out: 200}}, {linear: {out: 200}}, "
    "{linear: {out: 3}}]}\n"
    "loss: cross_entropy\n";

/* Only the layer that shares weights adds to a gradient that another layer
 * wrote. */
Test(plan, gradients_made_anew_need_no_room_beside_them)
{
    const nn_exec_config_t config = {.op_backend = "ref",
                                     .batch = 3,
                                     .training = true,
                                     .threads = 1,
                                     .overwrite = true};
    nn_graph_t *graph = fixture_graph(large);
    const size_t elems = nn_graph_param_elems(graph);
    const size_t weights = 200 * 200 * sizeof(float);
    fixture_t f, g, h;
    nn_graph_t *apart = fixture_graph(unshared);

    fixture_open(&f, graph, "ref", 0, 3, true);
    fixture_open_as(&g, graph, &config, 0);
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    fixture_forward(&g);
    fixture_backward(&g, 1, false);
    cr_expect_gt(fixture_largest(f.bind.grads, elems), 0);
    cr_expect_eq(fixture_distance(f.bind.grads, g.bind.grads, elems), 0);
    fixture_open_as(&h, apart, &config, 0);
    cr_expect_geq(nn_exec_activation_bytes(f.exec), weights);
    cr_expect_lt(nn_exec_activation_bytes(h.exec), weights);
    fixture_close(&f);
    fixture_close(&g);
    fixture_close(&h);
    nn_graph_close(apart);
    nn_graph_close(graph);
}

Test(plan, in_place_layers_share_their_inputs_memory)
{
    nn_graph_t *graph = fixture_graph(fixture_cnn);
    fixture_t f;

    fixture_open(&f, graph, "ref", 0, 8, true);
    cr_expect_eq(f.exec->nodes[2].first.y, f.exec->nodes[1].first.y,
                 "batchnorm, relu");
    cr_expect_eq(f.exec->nodes[7].first.y, f.exec->nodes[6].first.y,
                 "dropout, flatten");
    /* dropout must not overwrite the output that relu's backward reads. */
    cr_expect_neq(f.exec->nodes[6].first.y, f.exec->nodes[5].first.y,
                  "relu, dropout");
    cr_expect_eq(f.exec->nodes[1].dy, f.exec->nodes[2].dy);
    fixture_close(&f);
    nn_graph_close(graph);
}
