/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>
#include <string.h>

#include "op/op_attention.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_ops.h"

static op_config_t conv_config(void)
{
    return (op_config_t){
        .kind = OP_CONV2D,
        .bias = true,
        .threads = 1,
        .conv = {.out = 8,
                 .kernel = {3, 5},
                 .stride = {2, 1},
                 .pad = {1, 0},
                 .dilation = {1, 2},
                 .groups = 2},
        .in = {.type = OP_FLOAT32, .ndim = 4, .dims = {7, 4, 9, 20}},
    };
}

static void expect_shape(const op_config_t *config, const char *text)
{
    char got[OP_TEXT_MAX];
    err_t err = ERR_INIT;
    op_desc_t out;

    cr_assert_eq(op_shape(config, &out, &err), ERR_OK, "%s", err.text);
    cr_expect_str_eq(op_desc_text(&out, got), text);
    cr_expect_eq(out.bytes,
                 (size_t)op_desc_elems(&out) * op_type_bytes(config->in.type));
    cr_expect_null(out.layout);
    cr_expect_eq(out.type, config->in.type);
}

/* Expect ERR_CONFIG and a message that contains [first] and [second]. */
static void expect_error(const op_config_t *config, const char *first,
                         const char *second)
{
    op_desc_t out = {.ndim = 77}, params[OP_PARAMS_MAX];
    err_t err = ERR_INIT;
    int count = 55;

    cr_expect_eq(op_shape(config, &out, &err), ERR_CONFIG);
    cr_expect_eq(out.ndim, 77, "the output was written");
    cr_expect(strstr(err.text, first), "no \"%s\" in: %s", first, err.text);
    cr_expect(strstr(err.text, second), "no \"%s\" in: %s", second, err.text);
    cr_expect_eq(op_params(config, params, &count, NULL), ERR_CONFIG);
    cr_expect_eq(count, 55);
}

Test(op_shape, conv)
{
    op_config_t config = conv_config();
    op_desc_t params[OP_PARAMS_MAX];
    char text[OP_TEXT_MAX];
    int count;

    expect_shape(&config, "[7, 8, 5, 12]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 2);
    cr_expect_str_eq(op_desc_text(&params[0], text), "[8, 2, 3, 5]");
    cr_expect_str_eq(op_desc_text(&params[1], text), "[8]");
    config.bias = false;
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 1);
}

Test(op_shape, conv_errors)
{
    op_config_t config = conv_config();

    config.conv.groups = 3;
    expect_error(&config, "4 channels in and 8 out", "[7, 4, 9, 20]");
    config = conv_config();
    config.in.dims[3] = 8;
    expect_error(&config, "kernel [3, 5]", "[7, 4, 9, 8]");
    config = conv_config();
    config.conv.stride[1] = 0;
    expect_error(&config, "stride", "[7, 4, 9, 20]");
    config = conv_config();
    config.conv.pad[0] = -1;
    expect_error(&config, "pad", "[7, 4, 9, 20]");
    config = conv_config();
    config.in.ndim = 2;
    expect_error(&config, "[N, channels, 1 to 3 dimensions]", "[7, 4]");
    config = conv_config();
    config.in.dims[2] = 0;
    expect_error(&config, "empty", "[7, 4, 0, 20]");
    config = conv_config();
    config.in.type = OP_INT64;
    expect_error(&config, "integers", "[7, 4, 9, 20]");
    config = conv_config();
    config.in.ndim = OP_DIMS_MAX + 1;
    expect_error(&config, "1 to 6 dimensions", "7");
}

