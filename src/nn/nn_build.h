/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * From the run file to a graph, in four steps: graph_item.c parses the list of
 * layers, graph_from.c names layers and resolves references, graph_build.c
 * infers shapes, graph_tables.c lays out the arenas.
 */
#ifndef CDDP_NN_NN_BUILD_H
#define CDDP_NN_NN_BUILD_H

#include "nn/registry.h"

#define NN_PATH_TEXT 160
#define NN_SCOPE_TEXT 32

/* One layer or loss as written in the run file, unchecked. */
typedef struct nn_item {
    const char *kind;      /* never NULL */
    tree_place_t place;    /* where the kind is written */
    const tree_t *options; /* NULL: none were written */
    const tree_t *name, *from, *share, *init;
    const tree_t *target, *weight, *sample_weight; /* losses only */
    char path[NN_PATH_TEXT];   /* "model.layers[2]", for errors */
    char scope[NN_SCOPE_TEXT]; /* inside repeats: suffix of names, such as
                                  "_2_1" */
    int scoped; /* number of characters of scope that are appended to its own
                   name */
    int start;  /* inside repeats: the layer that `entry` refers to, or NN_INPUT
                 */
} nn_item_t;

typedef struct nn_items {
    nn_item_t *items;
    int count;
    tree_t *made; /* layers written by presets; items point into this tree */
} nn_items_t;

/* Parse the list of layers of [graph], whose inputs are known. Repeats and
 * presets are expanded into their layers. */
err_code_t nn_items_read(const nn_graph_t *graph, const tree_t *list,
                         nn_items_t *out, err_t *err);
void nn_items_free(nn_items_t *items);

/* Parse [tree], one loss or a list of losses, into [out], an array of
 * NN_FIELDS_MAX items. */
err_code_t nn_items_read_losses(const tree_t *tree, nn_item_t *out, int *count,
                                err_t *err);

/* Is [name] made of letters, digits, _ and - only? Names become parts of paths
 * and of dotted names. */
bool nn_name_is_valid(const char *name);

/* nn_layer_name gives layer [index] its name. nn_layer_resolve finds the layers
 * that its `from` and `share` refer to, once all of graph->layers have names.
 * nn_graph_check_used fails if nothing reads an output or an input. */
err_code_t nn_layer_name(nn_graph_t *graph, int index, const nn_item_t *item,
                         err_t *err);
err_code_t nn_layer_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                            err_t *err);
err_code_t nn_graph_check_used(const nn_graph_t *graph, err_t *err);
/* Find the layer whose output loss [index] reads. */
err_code_t nn_loss_resolve(nn_graph_t *graph, int index, const nn_item_t *item,
                           err_t *err);

/* graph_input.c: read model.input, dims or a map of names to dims. */
err_code_t nn_build_inputs(nn_graph_t *graph, const tree_t *model, err_t *err);

/* nn_init_read reads the option `init` of a layer. nn_init_tensor sets how one
 * tensor of the layer is initialized. */
err_code_t nn_init_read(nn_layer_t *layer, const nn_item_t *item, err_t *err);
err_code_t nn_init_tensor(const nn_layer_t *layer, const nn_slot_t *slot,
                          nn_tensor_t *tensor, err_t *err);

/* nn_build_layers reads the list of layers into graph->layers, and leaves space
 * for the losses there. nn_layer_infer infers the shape of a layer's output.
 * nn_build_losses reads the losses. */
err_code_t nn_build_layers(nn_graph_t *graph, const tree_t *list, err_t *err);
err_code_t nn_layer_infer(nn_layer_t *layer, err_t *err);
err_code_t nn_build_losses(nn_graph_t *graph, const tree_t *loss, err_t *err);

/* The option path of a layer's kind: "model.layers[2].conv". */
char *nn_kind_path(const nn_item_t *item, const nn_kind_t *kind,
                   char out[NN_PATH_TEXT + 64]);

/* Lay out the parameter, buffer and moment arenas. */
err_code_t nn_build_tables(nn_graph_t *graph, err_t *err);

/* fill.c: write the initial values of one arena, and zeros into its gaps; see
 * nn_graph_init. */
void nn_table_fill(const nn_table_t *table, uint64_t seed, crew_t *crew,
                   float *to);

#endif
