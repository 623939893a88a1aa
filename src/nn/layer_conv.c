/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* conv: convolution over the 1 to 3 dimensions of space of [channels, ...].
 * Spatial options are one number, or one for each of them. */
#include "nn/registry.h"

#define SIZE_LIMIT                                            \
    (1 << 20) /* of a kernel or a step; catches typing errors \
               */

typedef struct conv_options {
    int64_t out, groups;
    opt_ints_t kernel, stride, pad, dilation;
    bool bias;
} conv_options_t;

_Static_assert(sizeof(conv_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t conv_rows[] = {
    {.name = "out",
     .type = OPT_INT,
     .offset = offsetof(conv_options_t, out),
     .min = 1,
     .max = 1 << 28,
     .help = "Channels of the output"},
    {.name = "kernel",
     .type = OPT_INTS,
     .offset = offsetof(conv_options_t, kernel),
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "Size of the kernel, one number or one for each dimension"},
    {.name = "stride",
     .type = OPT_INTS,
     .offset = offsetof(conv_options_t, stride),
     .fallback = "1",
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "Step between outputs"},
    {.name = "pad",
     .type = OPT_INTS,
     .offset = offsetof(conv_options_t, pad),
     .fallback = "0",
     .min = 0,
     .max = SIZE_LIMIT,
     .help = "Zeros added on both sides"},
    {.name = "dilation",
     .type = OPT_INTS,
     .offset = offsetof(conv_options_t, dilation),
     .fallback = "1",
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "Distance between the points that the kernel reads"},
    {.name = "groups",
     .type = OPT_INT,
     .offset = offsetof(conv_options_t, groups),
     .fallback = "1",
     .min = 1,
     .max = 1 << 28,
     .help = "Groups of channels that are convolved apart; divides the "
             "channels of input and output"},
    {.name = "bias",
     .type = OPT_BOOL,
     .offset = offsetof(conv_options_t, bias),
     .fallback = "true",
     .help = "Add a learnt number to each channel"},
    {.name = NULL},
};

static err_code_t conv_configure(nn_layer_t *layer, const void *options,
                                 const tree_t *tree, err_t *err)
{
    const conv_options_t *conv = options;
    op_conv_t *config = &layer->config.conv;
    err_code_t code;

    layer->config.bias = conv->bias;
    config->out = conv->out;
    config->groups = conv->groups;
    code = nn_space(&conv->kernel, &layer->config.in, tree, "kernel",
                    config->kernel, err);
    if (code == ERR_OK)
        code = nn_space(&conv->stride, &layer->config.in, tree, "stride",
                        config->stride, err);
    if (code == ERR_OK)
        code = nn_space(&conv->pad, &layer->config.in, tree, "pad", config->pad,
                        err);
    if (code == ERR_OK)
        code = nn_space(&conv->dilation, &layer->config.in, tree, "dilation",
                        config->dilation, err);
    return code;
}

const nn_kind_t nn_kind_conv = {
    .name = "conv",
    .op = OP_CONV2D,
    .help = "Convolution over [channels, ...] with 1 to 3 "
            "dimensions of space",
    .rows = conv_rows,
    .params = {{"weight", NN_FILL_FAN_IN}, {"bias", NN_FILL_FAN_IN}},
    .configure = conv_configure,
};
