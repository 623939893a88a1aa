/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The real cuDNN plans convolutions and attention here, without a GPU, for the
 * device that tests/data/h200.json describes: those of the op table, of the
 * cases of speed, and of the presets. Each must have a plan that keeps the
 * contract (the same bits on each call, no rounding of float32), and planning
 * again must give the same plan. The log says which engine each one gets. A
 * plan of attention takes a second, so only a few shapes are planned;
 * CDDP_LONG=1 plans all of them.
 *
 * Engines that cuDNN compiles at run time need the driver's library. A stand-in
 * of it, which says that there is no device, is enough.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "nn/fixture.h"
#include "nn/nn_priv.h"
#include "op/cuda/attention_plan.h"
#include "op/cuda/conv_plan.h"
#include "op/op_desc.h"
#include "op_cases.h"

#define MIB (1024.0 * 1024.0)

static cuda_planner_t planner;

/* For the GPU that tests/data/[gpu] describes. [driver]: a library that
 * replaces that of the driver. */
static void open_planner_with(const char *gpu, const char *driver)
{
    static char json[1 << 14];
    const char *source = getenv("srcdir");
    char *path =
        str_printf("%s/tests/data/%s", source != NULL ? source : ".", gpu);
    err_t err = ERR_INIT;
    FILE *file = fopen(path, "r");

    cr_assert_not_null(file, "%s", path);
    mem_free(path);
    cr_assert_gt(fread(json, 1, sizeof json - 1, file), 0);
    fclose(file);
    cr_assert_not_null(dlopen(driver, RTLD_NOW | RTLD_GLOBAL), "%s", dlerror());
    cr_assert_eq(cuda_planner_open(json, &planner, &err), ERR_OK, "%s",
                 err.text);
}

static void open_planner(void)
{
    open_planner_with("h200.json", "tests/op/libcuda_standin.so");
}

/* For attention, cuDNN has only engines that it compiles at run time. */
static void open_planner_that_loads(void)
{
    open_planner_with("h200.json", "tests/op/libcuda_loads.so");
}

static void open_planner_of_a100(void)
{
    open_planner_with("a100.json", "tests/op/libcuda_loads.so");
}

static void close_planner(void)
{
    cuda_planner_close(&planner);
}

TestSuite(cudnn_plans, .init = open_planner, .fini = close_planner,
          .timeout = 600);

/* ---- one convolution ----------------------------------------------------- */

static void check_notes(const cuda_plan_t *plan, op_type_t type,
                        const char *name)
{
    const char *notes = cuda_plan_notes(plan);

    cr_assert_null(strstr(notes, "NONDETERMINISTIC"), "%s: %s", name, notes);
    if (type == OP_FLOAT32)
        cr_assert(strstr(notes, "TENSOR_CORE") == NULL &&
                      strstr(notes, "DOWN_CONVERT") == NULL,
                  "%s: %s", name, notes);
}

static void print_plan(const cuda_plan_t *plan, const char *what)
{
    if (plan != NULL)
        printf("  %s: engine %d after %d others, workspace %.1f MiB, %s\n",
               what, (int)cuda_plan_engine(plan), cuda_plan_refused(plan),
               (double)cuda_plan_workspace(plan) / MIB, cuda_plan_notes(plan));
}

static void check_same(const cuda_plan_t *one, const cuda_plan_t *two,
                       const char *name)
{
    if (one == NULL || two == NULL)
        return;
    cr_assert_eq(cuda_plan_engine(one), cuda_plan_engine(two), "%s", name);
    cr_assert_eq(cuda_plan_workspace(one), cuda_plan_workspace(two), "%s",
                 name);
}

static void plan(const op_config_t *config, cuda_conv_plans_t *plans,
                 const char *name)
{
    op_desc_t y;
    err_t err = ERR_INIT;

    *plans = (cuda_conv_plans_t){0};
    cr_assert_eq(op_shape(config, &y, &err), ERR_OK, "%s: %s", name, err.text);
    cr_assert_eq(cuda_conv_plans_open(config, &y, &planner, plans, &err),
                 ERR_OK, "%s: %s", name, err.text);
}

