/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Presets: well-known models by name, `model: {preset: resnet18, classes: 10}`.
 * A preset writes the list of layers that one would write by hand; what is made
 * of the list is the same for both. Each is one constant row (nn_preset_t) at
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

/* The list of layers of the preset that [name] is, made from the map [own] of
 * its options, which is written as [path]; freed with tree_free. [input]: the
 * shape of a sample of what it reads. */
err_code_t nn_preset_make(const tree_t *name, const tree_t *own,
                          const char *path, const opt_ints_t *input,
                          tree_t **out, err_t *err);

/* The list of layers of model.preset, made from all keys of the map [model] but
 * input and preset; freed with tree_free. [input]: the sample's shape. */
err_code_t nn_preset_write(const tree_t *model, const opt_ints_t *input,
                           tree_t **out, err_t *err);

/* Markdown tables of every preset's options. */
void nn_preset_document(str_buf_t *out);

#endif
