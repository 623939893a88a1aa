/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* maxpool: the largest of each window of [channels, ...]. */
#include "nn/registry.h"

#define SIZE_LIMIT (1 << 20)

typedef struct pool_options {
    opt_ints_t kernel, stride, pad;
} pool_options_t;

_Static_assert(sizeof(pool_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t pool_rows[] = {
    {.name = "kernel",
     .type = OPT_INTS,
     .offset = offsetof(pool_options_t, kernel),
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "Size of the window, one number or one for each dimension"},
    {.name = "stride",
     .type = OPT_INTS,
     .offset = offsetof(pool_options_t, stride),
     .fallback = "0",
     .min = 0,
     .max = SIZE_LIMIT,
     .help = "Step between windows; 0 is the size of the window"},
    {.name = "pad",
     .type = OPT_INTS,
     .offset = offsetof(pool_options_t, pad),
     .fallback = "0",
     .min = 0,
     .max = SIZE_LIMIT,
     .help = "Padding on both sides, at most half the window; it never wins"},
    {.name = NULL},
};

static err_code_t pool_configure(nn_layer_t *layer, const void *options,
                                 const tree_t *tree, err_t *err)
{
    const pool_options_t *pool = options;
    op_pool_t *config = &layer->config.pool;
    char at[NN_PLACE_TEXT];
    err_code_t code;

    code = nn_space(&pool->kernel, &layer->config.in, tree, "kernel",
                    config->kernel, err);
    if (code == ERR_OK)
        code = nn_space(&pool->stride, &layer->config.in, tree, "stride",
                        config->stride, err);
    if (code == ERR_OK)
        code = nn_space(&pool->pad, &layer->config.in, tree, "pad", config->pad,
                        err);
    if (code != ERR_OK)
        return code;
    for (int i = 0; i < OP_SPACE_MAX; i++) {
        if (config->stride[i] == 0)
            config->stride[i] = config->kernel[i];
        /* A larger one would give windows that hold nothing but padding. */
        if (2 * config->pad[i] <= config->kernel[i])
            continue;
        tree_place_format(tree_place(tree_get(tree, "pad")), at, sizeof at);
        return err_set(err, ERR_CONFIG,
                       "%s: maxpool's pad %lld is more than half its kernel "
                       "%lld",
                       at, (long long)config->pad[i],
                       (long long)config->kernel[i]);
    }
    return ERR_OK;
}

const nn_kind_t nn_kind_maxpool = {
    .name = "maxpool",
    .op = OP_MAXPOOL2D,
    .help = "The largest number of each window of [channels, ...], which has 1 "
            "to 3 dimensions of space",
    .rows = pool_rows,
    .configure = pool_configure,
};
