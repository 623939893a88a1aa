/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The layers that take several inputs, named in from: add, mul, concat. */
#include "nn/registry.h"

typedef struct concat_options {
    int64_t axis;
} concat_options_t;

_Static_assert(sizeof(concat_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t no_rows[] = {{.name = NULL}};

static const opt_row_t concat_rows[] = {
    {.name = "axis",
     .type = OPT_INT,
     .offset = offsetof(concat_options_t, axis),
     .fallback = "1",
     .min = 1,
     .max = OP_DIMS_MAX - 1,
     .help = "Dimension of a sample along which the inputs are put, from 1: "
             "the channels"},
    {.name = NULL},
};

static err_code_t concat_configure(nn_layer_t *layer, const void *options,
                                   const tree_t *tree, err_t *err)
{
    const concat_options_t *concat = options;

    (void)tree;
    (void)err;
    layer->config.view.axis = (int)concat->axis;
    return ERR_OK;
}

const nn_kind_t nn_kind_add = {
    .name = "add",
    .op = OP_ADD,
    .help = "Sum of 2 to 8 inputs of one shape, such as {add: , from: [conv2, "
            "skip]}",
    .rows = no_rows,
    .several = true,
};

const nn_kind_t nn_kind_mul = {
    .name = "mul",
    .op = OP_MUL,
    .help = "Product of 2 to 8 inputs of one shape, element by element",
    .rows = no_rows,
    .several = true,
};

const nn_kind_t nn_kind_concat = {
    .name = "concat",
    .op = OP_CONCAT,
    .help = "2 to 8 inputs side by side along one dimension; the others must "
            "agree",
    .rows = concat_rows,
    .several = true,
    .configure = concat_configure,
};
