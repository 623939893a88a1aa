/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* recipe: a list of layers, written by a preset or a plugin as one would write
 * it in the run file. */
#ifndef CDDP_NN_RECIPE_H
#define CDDP_NN_RECIPE_H

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

/* Add a layer of [kind], with the options that [format] makes: keys and values
 * in turn, separated by blanks; lists with commas ("out 8 kernel 3,3"). [name]
 * and [from] (names, separated by blanks) may be NULL. */
void nn_recipe_add(nn_recipe_t *recipe, const char *kind, const char *name,
                   const char *from, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same without options. */
void nn_recipe_plain(nn_recipe_t *recipe, const char *kind, const char *name,
                     const char *from);

/* Add a loss of [kind], with [options] as the text of nn_recipe_add (NULL:
 * none) and keys as in the run file. [keys] go in turn: a key, then its value,
 * which may be NULL (then the key is left out); a NULL key ends them. */
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

#endif
