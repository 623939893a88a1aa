/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The hash of a model: older versions of cddp computed the same value, and
 * every option of every layer and loss changes it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/fixture.h"

/* A small model for each kind of layer or loss. Options that are not listed
 * have their defaults; kinds that are not listed get an image as input. */
typedef struct hash_case {
    const char *kind, *input, *from;
    struct {
        const char *name, *value;
    } options[3];
    /* the hash that cddp 0.1 computed; 0: that version lacked the kind */
    uint64_t hash;
} hash_case_t;

#define IMAGE "[2, 8, 8]"
#define TWO "{a: [3, 3], b: [3, 3]}"
#define FROM_TWO ", from: [a, b]"

static const hash_case_t layer_cases[] = {
    {"linear", IMAGE, "", {{"out", "3"}}, 0x7cc9aba418fdd697},
    {"conv", IMAGE, "", {{"out", "4"}, {"kernel", "2"}}, 0x8f87b2f5683fde3b},
    {"conv_transpose",
     IMAGE,
     "",
     {{"out", "4"}, {"kernel", "2"}, {"stride", "2"}},
     0x9f86ee10de27fd6d},
    {"relu", IMAGE, "", {{0}}, 0x750daf6d78864e32},
    {"leaky_relu", IMAGE, "", {{0}}, 0x41ed3971ca61b19f},
    {"gelu", IMAGE, "", {{0}}, 0x5765f0ff08d5a8ab},
    {"silu", IMAGE, "", {{0}}, 0x326ecf28c71928e5},
    {"elu", IMAGE, "", {{0}}, 0xb58a667adf57b0b6},
    {"sigmoid", IMAGE, "", {{0}}, 0x37038bc45f9a156d},
    {"tanh", IMAGE, "", {{0}}, 0xd8c908d46b6101e9},
    {"softplus", IMAGE, "", {{0}}, 0x83e4adfab712faff},
    {"scale", IMAGE, "", {{"by", "3"}}, 0x2df9ee8ecfddbc29},
    {"prelu", IMAGE, "", {{0}}, 0xa63ab9f274e213a8},
    {"softmax", IMAGE, "", {{0}}, 0x210e4ad813750bbc},
    {"log_softmax", IMAGE, "", {{0}}, 0x66e0a83b7443a782},
    {"maxpool", IMAGE, "", {{"kernel", "2"}}, 0xa564b545ddce9cc1},
    {"avgpool", IMAGE, "", {{"kernel", "2"}}, 0x8f052475264ee6d9},
    {"adaptive_avgpool", IMAGE, "", {{0}}, 0xd01a8e4737d1229a},
    {"adaptive_maxpool", IMAGE, "", {{0}}, 0x421cde798e870060},
    {"batchnorm", IMAGE, "", {{0}}, 0x5e0e56e68759cc52},
    {"syncbatchnorm", IMAGE, "", {{0}}, 0xd7a03abcc5fbf2ec},
    {"layernorm", IMAGE, "", {{0}}, 0x11b220c71322e375},
    {"rmsnorm", IMAGE, "", {{0}}, 0x81b755835fe82073},
    {"groupnorm",
     IMAGE,
     "",
     {{"groups", "1"}, {"affine", "true"}},
     0xb88b087183174b16},
    {"instancenorm", IMAGE, "", {{"affine", "true"}}, 0xbdcb6e7a3fc286bf},
    {"dropout", IMAGE, "", {{0}}, 0xe5908bb70999db85},
    {"flatten", IMAGE, "", {{0}}, 0x6ceb50badfb1f835},
    {"embedding",
     "[4]",
     "",
     {{"vocabulary", "5"}, {"out", "3"}},
     0x1ed65ddb2ec75c9e},
    {"attention", "[4, 24]", "", {{"heads", "2"}}, 0xeda7aed7f6457e50},
    {"position", IMAGE, "", {{0}}, 0xb276d743fba6b151},
    {"rotary", "[4, 24]", "", {{"heads", "2"}}, 0x4815c3d93e5333e0},
    {"lstm", "[4, 5]", "", {{"out", "3"}}, 0x81dc9655451987f1},
    {"gru", "[4, 5]", "", {{"out", "3"}}, 0xadd6bc7141104534},
    {"add", TWO, FROM_TWO, {{0}}, 0xec543b68643cc94b},
    {"mul", TWO, FROM_TWO, {{0}}, 0xed7ec8daf13ea592},
    {"matmul", TWO, FROM_TWO, {{0}}, 0xe0bec240f17c8116},
    {"concat", TWO, FROM_TWO, {{0}}, 0x47361a0474fdecc8},
    {"reshape", IMAGE, "", {{"shape", "[4, 32]"}}, 0x389ea2706f67a660},
    {"permute", IMAGE, "", {{"order", "[2, 1, 3]"}}, 0x538c932dce4e272a},
    {"slice", IMAGE, "", {{"size", "1"}}, 0x4a2210995b9421cb},
    {"split", IMAGE, "", {{"parts", "2"}, {"part", "1"}}, 0xcd82bcce839914c2},
    {"pad", IMAGE, "", {{"before", "1"}}, 0xa552c7c39f0c2b59},
    {"mean", IMAGE, "", {{0}}, 0x276f7e574a93dc68},
    {"max", IMAGE, "", {{0}}, 0xecada306e94d01df},
    {"upsample", IMAGE, "", {{0}}, 0x12c7a67cdb6e4e1b},
};

