/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The layers that change the shape or the order of the elements of one input,
 * or select or reduce them: reshape, permute, slice, split, mean, max. The
 * dimensions of a sample are counted from 1 (the channels of an image are 1,
 * its height 2, its width 3), as in PyTorch, where 0 is the batch.
 */
#include <stdio.h>

#include "nn/registry.h"

#define SIZE_LIMIT (1 << 24)

typedef struct view_options {
    opt_ints_t dims; /* the option shape, order or axes */
    int64_t axis, start, size;
} view_options_t;

_Static_assert(sizeof(view_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");
_Static_assert(OPT_LIST_MAX >= OP_DIMS_MAX, "lists are copied into dims");

/* Set ERR_CONFIG with [sentence] at the place of [key] in [tree]. */
static err_code_t fail_key(const tree_t *tree, const char *key,
                           const char *sentence, err_t *err)
{
    const tree_t *node = tree_get(tree, key);

    return nn_fail_at(tree_place(node == NULL ? tree : node), err, "%s",
                      sentence);
}

/* Copy the option [key], which is [list], into view.dims. */
static err_code_t view_dims(nn_layer_t *layer, const opt_ints_t *list,
                            const tree_t *tree, const char *key, err_t *err)
{
    op_view_t *view = &layer->config.view;

    if (list->count < 1 || list->count >= OP_DIMS_MAX)
        return fail_key(tree, key, "this list has 1 to 5 numbers", err);
    view->ndim = list->count;
    for (int i = 0; i < list->count; i++)
        view->dims[i] = list->items[i];
    return ERR_OK;
}

/* ---- reshape ------------------------------------------------------------- */

static const opt_row_t reshape_rows[] = {
    {.name = "shape",
     .type = OPT_INTS,
     .offset = offsetof(view_options_t, dims),
     .min = -1,
     .max = SIZE_LIMIT,
     .help = "New shape of a sample; one number may be -1, and is then "
             "computed from the others"},
    {.name = NULL},
};

static err_code_t reshape_configure(nn_layer_t *layer, const void *options,
                                    const tree_t *tree, err_t *err)
{
    const view_options_t *reshape = options;
    op_view_t *view = &layer->config.view;
    int64_t left = nn_sample_elems(&layer->config.in);
    int open = -1;
    err_code_t rc = view_dims(layer, &reshape->dims, tree, "shape", err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < view->ndim; i++) {
        if (view->dims[i] == 0 || (view->dims[i] < 0 && open >= 0))
            return fail_key(tree, "shape",
                            "a shape has positive numbers, and at most one -1",
                            err);
        if (view->dims[i] < 0)
            open = i;
        else
            left = left % view->dims[i] == 0 ? left / view->dims[i] : 0;
    }
    if (open >= 0) /* if it is 0, op_shape reports both shapes */
        view->dims[open] = left;
    return ERR_OK;
}

const nn_kind_t nn_kind_reshape = {
    .name = "reshape",
    .op = OP_RESHAPE,
    .help = "The same numbers in the same order, with another shape",
    .rows = reshape_rows,
    .view = true,
    .configure = reshape_configure,
};

/* ---- permute ------------------------------------------------------------- */

static const opt_row_t permute_rows[] = {
    {.name = "order",
     .type = OPT_INTS,
     .offset = offsetof(view_options_t, dims),
     .min = 1,
     .max = OP_DIMS_MAX - 1,
     .help = "Dimensions of the input, counted from 1, in the order in which "
             "the output has them"},
    {.name = NULL},
};

static err_code_t permute_configure(nn_layer_t *layer, const void *options,
                                    const tree_t *tree, err_t *err)
{
    const view_options_t *permute = options;

    return view_dims(layer, &permute->dims, tree, "order", err);
}

const nn_kind_t nn_kind_permute = {
    .name = "permute",
    .op = OP_PERMUTE,
    .help = "The dimensions of a sample in another order: [2, 3, 1] moves the "
            "channels of an image to the end",
    .rows = permute_rows,
    .configure = permute_configure,
};

/* ---- slice --------------------------------------------------------------- */

static const opt_row_t slice_rows[] = {
    {.name = "axis",
     .type = OPT_INT,
     .offset = offsetof(view_options_t, axis),
     .fallback = "1",
     .min = 1,
     .max = OP_DIMS_MAX - 1,
     .help = "Dimension that is divided; 1: the channels"},
    {.name = "start",
     .type = OPT_INT,
     .offset = offsetof(view_options_t, start),
     .fallback = "0",
     .min = 0,
     .max = SIZE_LIMIT,
     .help = "First element that is kept, counted from 0"},
    {.name = "size",
     .type = OPT_INT,
     .offset = offsetof(view_options_t, size),
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "Number of elements that are kept"},
    {.name = NULL},
};

static err_code_t slice_configure(nn_layer_t *layer, const void *options,
                                  const tree_t *tree, err_t *err)
{
    const view_options_t *slice = options;

    (void)tree;
    (void)err;
    layer->config.view.axis = (int)slice->axis;
    layer->config.view.start = slice->start;
    layer->config.view.size = slice->size;
    return ERR_OK;
}

const nn_kind_t nn_kind_slice = {
    .name = "slice",
    .op = OP_SLICE,
    .help =
        "Part of a tensor along one dimension; several slices divide a tensor",
    .rows = slice_rows,
    .configure = slice_configure,
};

/* ---- split --------------------------------------------------------------- */

typedef struct split_options {
    int64_t axis, parts, part;
} split_options_t;

_Static_assert(sizeof(split_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t split_rows[] = {
    {.name = "parts",
     .type = OPT_INT,
     .offset = offsetof(split_options_t, parts),
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "Number of equal parts into which the dimension is divided"},
    {.name = "part",
     .type = OPT_INT,
     .offset = offsetof(split_options_t, part),
     .min = 1,
     .max = SIZE_LIMIT,
     .help = "The part that is kept, counted from 1"},
    {.name = "axis",
     .type = OPT_INT,
     .offset = offsetof(split_options_t, axis),
     .fallback = "1",
     .min = 1,
     .max = OP_DIMS_MAX - 1,
     .help = "Dimension that is divided; 1: the channels"},
    {.name = NULL},
};

static err_code_t split_configure(nn_layer_t *layer, const void *options,
                                  const tree_t *tree, err_t *err)
{
    const split_options_t *split = options;
    const op_desc_t *in = &layer->config.in;
    op_view_t *view = &layer->config.view;
    char shape[NN_SHAPE_TEXT];
    int64_t size;

    if (split->part > split->parts)
        return fail_key(tree, "part", "there are fewer parts than this", err);
    size = split->axis < in->ndim ? in->dims[split->axis] : split->parts;
    if (size % split->parts != 0)
        return nn_fail_at(tree_place(tree_get(tree, "parts")), err,
                          "layer %s (split) with input %s: dimension %d has "
                          "%lld elements, which do not make %lld equal parts",
                          layer->name, nn_shape_format(in, shape),
                          (int)split->axis, (long long)size,
                          (long long)split->parts);
    view->axis =
        (int)split->axis; /* op_shape reports an axis that does not exist */
    view->size = size / split->parts;
    view->start = (split->part - 1) * view->size;
    return ERR_OK;
}

const nn_kind_t nn_kind_split = {
    .name = "split",
    .op = OP_SLICE,
    .help = "One of several equal parts of a tensor along one dimension. Each "
            "part that is used needs a layer of its own",
    .rows = split_rows,
    .configure = split_configure,
};

/* ---- mean, max ----------------------------------------------------------- */

static const opt_row_t reduce_rows[] = {
    {.name = "axes",
     .type = OPT_INTS,
     .offset = offsetof(view_options_t, dims),
     .fallback = "0",
     .min = 0,
     .max = OP_DIMS_MAX - 1,
     .help = "Neighbouring dimensions, counted from 1, that are removed; 0: "
             "all after the channels"},
    {.name = NULL},
};

static err_code_t reduce_configure(nn_layer_t *layer, const void *options,
                                   const tree_t *tree, err_t *err)
{
    const opt_ints_t *axes = &((const view_options_t *)options)->dims;
    op_view_t *view = &layer->config.view;

    if (axes->count < 1)
        return fail_key(tree, "axes", "axes names no dimension", err);
    for (int i = 1; i < axes->count; i++)
        if (axes->items[i] != axes->items[0] + i)
            return fail_key(tree, "axes",
                            "axes must be neighbours in rising order, such as "
                            "[2, 3]",
                            err);
    view->axis = (int)axes->items[0];
    view->axis_last = (int)axes->items[axes->count - 1];
    if (axes->count == 1 && view->axis == 0) {
        view->axis = 2;
        view->axis_last = layer->config.in.ndim - 1;
    }
    return ERR_OK;
}

const nn_kind_t nn_kind_mean = {
    .name = "mean",
    .op = OP_MEAN,
    .help = "Mean over dimensions, which are removed; by default over all "
            "after the channels (global average pooling)",
    .rows = reduce_rows,
    .configure = reduce_configure,
};

const nn_kind_t nn_kind_max = {
    .name = "max",
    .op = OP_MAX,
    .help = "Maximum over dimensions, which are removed; by default over all "
            "after the channels (global max pooling)",
    .rows = reduce_rows,
    .configure = reduce_configure,
};
