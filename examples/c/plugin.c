/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A plugin: the layer own_prelu (He et al., "Delving Deep into Rectifiers",
 * 2015), a leaky relu that learns a slope for each channel, and a small network
 * that uses it. cddp itself has this layer as prelu: {channels: true}, so the
 * plugin gives its own another name.
 *
 *   cc -shared -fPIC plugin.c $(pkg-config --cflags cddp) -o libprelu.so
 *   cddp-train run.yaml     with  model: {plugin: ./libprelu.so, input: [1, 32,
 * 32], classes: 2, width: 8}
 */
#include <cddp/plugin.h>
#include <stdio.h>

/* ---- the layer ----------------------------------------------------------- */

/* Elements of each channel of a sample, for [x] of shape [N, C, ...]. */
static int64_t space_of(const cddp_shape_t *x)
{
    int64_t space = 1;

    for (int i = 2; i < x->ndim; i++)
        space *= x->dims[i];
    return space;
}

static cddp_code_t prelu_shape(cddp_shapes_t *shapes, cddp_error_t *error)
{
    if (shapes->in[0].ndim < 2)
        return cddp_refuse(error, "it needs channels");
    shapes->out = shapes->in[0];
    shapes->params = 1;
    shapes->param[0].ndim = 1;
    shapes->param[0].dims[0] = shapes->in[0].dims[1];
    return CDDP_OK;
}

static cddp_code_t prelu_forward(const cddp_call_t *call, cddp_error_t *error)
{
    const cddp_shape_t *shape = &call->shapes->in[0];
    const int64_t channels = shape->dims[1], space = space_of(shape);
    const float start = (float)call->shapes->options[0];

    (void)error;
    for (int64_t row = 0; row < shape->dims[0] * channels; row++) {
        const float slope = start + call->params[0][row % channels];
        const float *x = call->x[0] + row * space;
        float *y = call->y + row * space;

        for (int64_t i = 0; i < space; i++)
            y[i] = x[i] > 0 ? x[i] : slope * x[i];
    }
    return CDDP_OK;
}

/* Backward of one channel of a sample; returns its part of the gradient of the
 * slope. */
static double prelu_row(const float *x, const float *dy, float *dx, float slope,
                        int64_t space)
{
    double sum = 0;

    for (int64_t i = 0; i < space; i++) {
        if (dx != NULL)
            dx[i] = x[i] > 0 ? dy[i] : slope * dy[i];
        sum += x[i] > 0 ? 0 : (double)dy[i] * x[i];
    }
    return sum;
}

static cddp_code_t prelu_backward(const cddp_call_t *call, cddp_error_t *error)
{
    const cddp_shape_t *shape = &call->shapes->in[0];
    const int64_t channels = shape->dims[1], space = space_of(shape);
    const float start = (float)call->shapes->options[0];

    (void)error;
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;

        for (int64_t n = 0; n < shape->dims[0]; n++) {
            const int64_t at = (n * channels + c) * space;

            sum += prelu_row(call->x[0] + at, call->dy + at,
                             call->dx[0] == NULL ? NULL : call->dx[0] + at,
                             start + call->params[0][c], space);
        }
        call->dparams[0][c] = (float)sum;
    }
    return CDDP_OK;
}

static const cddp_option_t prelu_options[] = {
    {.name = "start",
     .help = "Slope of all channels at first",
     .fallback = "0.25",
     .min = -1,
     .max = 1},
    {.name = NULL},
};

static const cddp_layer_t prelu = {
    .name = "own_prelu",
    .help =
        "Negative numbers are multiplied by a slope learnt for each channel",
    .options = prelu_options,
    .params = {{"slope", CDDP_BEGIN_ZERO}}, /* added to start */
    .shape = prelu_shape,
    .forward = prelu_forward,
    .backward = prelu_backward,
};

/* ---- the model ----------------------------------------------------------- */

static cddp_code_t build(const cddp_build_t *build, cddp_error_t *error)
{
    const int classes = (int)build->options[0], width = (int)build->options[1];
    const cddp_host_t *host = build->host;
    char options[64];

    if (build->input[0].ndim != 3)
        return cddp_refuse(error, "the model takes [channels, height, width]");
    for (int stage = 0; stage < 2; stage++) {
        snprintf(options, sizeof options, "out %d kernel 3 pad 1",
                 width << stage);
        host->add(build->builder, "conv", NULL, NULL, options);
        host->add(build->builder, "own_prelu", NULL, NULL, NULL);
        host->add(build->builder, "maxpool", NULL, NULL, "kernel 2");
    }
    snprintf(options, sizeof options, "out %d", classes);
    host->add(build->builder, "linear", "head", NULL, options);
    return CDDP_OK;
}

static const cddp_option_t model_options[] = {
    {.name = "classes", .help = "Classes", .min = 1, .max = 1000, .whole = 1},
    {.name = "width",
     .help = "Channels of the first stage",
     .fallback = "8",
     .min = 1,
     .max = 1024,
     .whole = 1},
    {.name = NULL},
};

static const cddp_layer_t *const layers[] = {&prelu, NULL};

CDDP_PLUGIN(.layers = layers, .options = model_options, .build = build);