static const hash_case_t loss_cases[] = {
    {"cross_entropy", "[2, 2]", "", {{0}}, 0xe93cfc43c32ed9d6},
    {"mse", IMAGE, "", {{0}}, 0xe59e2d3aabe2185b},
    {"mae", IMAGE, "", {{0}}, 0xd21f1304e1f45420},
    {"huber", IMAGE, "", {{0}}, 0xec4a41aacb9f48b4},
    {"bce", "[2, 2]", "", {{"pos_weight", "[1, 2]"}}, 0x4811788f24f4da1e},
    {"kl", "[4]", "", {{0}}, 0x9a9bfe2e5543ee75},
};

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

/* The value of [option] in [one]; NULL: the default. */
static const char *value_of(const hash_case_t *one, const char *option)
{
    for (int i = 0; i < COUNT(one->options); i++)
        if (one->options[i].name != NULL &&
            strcmp(one->options[i].name, option) == 0)
            return one->options[i].value;
    return NULL;
}

/* The hash of the model of [one] with [option] set to [value]; if [option] is
 * NULL, of the model unchanged. 0: the model is invalid. */
static uint64_t hash_of_case(const hash_case_t *one, bool loss,
                             const char *option, const char *value)
{
    str_buf_t layer = {0};
    nn_graph_t *graph = NULL;
    uint64_t hash = 0;
    char *yaml;

    str_buf_add(&layer, "%s: {", one->kind);
    for (int i = 0; i < COUNT(one->options); i++)
        if (one->options[i].name != NULL &&
            (option == NULL || strcmp(one->options[i].name, option) != 0))
            str_buf_add(&layer, "%s: %s, ", one->options[i].name,
                        one->options[i].value);
    if (option != NULL)
        str_buf_add(&layer, "%s: %s", option, value);
    str_buf_add(&layer, "}");
    yaml = loss ? str_printf(
                      "model: {input: %s, layers: [linear: {out: 2, flatten: "
                      "false}]}\nloss: {%s}\n",
                      one->input, layer.text)
                : str_printf(
                      "model: {input: %s, layers: [{%s%s}, linear: {out: 2}]}\n"
                      "loss: mse\n",
                      one->input, layer.text, one->from);
    if (fixture_graph_try(yaml, &graph, NULL) == ERR_OK)
        hash = nn_graph_hash(graph);
    nn_graph_close(graph);
    free(yaml);
    str_buf_free(&layer);
    return hash;
}

static void expect_old_hashes(const hash_case_t *cases, int count, bool loss)
{
    for (int i = 0; i < count; i++) {
        const uint64_t hash = hash_of_case(&cases[i], loss, NULL, NULL);

        cr_expect_neq(hash, 0, "%s: no model", cases[i].kind);
        cr_expect(cases[i].hash == 0 || hash == cases[i].hash,
                  "%s: the hash was 0x%llx, but is 0x%llx: checkpoints of "
                  "running jobs are of another model now",
                  cases[i].kind, (unsigned long long)cases[i].hash,
                  (unsigned long long)hash);
    }
}

