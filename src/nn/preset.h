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

#include "nn/registry.h"

/* A list of layers that is being written. */
typedef struct nn_recipe {
    tree_t *list;
    tree_t *losses;     /* a plugin's */
    tree_t *last;       /* the layer that was added last */
    tree_place_t place; /* of the preset, for errors */
    int ndim;           /* of model.input */
    int64_t input[OP_DIMS_MAX];
    /* Not NULL: the layers that are added begin so: a name of init, then its
     * options as those of nn_recipe_add ("xavier distribution uniform"). */
    const char *init;
} nn_recipe_t;

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

/* Add a layer of [kind], with the options that [format] makes: keys and values
 * in turn, separated by blanks; lists with commas ("out 8 kernel 3,3"). [name]
 * and [from] (names, separated by blanks) may be NULL. */
void nn_recipe_add(nn_recipe_t *recipe, const char *kind, const char *name,
                   const char *from, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same without options. */
void nn_recipe_plain(nn_recipe_t *recipe, const char *kind, const char *name,
                     const char *from);

/* Add a loss, with keys as in the run file. [keys] go in turn: a key, then its
 * value, which may be NULL (then the key is left out); a NULL key ends them. */
void nn_recipe_loss(nn_recipe_t *recipe, const char *kind, const char *options,
                    const char *const *keys);

/* The layer added last begins with weights normally distributed by [std], and
 * biases of zero; uses the parameters of the layer [owner]. */
void nn_recipe_normal(nn_recipe_t *recipe, double std);
void nn_recipe_share(nn_recipe_t *recipe, const char *owner);

/* ERR_CONFIG unless model.input has [ndim] dimensions, such as [shape]. */
err_code_t nn_recipe_check_input(const nn_recipe_t *recipe, const char *preset,
                                 int ndim, const char *shape, err_t *err);

/* ERR_CONFIG unless attention's [heads] divide [width]. */
err_code_t nn_recipe_check_heads(const nn_recipe_t *recipe, const char *preset,
                                 int64_t width, int64_t heads, err_t *err);

/* The options of what makes a model, a preset or a plugin: all keys of the map
 * [model] but input and [maker]; freed with tree_free. */
tree_t *nn_model_options(const tree_t *model, const char *maker);

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
