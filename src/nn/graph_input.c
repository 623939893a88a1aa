/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The inputs of a model: model.input is the shape of the only one, or a map of
 * names to shapes. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "nn/nn_build.h"

/* Maximum elements of one sample. A larger number is a typing error. */
#define INPUT_LIMIT 0x1p33

/* Name of an input that is the only one and has no name. */
static const char only[] = "input";

/* ---- reading ------------------------------------------------------------- */

/* Read the shape at [node], whose option path is [path].[key]. */
static err_code_t shape_read(const tree_t *model, const tree_t *node,
                             const char *path, const char *key, opt_ints_t *out,
                             err_t *err)
{
    const opt_row_t rows[] = {{.name = key,
                               .type = OPT_INTS,
                               .min = 1,
                               .max = 1 << 24,
                               .help = "Shape of one sample"},
                              {.name = NULL}};
    tree_t *alone = tree_new(TREE_MAP, NULL, tree_place(model));
    err_code_t rc;

    if (node != NULL)
        tree_put(alone, key, tree_place(node), tree_clone(node));
    rc = opt_fill(rows, alone, path, out, err);
    tree_free(alone);
    return rc;
}

static err_code_t input_add(nn_graph_t *graph, const char *name,
                            const opt_ints_t *shape, tree_place_t place,
                            err_t *err)
{
    const char *dot = strcmp(name, only) == 0 ? "" : ".";
    const char *tail = dot[0] == '\0' ? "" : name;
    nn_input_t *input = &graph->inputs[graph->input_count++];
    double elems = 1;

    input->name = str_dup(name);
    input->reader = NN_INPUT;
    tree_place_format(place, input->place, sizeof input->place);
    if (shape->count < 1 || shape->count >= OP_DIMS_MAX)
        return err_set(err, ERR_CONFIG,
                       "%s: model.input%s%s has %d dimensions, but 1 to %d are "
                       "possible",
                       input->place, dot, tail, shape->count, OP_DIMS_MAX - 1);
    input->ndim = shape->count;
    for (int i = 0; i < shape->count; i++) {
        input->dims[i] = shape->items[i];
        elems *= (double)shape->items[i];
    }
    if (elems <= INPUT_LIMIT)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s: model.input%s%s has %.3g elements, more than 2^33 a "
                   "sample",
                   input->place, dot, tail, elems);
}

static err_code_t inputs_read(nn_graph_t *graph, const tree_t *map, err_t *err)
{
    const size_t count = tree_count(map);
    err_code_t rc = ERR_OK;

    if (count < 1 || count > NN_FIELDS_MAX)
        return nn_fail_at(tree_place(map), err,
                          "model.input names %zu inputs, but 1 to %d are "
                          "possible",
                          count, NN_FIELDS_MAX);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        const char *name = tree_key(map, i);
        opt_ints_t shape = {0};

        if (!nn_name_is_valid(name) || strcmp(name, "entry") == 0)
            return nn_fail_at(tree_key_place(map, i), err,
                              "an input's name is made of letters, digits, _ "
                              "and - (and is not 'entry'), but this is '%s'",
                              name);
        rc = shape_read(map, tree_at(map, i), "model.input", name, &shape, err);
        if (rc == ERR_OK)
            rc = input_add(graph, name, &shape, tree_key_place(map, i), err);
    }
    return rc;
}

err_code_t nn_build_inputs(nn_graph_t *graph, const tree_t *model, err_t *err)
{
    const tree_t *node = tree_get(model, only);
    opt_ints_t shape = {0};
    err_code_t rc;

    if (node != NULL && tree_kind(node) == TREE_MAP)
        return inputs_read(graph, node, err);
    rc = shape_read(model, node, "model", only, &shape, err);
    if (rc != ERR_OK)
        return rc;
    return input_add(graph, only, &shape, tree_place(node), err);
}

/* ---- what a graph tells -------------------------------------------------- */

int nn_graph_inputs(const nn_graph_t *graph)
{
    return graph->input_count;
}

nn_input_info_t nn_graph_input_info(const nn_graph_t *graph, int index)
{
    const nn_input_t *input = &graph->inputs[index];
    nn_input_info_t info = {.name = input->name,
                            .ndim = input->ndim,
                            .elems = 1,
                            .tokens = input->tokens,
                            .place = input->place};

    for (int i = 0; i < input->ndim; i++) {
        info.dims[i] = input->dims[i];
        info.elems *= input->dims[i];
    }
    return info;
}

void nn_desc_input(const nn_graph_t *graph, int input, int64_t batch,
                   op_desc_t *out)
{
    const nn_input_t *from = &graph->inputs[input];

    nn_desc_plain(out, batch, from->ndim, from->dims);
    if (from->tokens > 0)
        out->type = OP_INT32;
}
