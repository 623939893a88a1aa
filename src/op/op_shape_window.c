/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes of the ops that move a window over the spatial dimensions: conv,
 * conv_transpose and the pools. */
#include <inttypes.h>

#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_shape.h"

/* The sizes of a window, from op_config_t.conv or .pool. */
typedef struct window {
    const int64_t *kernel, *stride, *pad, *dilation;
    const int64_t *behind; /* zeros after x, in addition to pad */
    bool ceil;
} window_t;

static window_t window_of(const op_config_t *config)
{
    static const int64_t ones[OP_SPACE_MAX] = {1, 1, 1}, none[OP_SPACE_MAX];
    const op_conv_t *conv = &config->conv;
    const op_pool_t *pool = &config->pool;

    if (config->kind == OP_CONV2D || config->kind == OP_CONV_TRANSPOSE)
        return (window_t){conv->kernel,   conv->stride, conv->pad,
                          conv->dilation, conv->behind, false};
    return (window_t){pool->kernel, pool->stride, pool->pad,
                      ones,         none,         pool->ceil};
}

bool op_pool_reaches_beyond(const op_config_t *config)
{
    const op_pool_t *pool = &config->pool;

    for (int i = 0; i < config->in.ndim - 2 && pool->ceil; i++) {
        const int64_t size = config->in.dims[2 + i] + 2 * pool->pad[i];

        if (size < pool->kernel[i] ||
            (size - pool->kernel[i]) % pool->stride[i] != 0)
            return true;
    }
    return false;
}

int64_t op_window_taps(const op_config_t *config)
{
    window_t window = window_of(config);
    int64_t taps = 1;

    for (int i = 0; i < config->in.ndim - 2; i++)
        taps *= window.kernel[i];
    return taps;
}

/* Write [ndim] numbers as "[3, 3]" to [text], for messages. */
static const char *window_text(const int64_t *numbers, int ndim,
                               char text[OP_TEXT_MAX])
{
    op_desc_t desc = {.ndim = ndim};

    for (int i = 0; i < ndim; i++)
        desc.dims[i] = numbers[i];
    return op_desc_text(&desc, text);
}

/* Write the number of windows along each spatial dimension to out[2..]. */
static err_code_t window_count(const op_config_t *config,
                               int64_t out[OP_DIMS_MAX], err_t *err)
{
    const op_desc_t *in = &config->in;
    window_t window = window_of(config);
    const int space = in->ndim - 2;
    char text[OP_TEXT_MAX], kernel[OP_TEXT_MAX], dilation[OP_TEXT_MAX],
        pad[OP_TEXT_MAX];
    bool fits = true;

    op_desc_text(in, text);
    /* The caller has checked that there are at most OP_SPACE_MAX spatial
     * dimensions. */
    for (int i = 0; i < space && i < OP_SPACE_MAX; i++) {
        int64_t size = in->dims[2 + i] + 2 * window.pad[i] + window.behind[i];
        int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;

        if (window.kernel[i] < 1 || window.stride[i] < 1 ||
            window.dilation[i] < 1 || window.pad[i] < 0 || window.behind[i] < 0)
            return err_set(err, ERR_CONFIG,
                           "%s on %s: kernel, stride and dilation must be at "
                           "least 1 and pad at least 0",
                           op_kind_name(config->kind), text);
        /* Count windows as PyTorch does with ceil_mode. */
        if (window.ceil)
            size += window.stride[i] - 1;
        fits = fits && size >= reach;
        out[2 + i] = (size - reach) / window.stride[i] + 1;
        if (window.ceil && (out[2 + i] - 1) * window.stride[i] >=
                               in->dims[2 + i] + window.pad[i])
            out[2 + i]--;
    }
    if (fits)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s: the kernel %s (dilation %s) does not fit its input %s "
                   "padded by %s; use a smaller kernel or more pad",
                   op_kind_name(config->kind),
                   window_text(window.kernel, space, kernel),
                   window_text(window.dilation, space, dilation), text,
                   window_text(window.pad, space, pad));
}

/* conv_transpose: write y's size along each spatial dimension to out[2..]. */
static err_code_t window_reach(const op_config_t *config,
                               int64_t out[OP_DIMS_MAX], err_t *err)
{
    const op_conv_t *conv = &config->conv;
    char text[OP_TEXT_MAX];

    op_desc_text(&config->in, text);
    for (int i = 0; i < config->in.ndim - 2; i++) {
        if (conv->kernel[i] < 1 || conv->stride[i] < 1 ||
            conv->dilation[i] < 1 || conv->pad[i] < 0)
            return err_set(err, ERR_CONFIG,
                           "conv_transpose on %s: kernel, stride and dilation "
                           "must be at least 1 and pad at least 0",
                           text);
        if (conv->out_pad[i] < 0 || conv->out_pad[i] >= conv->stride[i])
            return err_set(err, ERR_CONFIG,
                           "conv_transpose on %s: out_pad %" PRId64
                           " must be less than the stride %" PRId64,
                           text, conv->out_pad[i], conv->stride[i]);
        out[2 + i] =
            (config->in.dims[2 + i] - 1) * conv->stride[i] - 2 * conv->pad[i] +
            conv->dilation[i] * (conv->kernel[i] - 1) + conv->out_pad[i] + 1;
        if (out[2 + i] < 1)
            return err_set(err, ERR_CONFIG,
                           "conv_transpose on %s: the pad %" PRId64
                           " leaves nothing of dimension %d",
                           text, conv->pad[i], i + 2);
    }
    return ERR_OK;
}

