/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Presets: well-known models by name, `model: {preset: resnet18, classes: 10}`.
 * A preset writes a list of layers as a user would, and the graph is built from
 * the list in the usual way. Each preset is one constant row (nn_preset_t) at
 * the end of its file, listed in preset.c.
 */
#ifndef CDDP_NN_PRESET_H
#define CDDP_NN_PRESET_H

#include "nn/recipe.h"

typedef struct nn_preset {
    const char *name; /* in the run file */
    const char *help; /* one sentence, no full stop */
    const opt_row_t *rows;
    err_code_t (*write)(nn_recipe_t *recipe, const void *options, err_t *err);
} nn_preset_t;

extern const nn_preset_t nn_preset_mlp, nn_preset_lenet, nn_preset_resnet18,
    nn_preset_resnet34, nn_preset_resnet50, nn_preset_unet2d, nn_preset_vit,
    nn_preset_cosmoflow, nn_preset_unet3d, nn_preset_deepcam, nn_preset_gpt2,
    nn_preset_lstm;

/* A preset as a model uses it. */
typedef struct nn_preset_use {
    const tree_t *name;      /* scalar with the name of the preset */
    const tree_t *options;   /* map of its options; NULL: none */
    const char *path;        /* path of this map, for errors */
    const opt_ints_t *input; /* shape of a sample of the input that it reads */
} nn_preset_use_t;

/* Write the list of layers of the preset [use]. The caller frees [out] with
 * tree_free. */
err_code_t nn_preset_make(const nn_preset_use_t *use, tree_t **out, err_t *err);

/* Write the list of layers of model.preset. Its options are all keys of the map
 * [model] but input and preset. [input]: shape of a sample. The caller frees
 * [out] with tree_free. */
err_code_t nn_preset_write(const tree_t *model, const opt_ints_t *input,
                           tree_t **out, err_t *err);

/* Append Markdown tables of the options of every preset. */
void nn_preset_document(str_buf_t *out);

#endif