Test(op_shape, linear)
{
    op_config_t config = {
        .kind = OP_LINEAR,
        .out = 10,
        .bias = true,
        .in = {.type = OP_FLOAT64, .ndim = 4, .dims = {3, 2, 4, 5}}};
    op_desc_t params[OP_PARAMS_MAX];
    char text[OP_TEXT_MAX];
    int count;

    expect_shape(&config, "[3, 10]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 2);
    cr_expect_str_eq(op_desc_text(&params[0], text), "[10, 40]");
    cr_expect_eq(params[0].type, OP_FLOAT64);
    config.out = 0;
    expect_error(&config, "out is 0", "[3, 2, 4, 5]");
    config.out = 1;
    config.in.ndim = 1;
    expect_error(&config, "[N, features]", "[3]");
}

Test(op_shape, maxpool)
{
    op_config_t config = {
        .kind = OP_MAXPOOL2D,
        .pool = {.kernel = {3, 2}, .stride = {2, 2}, .pad = {1, 0}},
        .in = {.type = OP_FLOAT32, .ndim = 4, .dims = {3, 2, 7, 5}}};

    expect_shape(&config, "[3, 2, 4, 2]");
    config.pool.pad[0] = 2;
    expect_error(&config, "pad [2, 0]", "[3, 2, 7, 5]");
    config.pool.pad[0] = 0;
    config.pool.kernel[1] = 6;
    expect_error(&config, "kernel [3, 6]", "[3, 2, 7, 5]");
}

Test(op_shape, others)
{
    op_config_t config = {
        .kind = OP_RELU,
        .epsilon = 1e-5,
        .in = {.type = OP_FLOAT32, .ndim = 3, .dims = {3, 2, 7}}};
    op_desc_t params[OP_PARAMS_MAX];
    int count;

    expect_shape(&config, "[3, 2, 7]");
    config.kind = OP_FLATTEN;
    expect_shape(&config, "[3, 14]");
    config.kind = OP_MSE;
    expect_shape(&config, "[1]");
    config.kind = OP_CROSS_ENTROPY;
    expect_shape(&config, "[1]");
    config.loss.axis = 3;
    expect_error(&config, "has 3 dimensions", "number 3");
    config.loss.axis = 2;
    config.loss.smoothing = 1.5;
    expect_error(&config, "smoothing is 1.5", "from 0 to 1");
    config.kind = OP_BATCHNORM;
    expect_shape(&config, "[3, 2, 7]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 2);
    cr_expect_eq(params[1].dims[0], 2);
    config.epsilon = 0;
    expect_error(&config, "epsilon is 0", "[3, 2, 7]");
    config.kind = OP_DROPOUT;
    config.rate = 1;
    expect_error(&config, "rate is 1", "[3, 2, 7]");
    config.kind = (op_kind_t)99;
    expect_error(&config, "99", "kind");
}

Test(op_shape, flops)
{
    const op_backend_ops_t *ref;
    op_config_t config = conv_config();
    op_t *op;

    cr_assert_eq(op_backend_get("ref", &ref, NULL), ERR_OK);
    cr_assert_eq(op_open(ref, NULL, &config, &op, NULL), ERR_OK);
    cr_expect_eq(op_flops(op), 2.0 * 7 * 8 * 5 * 12 * 2 * 3 * 5);
    op_close(op);
    op_close(NULL);
}

/* Labels that are not among the classes, on both backends. */
Test(op_shape, bad_label)
{
    static const char *const backends[] = {"ref", "cpu"};
    static const int64_t bad[] = {3, -1};

    for (int i = 0; i < 4; i++) {
        op_config_t config = {
            .kind = OP_CROSS_ENTROPY,
            .training = true,
            .need_dx = true,
            .threads = 1,
            .in = {.type = OP_FLOAT32, .ndim = 2, .dims = {2, 3}}};
        int64_t target[2] = {2, bad[i / 2]};
        double correct = 9;
        float x[6] = {0}, workspace[64];
        double loss = 7, scratch[64];
        op_args_t args = {.x = x,
                          .target = target,
                          .workspace = workspace,
                          .scratch = scratch,
                          .loss_sum = &loss,
                          .correct = &correct};
        const op_backend_ops_t *backend;
        err_t err = ERR_INIT;
        op_t *op;

        cr_assert_eq(op_backend_get(backends[i % 2], &backend, &err), ERR_OK);
        cr_assert_eq(op_open(backend, NULL, &config, &op, &err), ERR_OK);
        cr_expect_eq(op_forward(op, &args, &err), ERR_DATA);
        cr_expect(strstr(err.text, "classes 0 to 2"), "%s", err.text);
        cr_expect_eq(loss, 7);
        cr_expect_eq(correct, 9);
        op_close(op);
    }
}

Test(op_shape, no_backward_in_evaluation)
{
    op_config_t config = {.kind = OP_RELU,
                          .threads = 1,
                          .in = {.type = OP_FLOAT32, .ndim = 1, .dims = {4}}};
    const op_backend_ops_t *ref;
    err_t err = ERR_INIT;
    op_args_t args = {0};
    op_t *op;

    cr_assert_eq(op_backend_get("ref", &ref, NULL), ERR_OK);
    config.threads = 0;
    cr_expect_eq(op_open(ref, NULL, &config, &op, &err), ERR_CONFIG);
    config.threads = 1;
    cr_assert_eq(op_open(ref, NULL, &config, &op, NULL), ERR_OK);
    cr_expect_eq(op_backward(op, &args, &err), ERR_CONFIG);
    op_close(op);
}

static op_config_t structure(op_kind_t kind, op_view_t view)
{
    return (op_config_t){
        .kind = kind,
        .threads = 1,
        .view = view,
        .in = {.type = OP_FLOAT32, .ndim = 4, .dims = {2, 3, 4, 5}},
        .others = kind == OP_ADD || kind == OP_MUL || kind == OP_CONCAT,
        .other = {{.type = OP_FLOAT32, .ndim = 4, .dims = {2, 3, 4, 5}}}};
}

Test(op_shape, linear_of_the_last_dimension)
{
    op_config_t config = {
        .kind = OP_LINEAR,
        .last = true,
        .threads = 1,
        .out = 9,
        .in = {.type = OP_FLOAT32, .ndim = 4, .dims = {2, 3, 4, 5}}};
    op_desc_t params[OP_PARAMS_MAX];
    int count = 0;

    expect_shape(&config, "[2, 3, 4, 9]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(params[0].dims[1], 5);
    config.last = false;
    expect_shape(&config, "[2, 9]");
}

Test(op_shape, structure)
{
    op_config_t add = structure(OP_ADD, (op_view_t){0});
    op_config_t mul = structure(OP_MUL, (op_view_t){0});
    op_config_t concat = structure(OP_CONCAT, (op_view_t){.axis = 2});
    op_config_t reshape =
        structure(OP_RESHAPE, (op_view_t){.ndim = 2, .dims = {6, 10}});
    op_config_t permute =
        structure(OP_PERMUTE, (op_view_t){.ndim = 3, .dims = {3, 1, 2}});
    op_config_t slice =
        structure(OP_SLICE, (op_view_t){.axis = 3, .start = 4, .size = 1});
    op_config_t mean =
        structure(OP_MEAN, (op_view_t){.axis = 2, .axis_last = 3});
    op_config_t upsample =
        structure(OP_UPSAMPLE, (op_view_t){.ndim = 2, .dims = {2, 3}});

    expect_shape(&add, "[2, 3, 4, 5]");
    add.others = 0;
    expect_error(&add, "2 to 8 inputs", "got 1");
    mul.other[0].dims[3] = 6;
    expect_error(&mul, "[2, 3, 4, 5]", "input 2 is [2, 3, 4, 6]");
    expect_shape(&concat, "[2, 3, 8, 5]");
    concat.other[0].dims[2] = 7;
    expect_shape(&concat, "[2, 3, 11, 5]");
    concat.other[0].dims[1] = 9;
    expect_error(&concat, "[2, 3, 4, 5]", "[2, 9, 7, 5]");
    concat.view.axis = 4;
    expect_error(&concat, "no axis 4", "1 to 3");
    expect_shape(&reshape, "[2, 6, 10]");
    reshape.view.dims[1] = 11;
    expect_error(&reshape, "60 elements", "[2, 6, 11]");
    reshape.view.ndim = 0;
    expect_error(&reshape, "1 to 5", "not 0");
    expect_shape(&permute, "[2, 5, 3, 4]");
    permute.view.dims[1] = 3;
    expect_error(&permute, "1 to 3", "once");
    expect_shape(&slice, "[2, 3, 4, 1]");
    slice.view.size = 2;
    expect_error(&slice, "2 elements from 4 on", "which has 5");
    slice.view.axis = 0;
    expect_error(&slice, "no axis 0", "1 to 3");
    expect_shape(&mean, "[2, 3]");
    mean.view.axis = 1;
    expect_error(&mean, "all dimensions", "[2, 3, 4, 5]");
    mean.view.axis_last = 4;
    expect_error(&mean, "1 to 4", "1 to 3");
    expect_shape(&upsample, "[2, 3, 8, 15]");
    upsample.view.dims[0] = 0;
    expect_error(&upsample, "factor 0", "[2, 3, 4, 5]");
    upsample.view.ndim = 1;
    expect_error(&upsample, "one factor", "has 1");
}

static op_config_t of(op_kind_t kind, int ndim, int64_t a, int64_t b, int64_t c)
{
    return (op_config_t){
        .kind = kind,
        .threads = 1,
        .epsilon = 1e-5,
        .in = {.type = OP_FLOAT32, .ndim = ndim, .dims = {a, b, c}}};
}

Test(op_shape, norms_and_constants)
{
    op_config_t layer = of(OP_LAYERNORM, 3, 2, 5, 8);
    op_config_t group = of(OP_GROUPNORM, 3, 2, 6, 8);
    op_config_t instance = of(OP_INSTANCENORM, 3, 2, 6, 8);
    op_config_t softplus = of(OP_SOFTPLUS, 2, 2, 6, 0);
    op_config_t huber = of(OP_HUBER, 2, 2, 6, 0);

    layer.norm.axis = 2;
    expect_shape(&layer, "[2, 5, 8]");
    layer.norm.axis = 3;
    expect_error(&layer, "no dimension 3", "1 to 2");
    layer.epsilon = 0;
    expect_error(&layer, "epsilon", "positive");
    group.norm.groups = 3;
    expect_shape(&group, "[2, 6, 8]");
    group.norm.groups = 4;
    expect_error(&group, "6 channels", "groups, which is 4");
    expect_shape(&instance, "[2, 6, 8]");
    instance.in.dims[2] = 1;
    expect_error(&instance, "[2, 6, 1]", "no variance");
    expect_error(&softplus, "softplus", "positive");
    expect_error(&huber, "huber", "positive");
    huber.alpha = 1;
    expect_shape(&huber, "[1]");
}

Test(op_shape, pools)
{
    op_config_t pool = of(OP_AVGPOOL, 3, 2, 6, 9);
    op_config_t adaptive = of(OP_ADAPTIVE_AVGPOOL, 3, 2, 6, 9);

    pool.pool = (op_pool_t){.kernel = {3}, .stride = {2}, .pad = {1}};
    expect_shape(&pool, "[2, 6, 5]");
    pool.pool.pad[0] = 2;
    expect_error(&pool, "pad [2]", "kernel [3]");
    adaptive.view = (op_view_t){.ndim = 1, .dims = {4}};
    expect_shape(&adaptive, "[2, 6, 4]");
    adaptive.view.dims[0] = 0;
    expect_error(&adaptive, "[2, 6, 9]", "size [0]");
    adaptive.view.ndim = 2;
    expect_error(&adaptive, "[2, 6, 9]", "positive number for each");
}

Test(op_shape, attention)
{
    op_config_t packed = of(OP_ATTENTION, 3, 2, 5, 32);
    op_config_t apart = of(OP_ATTENTION, 3, 2, 5, 16);

    packed.heads = (op_heads_t){.heads = 4, .kv_heads = 2, .causal = true};
    expect_shape(&packed, "[2, 5, 16]");
    packed.heads.kv_heads = 3;
    expect_error(&packed, "heads, which is 4", "kv_heads, which is 3");
    packed.heads.kv_heads = 4;
    expect_error(&packed, "32 features", "multiple of 12");
    apart.heads = (op_heads_t){.heads = 4, .kv_heads = 2};
    apart.others = 2;
    for (int i = 0; i < 2; i++)
        apart.other[i] =
            (op_desc_t){.type = OP_FLOAT32, .ndim = 3, .dims = {2, 7, 8}};
    expect_shape(&apart, "[2, 5, 16]");
    apart.heads.causal = true;
    expect_error(&apart, "k [2, 7, 8]", "S = T");
    apart.others = 1;
    expect_error(&apart, "keys and values [2, 7, 8]", "[N, S, 4 D]");
    apart.heads.causal = false;
    apart.other[0].dims[2] = 16;
    expect_shape(&apart, "[2, 5, 16]");
    apart.others = 4;
    expect_error(&apart, "one input", "got 5");
    apart.others = 2;
    apart.heads.masked = true;
    expect_error(&apart, "the mask, its last input, is [2, 7, 8]", "[N, 7]");
    apart.other[1] = (op_desc_t){.type = OP_FLOAT32, .ndim = 2, .dims = {2, 7}};
    expect_shape(&apart, "[2, 5, 16]");
    apart.other[1].dims[1] = 1;
    expect_shape(&apart, "[2, 5, 16]");
}

/* The values of a mask are checked when they are read. */
Test(op_shape, mask_of_attention)
{
    op_config_t config = of(OP_ATTENTION, 3, 2, 3, 12);
    float mask[] = {1, 0, 1, 1, 2, 0}, lengths[] = {0, 2.5}, open[6];
    err_t err = ERR_INIT;

    config.heads = (op_heads_t){.heads = 2, .kv_heads = 2, .masked = true};
    config.others = 1;
    config.other[0] =
        (op_desc_t){.type = OP_FLOAT32, .ndim = 2, .dims = {2, 3}};
    cr_expect_eq(op_attention_valid_keys(&config, mask, open, &err), ERR_DATA);
    cr_expect(strstr(err.text, "sample 1 of the batch holds 2 at position 1"),
              "%s", err.text);
    mask[4] = 1;
    cr_assert_eq(op_attention_valid_keys(&config, mask, open, &err), ERR_OK);
    cr_expect_arr_eq(open, mask, sizeof mask);
    config.other[0].dims[1] = 1;
    cr_expect_eq(op_attention_valid_keys(&config, lengths, open, &err),
                 ERR_DATA);
    cr_expect(strstr(err.text, "a whole number from 0 to 3"), "%s", err.text);
    lengths[1] = 2;
    cr_assert_eq(op_attention_valid_keys(&config, lengths, open, &err), ERR_OK);
    cr_expect_arr_eq(open, ((float[]){0, 0, 0, 1, 1, 0}), sizeof open);
}

Test(op_shape, embedding)
{
    op_config_t config = {
        .kind = OP_EMBEDDING,
        .threads = 1,
        .out = 6,
        .embedding = {.rows = 50, .type = OP_FLOAT64},
        .in = {.type = OP_INT32, .ndim = 2, .dims = {3, 7}},
    };
    op_desc_t out, params[OP_PARAMS_MAX];
    char text[OP_TEXT_MAX];
    int count;

    cr_assert_eq(op_shape(&config, &out, NULL), ERR_OK);
    cr_expect_str_eq(op_desc_text(&out, text), "[3, 7, 6]");
    cr_expect_eq(out.type, OP_FLOAT64);
    cr_expect_eq(out.bytes, 3 * 7 * 6 * sizeof(double));
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 1);
    cr_expect_str_eq(op_desc_text(&params[0], text), "[50, 6]");
    config.embedding.rows = 0;
    expect_error(&config, "vocabulary is 0", "[3, 7]");
    config.embedding.rows = (int64_t)1 << 31;
    expect_error(&config, "less than 2^31", "[3, 7]");
    config.embedding.rows = 5;
    config.in.type = OP_FLOAT32;
    expect_error(&config, "whole numbers", "[3, 7]");
    config.in.type = OP_INT32;
    config.in =
        (op_desc_t){.type = OP_INT32, .ndim = 6, .dims = {3, 7, 1, 1, 1, 1}};
    expect_error(&config, "embedding takes", "[N, ...]");
    config.kind = OP_RELU;
    expect_error(&config, "relu takes", "holds integers");
}

Test(op_shape, rotary)
{
    op_config_t config = of(OP_ROTARY, 3, 2, 5, 24);

    config.rotary =
        (op_rotary_t){.parts = 6, .heads = 4, .base = 10, .halves = true};
    expect_shape(&config, "[2, 5, 24]");
    config.rotary.parts = 8;
    expect_error(&config, "24 features", "multiple of 16");
    config.rotary.parts = 3;
    expect_error(&config, "4 of 3 heads", "[2, 5, 24]");
    config.rotary = (op_rotary_t){.parts = 6, .heads = 4};
    expect_error(&config, "base 0", "[2, 5, 24]");
    config.in.ndim = 2;
    expect_error(&config, "rotary takes", "[N, tokens, features]");
}

Test(op_shape, resize)
{
    op_config_t pad = {
        .kind = OP_PAD,
        .threads = 1,
        .in = {.type = OP_FLOAT32, .ndim = 4, .dims = {2, 3, 4, 5}},
    };
    op_config_t most = pad, linear = pad;

    most.kind = OP_MAX;
    linear.kind = OP_UPSAMPLE_LINEAR;
    pad.pad = (op_pad_t){.before = {1, 2}, .after = {0, 4}, .reflect = true};
    expect_shape(&pad, "[2, 3, 5, 11]");
    pad.pad.after[1] = 5;
    expect_error(&pad, "5 elements cannot be mirrored", "[2, 3, 4, 5]");
    pad.pad.after[1] = -1;
    expect_error(&pad, "only add", "[2, 3, 4, 5]");
    pad.in.ndim = 2;
    expect_error(&pad, "pad takes", "[2, 3]");
    most.view = (op_view_t){.axis = 2, .axis_last = 3};
    expect_shape(&most, "[2, 3]");
    most.view.axis_last = 4;
    expect_error(&most, "max on", "1 to 3");
    linear.view = (op_view_t){.ndim = 2, .dims = {3, 1}};
    expect_shape(&linear, "[2, 3, 12, 5]");
    linear.view.dims[1] = 0;
    expect_error(&linear, "upsample_linear on", "factor 0");
    linear.view.ndim = 1;
    expect_error(&linear, "one factor", "has 1");
}

Test(op_shape, taps_of_upsample)
{
    op_tap_t tap = op_upsample_tap(0, 2, 3);

    cr_expect(tap.first == 0 && tap.weight == 0);
    tap = op_upsample_tap(1, 2, 3);
    cr_expect(tap.first == 0 && tap.second == 1 && tap.weight == 0.25);
    tap = op_upsample_tap(4, 2, 3);
    cr_expect(tap.first == 1 && tap.second == 2 && tap.weight == 0.75);
    tap = op_upsample_tap(5, 2, 3);
    cr_expect(tap.first == 2 && tap.second == 2);
}

Test(op_shape, conv_transpose)
{
    op_config_t config = conv_config();
    op_desc_t params[OP_PARAMS_MAX];
    char text[OP_TEXT_MAX];
    int count;

    config.kind = OP_CONV_TRANSPOSE;
    config.conv.out_pad[0] = 1;
    expect_shape(&config, "[7, 8, 18, 28]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 2);
    cr_expect_str_eq(op_desc_text(&params[0], text), "[4, 4, 3, 5]");
    cr_expect_str_eq(op_desc_text(&params[1], text), "[8]");
    config.conv.out_pad[0] = 2;
    expect_error(&config, "out_pad 2", "stride 2");
    config.conv.out_pad[0] = 0;
    config.conv.pad[0] = 10;
    expect_error(&config, "pad 10", "leaves nothing of dimension 2");
    config.conv.groups = 3;
    expect_error(&config, "conv_transpose on", "multiples of groups");
}

Test(op_shape, recurrent)
{
    op_config_t config = of(OP_LSTM, 3, 2, 5, 24);
    op_desc_t params[OP_PARAMS_MAX];
    char text[OP_TEXT_MAX];
    int count;

    config.out = 7;
    config.bias = true;
    expect_shape(&config, "[2, 5, 7]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 4);
    cr_expect_str_eq(op_desc_text(&params[0], text), "[28, 24]");
    cr_expect_str_eq(op_desc_text(&params[1], text), "[28, 7]");
    cr_expect_str_eq(op_desc_text(&params[3], text), "[28]");
    config.kind = OP_GRU;
    config.bias = false;
    config.recurrent.last = true;
    expect_shape(&config, "[2, 7]");
    cr_assert_eq(op_params(&config, params, &count, NULL), ERR_OK);
    cr_expect_eq(count, 2);
    cr_expect_str_eq(op_desc_text(&params[1], text), "[21, 7]");
    config.out = 0;
    expect_error(&config, "gru on", "out is 0");
    config.in.ndim = 2;
    expect_error(&config, "gru takes", "[N, tokens, features]");
}
