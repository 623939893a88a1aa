/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Plugins: shared objects with layers and models (cddp/plugin.h). A graph that
 * names a plugin keeps it loaded, and finds its kinds of layers beside the
 * built-in ones.
 */
#ifndef CDDP_NN_PLUGIN_H
#define CDDP_NN_PLUGIN_H

#include "nn/registry.h"

typedef struct nn_plugin nn_plugin_t;

/* Load the shared object that [model].plugin names. ERR_CONFIG with its place
 * if it does not exist, is no plugin, or is made for another version. */
err_code_t nn_plugin_open(const tree_t *model, nn_plugin_t **out, err_t *err);
void nn_plugin_close(
    nn_plugin_t *plugin); /* NULL allowed; close its ops first */

/* The built-in kinds, then those of [plugin] (NULL: no plugin). The list ends
 * with NULL. */
const nn_kind_t *const *nn_plugin_kinds(const nn_plugin_t *plugin);

/* A model that a plugin builds: a list of layers, and a list of losses, which
 * may be empty. */
typedef struct nn_built {
    tree_t *layers, *losses;
} nn_built_t;

/* Call the plugin of [graph], whose inputs are known, to build a model. All
 * other keys of [model] are its options. The caller frees both lists with
 * tree_free. */
err_code_t nn_plugin_build(const nn_graph_t *graph, const tree_t *model,
                           nn_built_t *out, err_t *err);

#endif
