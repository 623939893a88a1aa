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

/* The list of layers that the plugin builds for [input], from all other keys of
 * [model]; freed with tree_free. */
err_code_t nn_plugin_build(const nn_plugin_t *plugin, const tree_t *model,
                           const opt_ints_t *input, tree_t **out, err_t *err);

#endif