Test(graph_hash, stays_what_it_was)
{
    expect_old_hashes(layer_cases, COUNT(layer_cases), false);
    expect_old_hashes(loss_cases, COUNT(loss_cases), true);
}

/* Values to try for an option; the model refuses those that do not fit. */
static const char *const values[] = {
    "false", "true",   "0",      "1",      "2",         "3",         "0.25",
    "0.001", "[1, 2]", "[2, 1]", "[2, 3]", "[1, 2, 3]", "[2, 8, 8]", "64",
};

/* Does some value of the option give the model another hash? */
static bool changes_hash(const hash_case_t *one, bool loss,
                         const opt_row_t *row)
{
    const uint64_t base = hash_of_case(one, loss, NULL, NULL);
    const char *have = value_of(one, row->name);
    bool changed = false;

    if (have == NULL)
        have = row->fallback == NULL ? "" : row->fallback;
    for (int i = 0; i < COUNT(values) && !changed; i++) {
        uint64_t hash = 0;

        if (strcmp(values[i], have) != 0)
            hash = hash_of_case(one, loss, row->name, values[i]);
        changed = hash != 0 && hash != base;
    }
    for (int i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        if (strcmp(row->choices[i], have) != 0) {
            uint64_t hash = hash_of_case(one, loss, row->name, row->choices[i]);

            changed = changed || (hash != 0 && hash != base);
        }
    return changed;
}

static void expect_changes(const nn_kind_t *const *kinds,
                           const hash_case_t *cases, int count, bool loss)
{
    for (; *kinds != NULL; kinds++) {
        const hash_case_t standard = {(*kinds)->name, IMAGE, "", {{0}}, 0};
        const hash_case_t *one = &standard;

        for (int i = 0; i < count; i++)
            if (strcmp(cases[i].kind, (*kinds)->name) == 0)
                one = &cases[i];
        cr_expect_neq(hash_of_case(one, loss, NULL, NULL), 0,
                      "%s needs a case here, as it does not take an image, or "
                      "has an option without default",
                      (*kinds)->name);
        for (const opt_row_t *row = (*kinds)->rows; row->name != NULL; row++)
            /* A mask is also one more input, which changes the hash in any
             * case. */
            if (strcmp((*kinds)->name, "attention") != 0 ||
                strcmp(row->name, "mask") != 0)
                cr_expect(changes_hash(one, loss, row),
                          "%s: two models differ in %s, but not in their hash",
                          (*kinds)->name, row->name);
    }
}

Test(graph_hash, changes_with_every_option)
{
    expect_changes(nn_layer_kinds(), layer_cases, COUNT(layer_cases), false);
    expect_changes(nn_loss_kinds(), loss_cases, COUNT(loss_cases), true);
}

/* ---- models that are and are not alike ------------------------------------
 */

static uint64_t hash_of(const char *layers)
{
    char yaml[512];
    nn_graph_t *graph;
    uint64_t hash;

    snprintf(yaml, sizeof yaml,
             "model: {input: [2, 6, 6], layers: [%s, linear: {out: 2}]}\n"
             "loss: cross_entropy\n",
             layers);
    graph = fixture_graph(yaml);
    hash = nn_graph_hash(graph);
    nn_graph_close(graph);
    return hash;
}

Test(graph_hash, sees_structure_and_nothing_else)
{
    const uint64_t base = hash_of("conv: {out: 2, kernel: 3}, relu");

    cr_expect_eq(base, hash_of("{conv: {kernel: [3, 3], pad: 0, out: 2}},"
                               "  relu: {}"));
    cr_expect_neq(base, hash_of("conv: {out: 2, kernel: 3, pad: 1}, relu"));
    cr_expect_neq(base, hash_of("conv: {out: 2, kernel: 3}, flatten"));
    cr_expect_neq(base, hash_of("conv: {out: 2, kernel: 3, bias: no}, relu"));
    cr_expect_neq(base, hash_of("conv: {out: 2, kernel: 3}, relu, relu"));
    cr_expect_neq(base,
                  hash_of("{conv: {out: 2, kernel: 3}, name: stem}, relu"));
    cr_expect_neq(hash_of("batchnorm: {momentum: 0.2}"), hash_of("batchnorm"));
    cr_expect_neq(hash_of("dropout: {rate: 0.2}"), hash_of("dropout"));
    cr_expect_neq(hash_of("relu, {add: , from: [relu1, input]}"),
                  hash_of("relu, {add: , from: [relu1, relu1]}"));
    cr_expect_neq(hash_of("linear: {out: 6}"),
                  hash_of("linear: {out: 6, flatten: false}"));
    cr_expect_neq(hash_of("reshape: {shape: [12, 6]}, attention: {heads: 1}"),
                  hash_of("reshape: {shape: [12, 6]}, "
                          "attention: {heads: 1, causal: true}"));
    cr_expect_neq(hash_of("gelu"), hash_of("gelu: {approximate: tanh}"));
    cr_expect_neq(hash_of("elu"), hash_of("elu: {alpha: 2}"));
    cr_expect_neq(hash_of("scale: {by: 2}"), hash_of("scale: {by: 3}"));
    cr_expect_neq(hash_of("layernorm"), hash_of("layernorm: {axis: 1}"));
    cr_expect_neq(hash_of("groupnorm: {groups: 1}"),
                  hash_of("groupnorm: {groups: 2}"));
    cr_expect_neq(hash_of("slice: {size: 1}"),
                  hash_of("slice: {size: 1, start: 1}"));
    cr_expect_neq(hash_of("permute: {order: [2, 1, 3]}"),
                  hash_of("permute: {order: [3, 1, 2]}"));
}

/* ---- options that no field of the hash covers ---------------------------- */

typedef struct newer_options {
    opt_ints_t size;
    double slope;
    bool flag;
    int mode;
    const tree_t *list;
} newer_options_t;

static const char *const newer_modes[] = {"plain", "fancy", NULL};

static const opt_row_t newer_rows[] = {
    {.name = "size",
     .type = OPT_INTS,
     .offset = offsetof(newer_options_t, size)},
    {.name = "slope",
     .type = OPT_REAL,
     .offset = offsetof(newer_options_t, slope),
     .fallback = "1e-2"},
    {.name = "flag",
     .type = OPT_BOOL,
     .offset = offsetof(newer_options_t, flag),
     .fallback = "true"},
    {.name = "mode",
     .type = OPT_CHOICE,
     .offset = offsetof(newer_options_t, mode),
     .fallback = "plain",
     .choices = newer_modes},
    {.name = "list",
     .type = OPT_TREE,
     .offset = offsetof(newer_options_t, list),
     .fallback = ""},
    {.name = NULL},
};

static const nn_kind_t newer = {
    .name = "newer", .op = OP_RELU, .rows = newer_rows};

static void expect_text(const newer_options_t *options, const char *expected)
{
    newer_options_t copy = *options;
    str_buf_t text = {0};

    nn_hash_options(&newer, &copy, &text);
    cr_expect_str_eq(text.text, expected);
    str_buf_free(&text);
}

Test(graph_hash, newer_options_are_hashed_as_they_are_printed)
{
    newer_options_t options = {
        .size = {2, {3, 3}}, .slope = 0.01, .flag = true};
    tree_t *list = tree_new(TREE_SCALAR, "7", (tree_place_t){"t", 1, 1});

    expect_text(&options, "size: [3]\n");
    options.size = (opt_ints_t){2, {3, 4}};
    options.slope = 0.5;
    options.flag = false;
    options.mode = 1;
    options.list = list;
    expect_text(&options, "size: [3, 4]\nslope: 0.5\nflag: false\n"
                          "mode: fancy\nlist: 7\n");
    tree_free(list);
}

/* The options of a kind that the hash does not list by hand change the hash,
 * too. */
Test(graph_hash, newer_options_reach_the_hash)
{
    nn_layer_t layer = {.kind = &newer, .name = (char *)"newer1"};
    nn_graph_t graph = {.layers = &layer, .layer_count = 1};
    const uint64_t without = nn_graph_hash(&graph);

    layer.later_options = (char *)"slope: 0.5\n";
    cr_expect_neq(nn_graph_hash(&graph), without);
}
