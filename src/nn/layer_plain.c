/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The layers without parameters that work on any shape: relu, dropout and
 * flatten. */
#include "nn/registry.h"

typedef struct dropout_options {
    double rate;
} dropout_options_t;

_Static_assert(sizeof(dropout_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t no_rows[] = {{.name = NULL}};

static const opt_row_t dropout_rows[] = {
    {.name = "rate",
     .type = OPT_REAL,
     .offset = offsetof(dropout_options_t, rate),
     .fallback = "0.5",
     .min = 0,
     .max = 0.9999,
     .help = "Probability that a number is set to zero"},
    {.name = NULL},
};

static err_code_t dropout_configure(nn_layer_t *layer, const void *options,
                                    const tree_t *tree, err_t *err)
{
    const dropout_options_t *dropout = options;

    (void)tree;
    (void)err;
    layer->config.rate = dropout->rate;
    return ERR_OK;
}

const nn_kind_t nn_kind_relu = {
    .name = "relu",
    .op = OP_RELU,
    .help = "Negative numbers become zero",
    .rows = no_rows,
};

const nn_kind_t nn_kind_dropout = {
    .name = "dropout",
    .op = OP_DROPOUT,
    .help = "In training, some numbers are set to zero at random, and the "
            "others are scaled up. Which ones depends only on seed, epoch, "
            "sample and layer, not on the number of ranks",
    .rows = dropout_rows,
    .configure = dropout_configure,
};

const nn_kind_t nn_kind_flatten = {
    .name = "flatten",
    .op = OP_FLATTEN,
    .help = "All dimensions of a sample become one",
    .rows = no_rows,
    .view = true,
};
