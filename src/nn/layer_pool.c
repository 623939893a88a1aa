/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The pools: the maximum or mean of each window of [channels, ...]. In adaptive
 * pools the windows follow from the output's size. */
#include "nn/registry.h"
#include "op/op_geometry.h"
#include "op/op_ops.h"

#define SIZE_LIMIT (1 << 20)

typedef struct pool_options {
    opt_ints_t kernel, stride, pad;
    bool count_pad, ceil;
} pool_options_t;

_Static_assert(sizeof(pool_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

#define POOL_ROW(key, field, value, least, text)                        \
    {                                                                   \
        .name = (key), .type = OPT_INTS,                                \
        .offset = offsetof(pool_options_t, field), .fallback = (value), \
        .min = (least), .max = SIZE_LIMIT, .help = (text)               \
    }
#define KERNEL_ROW                 \
    POOL_ROW(                      \
        "kernel", kernel, NULL, 1, \
        "Size of the window: one number, or one for each spatial dimension")
#define STRIDE_ROW                                                           \
    POOL_ROW("stride", stride, "0", 0,                                       \
             "Number of elements by which the window moves; 0: the size of " \
             "the window")

#define CEIL_ROW                                                              \
    {                                                                         \
        .name = "ceil_mode", .type = OPT_BOOL,                                \
        .offset = offsetof(pool_options_t, ceil), .fallback = "false",        \
        .help = "true: keep a last window that ends after the padding if it " \
                "begins in the input or in the padding before it; false: "    \
                "leave it out"                                                \
    }

static const opt_row_t pool_rows[] = {
    KERNEL_ROW,
    STRIDE_ROW,
    POOL_ROW("pad", pad, "0", 0,
             "Number of elements added on each side, at most half the window; "
             "they are never the maximum"),
    CEIL_ROW,
    {.name = NULL},
};

static const opt_row_t avgpool_rows[] = {
    KERNEL_ROW,
    STRIDE_ROW,
    POOL_ROW("pad", pad, "0", 0,
             "Number of zeros added on each side, at most half the window"),
    {.name = "count_pad",
     .type = OPT_BOOL,
     .offset = offsetof(pool_options_t, count_pad),
     .fallback = "true",
     .help = "true: the zeros of the padding count in a mean; false: a mean is "
             "over elements of the input only (PyTorch's count_include_pad)"},
    CEIL_ROW,
    {.name = NULL},
};

static err_code_t pool_configure(nn_layer_t *layer, const void *options,
                                 const tree_t *tree, err_t *err)
{
    const pool_options_t *pool = options;
    op_pool_t *config = &layer->config.pool;
    char at[NN_PLACE_TEXT];
    err_code_t rc;

    rc = nn_space(&pool->kernel, &layer->config.in, tree, "kernel",
                  config->kernel, err);
    if (rc == ERR_OK)
        rc = nn_space(&pool->stride, &layer->config.in, tree, "stride",
                      config->stride, err);
    if (rc == ERR_OK)
        rc = nn_space(&pool->pad, &layer->config.in, tree, "pad", config->pad,
                      err);
    if (rc != ERR_OK)
        return rc;
    config->ceil = pool->ceil;
    config->inside = layer->kind->op == OP_AVGPOOL && !pool->count_pad;
    for (int i = 0; i < OP_SPACE_MAX; i++) {
        if (config->stride[i] == 0)
            config->stride[i] = config->kernel[i];
        /* With a larger pad some windows would contain only padding. */
        if (2 * config->pad[i] <= config->kernel[i])
            continue;
        tree_place_format(tree_place(tree_get(tree, "pad")), at, sizeof at);
        return err_set(err, ERR_CONFIG,
                       "%s: %s's pad %lld is more than half its kernel %lld",
                       at, layer->kind->name, (long long)config->pad[i],
                       (long long)config->kernel[i]);
    }
    if (layer->kind->op == OP_AVGPOOL && op_pool_reaches_beyond(&layer->config))
        layer->config.kind = OP_AVGPOOL_CEIL;
    return ERR_OK;
}

const nn_kind_t nn_kind_maxpool = {
    .name = "maxpool",
    .op = OP_MAXPOOL2D,
    .help = "Maximum of each window of [channels, ...], which has 1 to 3 "
            "spatial dimensions",
    .rows = pool_rows,
    .configure = pool_configure,
};

const nn_kind_t nn_kind_avgpool = {
    .name = "avgpool",
    .op = OP_AVGPOOL,
    .help = "Mean of each window of [channels, ...], which has 1 to 3 spatial "
            "dimensions",
    .rows = avgpool_rows,
    .configure = pool_configure,
};

/* ---- adaptive ------------------------------------------------------------ */

typedef struct adaptive_options {
    opt_ints_t size;
} adaptive_options_t;

_Static_assert(sizeof(adaptive_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t adaptive_rows[] = {
    {.name = "size",
     .type = OPT_INTS,
     .offset = offsetof(adaptive_options_t, size),
     .fallback = "1",
     .min = 1,
     .max = SIZE_LIMIT,
     .help =
         "Size of the output: one number, or one for each spatial dimension"},
    {.name = NULL},
};

static err_code_t adaptive_configure(nn_layer_t *layer, const void *options,
                                     const tree_t *tree, err_t *err)
{
    const adaptive_options_t *adaptive = options;
    op_view_t *view = &layer->config.view;

    view->ndim = layer->config.in.ndim - 2;
    return nn_space(&adaptive->size, &layer->config.in, tree, "size",
                    view->dims, err);
}

const nn_kind_t nn_kind_adaptive_avgpool = {
    .name = "adaptive_avgpool",
    .op = OP_ADAPTIVE_AVGPOOL,
    .help = "Means of windows that cover [channels, ...] evenly; size is their "
            "number. Size 1 is global average pooling (the layer mean does the "
            "same and removes the dimensions)",
    .rows = adaptive_rows,
    .configure = adaptive_configure,
};

const nn_kind_t nn_kind_adaptive_maxpool = {
    .name = "adaptive_maxpool",
    .op = OP_ADAPTIVE_MAXPOOL,
    .help = "Maxima of windows that cover [channels, ...] evenly; size is "
            "their number. Size 1 is global max pooling (the layer max does "
            "the same and removes the dimensions)",
    .rows = adaptive_rows,
    .configure = adaptive_configure,
};