/* [twice]: plan it again, which must give the same. */
static void check_conv(op_config_t config, op_type_t type, bool twice,
                       const char *name)
{
    const double began = clock_now();
    cuda_conv_plans_t first, again = {0};

    config.in.type = OP_FLOAT32;
    config.compute_type = type;
    config.threads = 1;
    plan(&config, &first, name);
    printf("%s, planned in %.2f s\n", name, clock_now() - began);
    if (twice)
        plan(&config, &again, name);
    print_plan(first.forward, "y");
    print_plan(first.data, "dx");
    print_plan(first.filter, "dw");
    check_notes(first.forward, type, name);
    check_same(first.forward, again.forward, name);
    if (first.data != NULL)
        check_notes(first.data, type, name);
    check_same(first.data, again.data, name);
    if (first.filter != NULL)
        check_notes(first.filter, type, name);
    check_same(first.filter, again.filter, name);
    cuda_conv_plans_close(&first);
    cuda_conv_plans_close(&again);
}

static bool is_conv(op_kind_t kind)
{
    return kind == OP_CONV2D || kind == OP_CONV_TRANSPOSE;
}

/* ---- tests --------------------------------------------------------------- */

static void check_case(const op_case_t *test, op_type_t type)
{
    op_config_t config = test->config;

    if (!is_conv(config.kind))
        return;
    config.bias = !test->no_bias;
    config.training = !test->evaluation;
    config.need_dx = config.training && !test->no_dx;
    check_conv(config, type, true, test->name);
}

ParameterizedTestParameters(cudnn_plans, of_the_op_table)
{
    static op_type_t types[] = {OP_FLOAT32, OP_TF32, OP_BFLOAT16};

    return cr_make_param_array(op_type_t, types, 3);
}

ParameterizedTest(const op_type_t *type, cudnn_plans, of_the_op_table)
{
    for (int i = 0; i < op_case_count; i++)
        check_case(&op_cases[i], *type);
    for (int i = 0; i < op_perf_case_count; i++)
        check_case(&op_perf_cases[i], *type);
}

/* A preset with a batch of one GPU. */
typedef struct preset {
    int batch;
    char model[128];
} preset_t;

static preset_t presets[] = {
    {256, "preset: lenet, input: [1, 28, 28], classes: 10"},
    {256, "preset: resnet18, input: [3, 32, 32], classes: 10"},
    {128, "preset: resnet50, input: [3, 224, 224], classes: 1000"},
    {16, "preset: unet2d, input: [3, 256, 256], out: 2"},
    {64, "preset: vit, input: [3, 224, 224], classes: 1000"},
    {4, "preset: cosmoflow, input: [4, 128, 128, 128]"},
    {2, "preset: unet3d, input: [1, 128, 128, 128], out: 3"},
    {2, "preset: deepcam, input: [16, 768, 1152]"},
};

ParameterizedTestParameters(cudnn_plans, of_the_presets)
{
    return cr_make_param_array(preset_t, presets,
                               sizeof presets / sizeof *presets);
}

/* Is the conv of layer [i] that of an earlier layer once more? */
static bool is_repeated(const nn_graph_t *graph, int i)
{
    const op_config_t *config = &graph->layers[i].config;

    for (int k = 0; k < i; k++) {
        const op_config_t *other = &graph->layers[k].config;

        if (other->kind == config->kind && other->in.ndim == config->in.ndim &&
            memcmp(other->in.dims, config->in.dims, sizeof config->in.dims) ==
                0 &&
            memcmp(&other->conv, &config->conv, sizeof config->conv) == 0)
            return true;
    }
    return false;
}

static void check_preset(const nn_graph_t *graph, const preset_t *preset,
                         op_type_t type)
{
    for (int i = 0; i < graph->layer_count; i++) {
        op_config_t config = graph->layers[i].config;
        char name[256];

        if (!is_conv(config.kind) || is_repeated(graph, i))
            continue;
        snprintf(name, sizeof name, "%s, %s", preset->model,
                 graph->layers[i].name);
        config.in.dims[0] = preset->batch;
        config.training = true;
        config.need_dx = !nn_is_input(graph->layers[i].from[0]);
        check_conv(config, type, false, name);
    }
}

ParameterizedTest(const preset_t *preset, cudnn_plans, of_the_presets)
{
    char yaml[256];
    nn_graph_t *graph;

    snprintf(yaml, sizeof yaml, "model: {%s}\nloss: %s\n", preset->model,
             strstr(preset->model, "cosmoflow") != NULL ? "mse"
                                                        : "cross_entropy");
    graph = fixture_graph(yaml);
    check_preset(graph, preset, OP_FLOAT32);
    check_preset(graph, preset, OP_BFLOAT16);
    nn_graph_close(graph);
}

