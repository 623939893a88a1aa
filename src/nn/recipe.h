/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* recipe: a list of layers that a preset or a plugin writes, with the syntax of
 * the run file. */
#ifndef CDDP_NN_RECIPE_H
#define CDDP_NN_RECIPE_H

#include "nn/registry.h"

/* A list of layers that is being written. */
typedef struct nn_recipe {
    tree_t *list;
    tree_t *losses;     /* losses that a plugin adds */
    tree_t *last;       /* the layer added last */
    tree_place_t place; /* where the preset is written, for errors */
    int ndim;           /* dimensions of the input that the preset reads */
    int64_t input[OP_DIMS_MAX]; /* shape of a sample of this input */
    /* If not NULL: the `init` of layers that are added, as its name and its
     * options in the format of nn_recipe_add ("xavier distribution
     * uniform"). */
    const char *init;
} nn_recipe_t;

/* Add a layer of [kind]. The text that [format] makes is the options: keys and
 * values in turn, separated by spaces, and lists with commas ("out 8 kernel
 * 3,3"). [name] and [from] (names, separated by spaces) may be NULL. */
void nn_recipe_add(nn_recipe_t *recipe, const char *kind, const char *name,
                   const char *from, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Add a layer of [kind] without options. */
void nn_recipe_plain(nn_recipe_t *recipe, const char *kind, const char *name,
                     const char *from);

/* Add a loss of [kind]. [options]: in the format of nn_recipe_add, or NULL.
 * [keys]: other keys of a loss in the run file, in turn a key and its value. A
 * NULL key ends them. A key whose value is NULL is left out. */
void nn_recipe_loss(nn_recipe_t *recipe, const char *kind, const char *options,
                    const char *const *keys);

/* nn_recipe_normal: the layer added last gets normally distributed weights with
 * standard deviation [std], and zero biases. nn_recipe_share: the layer added
 * last uses the parameters of the layer [owner]. */
void nn_recipe_normal(nn_recipe_t *recipe, double std);
void nn_recipe_share(nn_recipe_t *recipe, const char *owner);

/* ERR_CONFIG unless model.input has [ndim] dimensions. [shape] is an example of
 * such a shape, for the message. */
err_code_t nn_recipe_check_input(const nn_recipe_t *recipe, const char *preset,
                                 int ndim, const char *shape, err_t *err);

/* ERR_CONFIG unless attention's [heads] divide [width]. */
err_code_t nn_recipe_check_heads(const nn_recipe_t *recipe, const char *preset,
                                 int64_t width, int64_t heads, err_t *err);

/* The options of the preset or plugin that makes a model: a map with all keys
 * of [model] but input and [maker]. The caller frees it with tree_free. */
tree_t *nn_model_options(const tree_t *model, const char *maker);

#endif
