/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From the run file to a graph, in steps: the list of layers is taken apart
 * (graph_item.c), layers are named and references followed (graph_from.c),
 * shapes inferred (graph_build.c), arenas laid out (graph_tables.c).
 */
#ifndef CDDP_NN_NN_BUILD_H
#define CDDP_NN_NN_BUILD_H

#include "nn/registry.h"

#define NN_PATH_TEXT 160
#define NN_SCOPE_TEXT 32

/* One layer or loss as it is written, before anything is checked. */
typedef struct nn_item {
    const char *kind;      /* never NULL */
    tree_place_t place;    /* of the kind */
    const tree_t *options; /* NULL: none were written */
    const tree_t *name, *from, *share, *init;
    char path[NN_PATH_TEXT];   /* "model.layers[2]", for errors */
    char scope[NN_SCOPE_TEXT]; /* inside repeats: "_2_1", behind names */
    int start; /* inside repeats: the layer that entry names, or NN_INPUT */
} nn_item_t;

typedef struct nn_items {
    nn_item_t *items;
    int count;
} nn_items_t;

/* Take apart the list of layers, repeats written out. Free with mem_free. */
err_code_t nn_items_read(const tree_t *list, nn_items_t *out, err_t *err);
err_code_t nn_item_read_loss(const tree_t *tree, nn_item_t *out, err_t *err);

/* Give layer [index] its name; find what its from and share name (graph->layers
 * are named by then); and see that every output is used. */
err_code_t nn_layer_name(nn_graph_t *graph, int index, const nn_item_t *item,
                         err_t *err);
err_code_t nn_layer_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                            err_t *err);
err_code_t nn_graph_check_used(const nn_graph_t *graph, err_t *err);

/* Read the layer's init; let it say how a tensor of the layer begins. */
err_code_t nn_init_read(nn_layer_t *layer, const nn_item_t *item, err_t *err);
err_code_t nn_init_tensor(const nn_layer_t *layer, const nn_slot_t *slot,
                          nn_tensor_t *tensor, err_t *err);

/* Read the list of layers, and the loss, into graph->layers. */
err_code_t nn_build_layers(nn_graph_t *graph, const tree_t *list, err_t *err);
err_code_t nn_build_loss(nn_graph_t *graph, const tree_t *loss, err_t *err);

/* Lay out the parameter, buffer and moment arenas. */
err_code_t nn_build_tables(nn_graph_t *graph, err_t *err);

#endif