/* ---- attention ----------------------------------------------------------- */

TestSuite(cudnn_attention, .init = open_planner_that_loads,
          .fini = close_planner, .timeout = 600);

typedef struct attention {
    int64_t N, T, S, H, G, D;
    bool causal;
} attention_t;

/* The first ATTENTIONS_ALWAYS shapes are planned without CDDP_LONG, too. */
#define ATTENTIONS_ALWAYS 2
static attention_t attentions[] = {
    {2, 65, 129, 4, 2, 24, false},     {2, 511, 511, 2, 2, 256, true},
    {4, 1024, 1024, 12, 12, 64, true}, /* GPT-2 */
    {64, 197, 197, 12, 12, 64, false}, /* ViT */
    {2, 128, 128, 2, 2, 24, true},     {2, 127, 127, 2, 1, 32, true},
    {2, 100, 300, 4, 4, 40, false},    {2, 512, 512, 4, 1, 96, false},
    {2, 512, 512, 2, 2, 128, true},    {2, 333, 333, 2, 2, 128, false},
    {2, 257, 257, 2, 2, 192, true},    {2, 64, 64, 2, 2, 256, false},
    {1, 7, 7, 1, 1, 8, true},
};

static cuda_attention_shape_t shape_of(const attention_t *a)
{
    const int64_t width = (a->H + 2 * a->G) * a->D;

    return (cuda_attention_shape_t){.N = a->N,
                                    .T = a->T,
                                    .S = a->S,
                                    .H = a->H,
                                    .G = a->G,
                                    .D = a->D,
                                    .stride = {width, width, width},
                                    .causal = a->causal,
                                    .training = true};
}

ParameterizedTestParameters(cudnn_attention, plans)
{
    return cr_make_param_array(attention_t, attentions,
                               getenv("CDDP_LONG") == NULL
                                   ? ATTENTIONS_ALWAYS
                                   : sizeof attentions / sizeof *attentions);
}

/* Plan [a], print the plans and check their notes. cuDNN's deterministic
 * gradients keep a bfloat16 for each score. The size of the workspace shows
 * whether the plan is one of these, and not one that adds in any order. */
static void plan_attention(const attention_t *a, cuda_attention_plans_t *plans)
{
    const cuda_attention_shape_t shape = shape_of(a);
    const double began = clock_now();
    bool unsupported = false;
    err_t err = ERR_INIT;
    char name[128];

    snprintf(name, sizeof name, "attention %lld x %lld x %lld to %lld, %lld%s",
             (long long)a->N, (long long)a->H, (long long)a->T, (long long)a->S,
             (long long)a->D, a->causal ? ", causal" : "");
    cr_assert_eq(
        cuda_attention_plans_open(&shape, &planner, plans, &unsupported, &err),
        ERR_OK, "%s: %s", name, err.text);
    cr_assert(!unsupported, "%s: %s", name, err.text);
    printf("%s, planned in %.2f s\n", name, clock_now() - began);
    print_plan(plans->forward, "y");
    print_plan(plans->backward, "gradients");
    check_notes(plans->forward, OP_BFLOAT16, name);
    check_notes(plans->backward, OP_BFLOAT16, name);
    if (cudnnGetVersion() < 92500)
        cr_assert_geq((int64_t)cuda_plan_workspace(plans->backward),
                      2 * a->N * a->H * a->T * a->S, "%s", name);
}

ParameterizedTest(const attention_t *a, cudnn_attention, plans)
{
    cuda_attention_plans_t plans = {0};

    plan_attention(a, &plans);
    cuda_attention_plans_close(&plans);
}

/* In training, heads of more than 128 features are refused before sm_90. */
TestSuite(cudnn_ampere, .init = open_planner_of_a100, .fini = close_planner,
          .timeout = 600);

ParameterizedTestParameters(cudnn_ampere, plans)
{
    return cr_make_param_array(attention_t, attentions,
                               getenv("CDDP_LONG") == NULL
                                   ? 1
                                   : sizeof attentions / sizeof *attentions);
}

ParameterizedTest(const attention_t *a, cudnn_ampere, plans)
{
    cuda_attention_plans_t plans = {0};

    if (a->D > 128)
        cr_skip_test("%lld features", (long long)a->D);
    plan_attention(a, &plans);
    cuda_attention_plans_close(&plans);
}
