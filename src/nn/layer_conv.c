/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* conv and conv_transpose over 1 to 3 spatial dimensions of [channels, ...].
 * Options such as kernel are one number, or one number for each spatial
 * dimension. */
#include "nn/registry.h"

#define SIZE_LIMIT \
    (1 << 20) /* maximum of kernels and strides; more is a typing error */

typedef struct conv_options {
    int64_t out, groups;
    opt_ints_t kernel, stride, pad, dilation, out_pad;
    bool bias;
} conv_options_t;

_Static_assert(sizeof(conv_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

#define OUT_ROW                                                            \
    {                                                                      \
        .name = "out", .type = OPT_INT,                                    \
        .offset = offsetof(conv_options_t, out), .min = 1, .max = 1 << 28, \
        .help = "Number of channels of the output"                         \
    }
#define KERNEL_ROW                                                         \
    {                                                                      \
        .name = "kernel", .type = OPT_INTS,                                \
        .offset = offsetof(conv_options_t, kernel), .min = 1,              \
        .max = SIZE_LIMIT,                                                 \
        .help = "Size of the kernel: one number, or one for each spatial " \
                "dimension"                                                \
    }
#define STRIDE_ROW                                                             \
    {                                                                          \
        .name = "stride", .type = OPT_INTS,                                    \
        .offset = offsetof(conv_options_t, stride), .fallback = "1", .min = 1, \
        .max = SIZE_LIMIT,                                                     \
        .help = "Number of elements by which the kernel moves from one "       \
                "output to the next"                                           \
    }
#define PAD_ROW(words, text)                                                \
    {                                                                       \
        .name = "pad", .type = OPT_INTS,                                    \
        .offset = offsetof(conv_options_t, pad), .fallback = "0", .min = 0, \
        .max = SIZE_LIMIT, .choices = words, .help = text                   \
    }
#define DILATION_ROW                                                       \
    {                                                                      \
        .name = "dilation", .type = OPT_INTS,                              \
        .offset = offsetof(conv_options_t, dilation), .fallback = "1",     \
        .min = 1, .max = SIZE_LIMIT,                                       \
        .help = "Distance between the elements that the kernel reads; 1: " \
                "neighbours"                                               \
    }
#define GROUPS_ROW                                                             \
    {                                                                          \
        .name = "groups", .type = OPT_INT,                                     \
        .offset = offsetof(conv_options_t, groups), .fallback = "1", .min = 1, \
        .max = 1 << 28,                                                        \
        .help = "Number of groups of channels that are convolved separately; " \
                "it divides the numbers of channels of input and output"       \
    }
#define BIAS_ROW                                                      \
    {                                                                 \
        .name = "bias", .type = OPT_BOOL,                             \
        .offset = offsetof(conv_options_t, bias), .fallback = "true", \
        .help = "Add a learnt number to each channel"                 \
    }

static const char *const pads[] = {"same", NULL};

static const opt_row_t conv_rows[] = {
    OUT_ROW,
    KERNEL_ROW,
    STRIDE_ROW,
    PAD_ROW(pads, "Number of zeros added on each side; same: as many as keep "
                  "the size, which needs stride 1 (if the sum of both sides is "
                  "odd, the end gets one more)"),
    DILATION_ROW,
    GROUPS_ROW,
    BIAS_ROW,
    {.name = NULL},
};

static const opt_row_t transpose_rows[] = {
    OUT_ROW,
    KERNEL_ROW,
    STRIDE_ROW,
    PAD_ROW(NULL, "Number of elements by which each side of the output is "
                  "shortened (PyTorch's padding)"),
    DILATION_ROW,
    GROUPS_ROW,
    BIAS_ROW,
    {.name = "out_pad",
     .type = OPT_INTS,
     .offset = offsetof(conv_options_t, out_pad),
     .fallback = "0",
     .min = 0,
     .max = SIZE_LIMIT,
     .help = "Number of elements added at the end of the output, less than the "
             "stride (PyTorch's output_padding). With a stride, a convolution "
             "maps several sizes to one; this chooses among them"},
    {.name = NULL},
};

/* Choose the padding with which y has the size of x. */
static err_code_t conv_pad_same(op_conv_t *conv, int space, const tree_t *tree,
                                err_t *err)
{
    for (int i = 0; i < space; i++) {
        const int64_t reach = conv->dilation[i] * (conv->kernel[i] - 1);

        if (conv->stride[i] != 1)
            return nn_fail_at(tree_place(tree_get(tree, "pad")), err,
                              "pad: same keeps the size, which a stride of "
                              "%lld does not; give pad as a number",
                              (long long)conv->stride[i]);
        conv->pad[i] = reach / 2;
        conv->behind[i] = reach % 2;
    }
    return ERR_OK;
}

static err_code_t conv_configure(nn_layer_t *layer, const void *options,
                                 const tree_t *tree, err_t *err)
{
    const conv_options_t *conv = options;
    op_conv_t *config = &layer->config.conv;
    err_code_t rc;

    layer->config.bias = conv->bias;
    config->out = conv->out;
    config->groups = conv->groups;
    rc = nn_space(&conv->kernel, &layer->config.in, tree, "kernel",
                  config->kernel, err);
    if (rc == ERR_OK)
        rc = nn_space(&conv->stride, &layer->config.in, tree, "stride",
                      config->stride, err);
    if (rc == ERR_OK)
        rc = nn_space(&conv->dilation, &layer->config.in, tree, "dilation",
                      config->dilation, err);
    if (rc != ERR_OK)
        return rc;
    if (conv->pad.count < 0)
        return conv_pad_same(config, layer->config.in.ndim - 2, tree, err);
    return nn_space(&conv->pad, &layer->config.in, tree, "pad", config->pad,
                    err);
}

const nn_kind_t nn_kind_conv = {
    .name = "conv",
    .op = OP_CONV2D,
    .help = "Convolution over [channels, ...] with 1 to 3 spatial dimensions",
    .rows = conv_rows,
    .params = {{"weight", NN_FILL_FAN_IN}, {"bias", NN_FILL_FAN_IN}},
    .configure = conv_configure,
};

static err_code_t transpose_configure(nn_layer_t *layer, const void *options,
                                      const tree_t *tree, err_t *err)
{
    const conv_options_t *conv = options;
    err_code_t rc = conv_configure(layer, options, tree, err);

    if (rc == ERR_OK)
        rc = nn_space(&conv->out_pad, &layer->config.in, tree, "out_pad",
                      layer->config.conv.out_pad, err);
    return rc;
}

const nn_kind_t nn_kind_conv_transpose = {
    .name = "conv_transpose",
    .op = OP_CONV_TRANSPOSE,
    .help = "Transposed convolution (deconvolution) over [channels, ...] with "
            "1 to 3 spatial dimensions. It maps the output's shape of a conv "
            "to the input's shape",
    .rows = transpose_rows,
    .params = {{"weight", NN_FILL_FAN_IN}, {"bias", NN_FILL_FAN_IN}},
    .configure = transpose_configure,
};
