/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Plugins: shared objects with layers and models (cddp/plugin.h). A graph that
 * names one keeps it loaded; its kinds of layers stand beside the built-in
 * ones.
 */
#ifndef CDDP_NN_PLUGIN_H
#define CDDP_NN_PLUGIN_H

#include "nn/registry.h"

typedef struct nn_plugin nn_plugin_t;

/* Load what [model].plugin names. ERR_CONFIG with its place: not there, no
 * plugin, or one for another version. */
err_code_t nn_plugin_open(const tree_t *model, nn_plugin_t **out, err_t *err);
void nn_plugin_close(nn_plugin_t *plugin); /* NULL allowed; ops first */

/* The built-in kinds and the plugin's (NULL: none), ended by NULL. */
const nn_kind_t *const *nn_plugin_kinds(const nn_plugin_t *plugin);

/* What a plugin builds: a list of layers, and one of losses, which may be
 * empty. */
typedef struct nn_built {
    tree_t *layers, *losses;
} nn_built_t;

/* Call the plugin of [graph], whose inputs are known, to build from all other
 * keys of [model]; both lists are freed with tree_free. */
err_code_t nn_plugin_build(const nn_graph_t *graph, const tree_t *model,
                           nn_built_t *out, err_t *err);

#endif