static err_code_t window_check_conv(const op_config_t *config, err_t *err)
{
    const op_conv_t *conv = &config->conv;
    char text[OP_TEXT_MAX];

    if (conv->out >= 1 && conv->groups >= 1 &&
        config->in.dims[1] % conv->groups == 0 && conv->out % conv->groups == 0)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s on %s: the %" PRId64 " channels in and %" PRId64
                   " out must both be multiples of groups, which is %" PRId64,
                   op_kind_name(config->kind), op_desc_text(&config->in, text),
                   config->in.dims[1], conv->out, conv->groups);
}

static err_code_t window_check_pool(const op_config_t *config, err_t *err)
{
    const op_pool_t *pool = &config->pool;
    const int space = config->in.ndim - 2;
    char text[OP_TEXT_MAX], pad[OP_TEXT_MAX], kernel[OP_TEXT_MAX];

    for (int i = 0; i < space; i++)
        if (2 * pool->pad[i] > pool->kernel[i])
            return err_set(
                err, ERR_CONFIG,
                "%s on %s: the pad %s is more than half of the kernel %s, so a "
                "window could hold padding only",
                op_kind_name(config->kind), op_desc_text(&config->in, text),
                window_text(pool->pad, space, pad),
                window_text(pool->kernel, space, kernel));
    return ERR_OK;
}

/* Adaptive pools: copy the spatial size of y from view.dims to out[2..]. */
static err_code_t window_adapt(const op_config_t *config,
                               int64_t out[OP_DIMS_MAX], err_t *err)
{
    const op_view_t *view = &config->view;
    char text[OP_TEXT_MAX], size[OP_TEXT_MAX];
    bool valid = view->ndim == config->in.ndim - 2;

    for (int i = 0; i < view->ndim && valid; i++) {
        out[2 + i] = view->dims[i];
        valid = view->dims[i] >= 1;
    }
    if (valid)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s on %s: the size %s must have a positive number for "
                   "each dimension after the channels",
                   op_kind_name(config->kind), op_desc_text(&config->in, text),
                   window_text(view->dims,
                               view->ndim < OP_DIMS_MAX ? view->ndim : 0,
                               size));
}

err_code_t op_shape_window(const op_config_t *config, op_desc_t *out,
                           err_t *err)
{
    const op_desc_t *in = &config->in;
    int64_t dims[OP_DIMS_MAX] = {in->dims[0], in->dims[1]};
    err_code_t rc = op_check_input(config, 3, 2 + OP_SPACE_MAX,
                                   "[N, channels, 1 to 3 dimensions]", err);
    const bool conv =
        config->kind == OP_CONV2D || config->kind == OP_CONV_TRANSPOSE;

    if (rc == ERR_OK && conv) {
        rc = window_check_conv(config, err);
        dims[1] = config->conv.out;
    }
    if (rc == ERR_OK && (config->kind == OP_ADAPTIVE_AVGPOOL ||
                         config->kind == OP_ADAPTIVE_MAXPOOL))
        rc = window_adapt(config, dims, err);
    else if (rc == ERR_OK && config->kind == OP_CONV_TRANSPOSE)
        rc = window_reach(config, dims, err);
    else if (rc == ERR_OK)
        rc = window_count(config, dims, err);
    if (rc == ERR_OK && !conv)
        rc = window_check_pool(config, err);
    if (rc == ERR_OK)
        op_desc_fill(out, in->type, in->ndim, dims);
    return rc;
}

int op_params_conv_transpose(const op_config_t *config,
                             op_desc_t out[OP_PARAMS_MAX])
{
    const op_conv_t *conv = &config->conv;
    const op_desc_t *in = &config->in;
    int count = op_params_conv(config, out);
    int64_t dims[OP_DIMS_MAX] = {in->dims[1], conv->out / conv->groups};

    for (int i = 2; i < in->ndim; i++)
        dims[i] = conv->kernel[i - 2];
    op_desc_fill(&out[0], in->type, in->ndim, dims);
    return count;
}

int op_params_conv(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    const op_conv_t *conv = &config->conv;
    const op_desc_t *in = &config->in;
    int64_t dims[OP_DIMS_MAX] = {conv->out, in->dims[1] / conv->groups};

    for (int i = 2; i < in->ndim; i++)
        dims[i] = conv->kernel[i - 2];
    op_desc_fill(&out[0], in->type, in->ndim, dims);
    if (config->bias)
        op_desc_fill(&out[1], in->type, 1, &conv->out);
    return config->bias ? 2 : 1;
}
