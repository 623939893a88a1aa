/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The layers that take several inputs, named in from: add, mul, matmul,
 * concat. */
#include "nn/registry.h"
#include "op/op_broadcast.h"

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
     .help = "Dimension of a sample along which the inputs are joined; 1: the "
             "channels"},
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

/* add, mul: choose the broadcasting op if the inputs have different shapes. */
static err_code_t elements_configure(nn_layer_t *layer, const void *options,
                                     const tree_t *tree, err_t *err)
{
    op_config_t *config = &layer->config;

    (void)options;
    (void)tree;
    (void)err;
    if (op_broadcast_fits(config))
        config->kind =
            layer->kind->op == OP_ADD ? OP_ADD_BROADCAST : OP_MUL_BROADCAST;
    return ERR_OK;
}

#define SHAPES                                                                 \
    "of 2 to 8 inputs. Their shapes are equal, or broadcast as in NumPy: "     \
    "they are aligned at the last dimension, and sizes that are 1 or missing " \
    "are repeated ([8, 1, 1] with [8, 32, 32])"

const nn_kind_t nn_kind_add = {
    .name = "add",
    .op = OP_ADD,
    .help = "Sum, such as {add: , from: [conv2, skip]}, " SHAPES,
    .rows = no_rows,
    .several = true,
    .configure = elements_configure,
};

const nn_kind_t nn_kind_mul = {
    .name = "mul",
    .op = OP_MUL,
    .help = "Product, element by element, " SHAPES,
    .rows = no_rows,
    .several = true,
    .configure = elements_configure,
};

/* ---- matmul -------------------------------------------------------------- */

typedef struct matmul_options {
    bool transpose_a, transpose_b;
} matmul_options_t;

_Static_assert(sizeof(matmul_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t matmul_rows[] = {
    {.name = "transpose_a",
     .type = OPT_BOOL,
     .offset = offsetof(matmul_options_t, transpose_a),
     .fallback = "false",
     .help = "Exchange the last two dimensions of the first input"},
    {.name = "transpose_b",
     .type = OPT_BOOL,
     .offset = offsetof(matmul_options_t, transpose_b),
     .fallback = "false",
     .help = "Exchange the last two dimensions of the second input"},
    {.name = NULL},
};

static err_code_t matmul_configure(nn_layer_t *layer, const void *options,
                                   const tree_t *tree, err_t *err)
{
    const matmul_options_t *matmul = options;

    (void)tree;
    (void)err;
    layer->config.transpose =
        (op_transpose_t){matmul->transpose_a, matmul->transpose_b};
    return ERR_OK;
}

const nn_kind_t nn_kind_matmul = {
    .name = "matmul",
    .op = OP_MATMUL,
    .help = "Matrix product of two inputs, {matmul: , from: [a, b]}: a [..., "
            "rows, k] times b [..., k, columns], one product for each index of "
            "the leading dimensions. It is computed in float32, whatever "
            "train.precision is",
    .rows = matmul_rows,
    .several = true,
    .configure = matmul_configure,
};

/* ---- concat -------------------------------------------------------------- */

const nn_kind_t nn_kind_concat = {
    .name = "concat",
    .op = OP_CONCAT,
    .help = "Joins 2 to 8 inputs along one dimension; all other dimensions "
            "must be equal",
    .rows = concat_rows,
    .several = true,
    .configure = concat_configure,
};
