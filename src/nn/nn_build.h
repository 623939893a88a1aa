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
    const tree_t *target, *weight, *sample_weight; /* of a loss */
    char path[NN_PATH_TEXT];   /* "model.layers[2]", for errors */
    char scope[NN_SCOPE_TEXT]; /* inside repeats: "_2_1", behind names */
    int scoped;                /* letters of scope that follow its own name */
    int start; /* inside repeats: the layer that entry names, or NN_INPUT */
} nn_item_t;

typedef struct nn_items {
    nn_item_t *items;
    int count;
    tree_t *made; /* what presets have written, which items point into */
} nn_items_t;

/* Take apart the list of layers of [graph], whose inputs are known; repeats and
 * presets are written out. */
err_code_t nn_items_read(const nn_graph_t *graph, const tree_t *list,
                         nn_items_t *out, err_t *err);
void nn_items_free(nn_items_t *items);

/* The losses in [tree], one or a list of them, into [out] of NN_FIELDS_MAX. */
err_code_t nn_items_read_losses(const tree_t *tree, nn_item_t *out, int *count,
                                err_t *err);

/* May [name] stand in paths and dotted names? */
bool nn_name_is_valid(const char *name);

/* Give layer [index] its name; find what its from and share name (graph->layers
 * are named by then); and see that every output is used. */
err_code_t nn_layer_name(nn_graph_t *graph, int index, const nn_item_t *item,
                         err_t *err);
err_code_t nn_layer_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                            err_t *err);
err_code_t nn_graph_check_used(const nn_graph_t *graph, err_t *err);
/* Which layer the loss [index] reads. */
err_code_t nn_loss_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                           err_t *err);

/* graph_input.c: read model.input, dims or a map of names to dims. */
err_code_t nn_build_inputs(nn_graph_t *graph, const tree_t *model, err_t *err);

/* Read the option init of a layer; set the initial values of one of its
 * tensors. */
err_code_t nn_init_read(nn_layer_t *layer, const nn_item_t *item, err_t *err);
err_code_t nn_init_tensor(const nn_layer_t *layer, const nn_slot_t *slot,
                          nn_tensor_t *tensor, err_t *err);

/* Read the list of layers into graph->layers, which has space for the losses;
 * infer the shape of a layer's output; read the losses. */
err_code_t nn_build_layers(nn_graph_t *graph, const tree_t *list, err_t *err);
err_code_t nn_layer_infer(nn_layer_t *layer, err_t *err);
err_code_t nn_build_losses(nn_graph_t *graph, const tree_t *loss, err_t *err);

/* The option path of a layer's kind: "model.layers[2].conv". */
char *nn_kind_path(const nn_item_t *item, const nn_kind_t *kind,
                   char out[NN_PATH_TEXT + 64]);

/* Lay out the parameter, buffer and moment arenas. */
err_code_t nn_build_tables(nn_graph_t *graph, err_t *err);

/* fill.c: initial values of one arena, gaps included; see nn_graph_init. */
void nn_table_fill(const nn_table_t *table, uint64_t seed, crew_t *crew,
                   float *to);

#endif
