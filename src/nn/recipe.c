/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "base/str.h"

#define RECIPE_TEXT 256

/* Split [words] at [separator] into a list of scalars. A single word becomes a
 * scalar. Changes [words]. */
static tree_t *words_tree(const nn_recipe_t *recipe, char *words,
                          const char *separator)
{
    tree_t *list;
    char *rest = NULL;

    if (strpbrk(words, separator) == NULL)
        return tree_new(TREE_SCALAR, words, recipe->place);
    list = tree_new(TREE_LIST, NULL, recipe->place);
    for (char *word = strtok_r(words, separator, &rest); word != NULL;
         word = strtok_r(NULL, separator, &rest))
        tree_add(list, tree_new(TREE_SCALAR, word, recipe->place));
    return list;
}

static tree_t *options_tree(const nn_recipe_t *recipe, char *text)
{
    tree_t *map = tree_new(TREE_MAP, NULL, recipe->place);
    char *rest = NULL, *key, *value;

    for (key = strtok_r(text, " ", &rest); key != NULL;
         key = strtok_r(NULL, " ", &rest)) {
        value = strtok_r(NULL, " ", &rest);
        tree_put(map, key, recipe->place,
                 value == NULL ? tree_new(TREE_SCALAR, "", recipe->place)
                               : words_tree(recipe, value, ","));
    }
    return map;
}

/* Convert recipe->init, "NAME KEY VALUE ...", to a map. */
static tree_t *init_tree(const nn_recipe_t *recipe)
{
    tree_t *map = tree_new(TREE_MAP, NULL, recipe->place);
    char text[RECIPE_TEXT], *rest = NULL, *name;

    snprintf(text, sizeof text, "%s", recipe->init);
    name = strtok_r(text, " ", &rest);
    tree_put(map, name, recipe->place, options_tree(recipe, rest));
    return map;
}

static void recipe_append(nn_recipe_t *recipe, const char *kind,
                          const char *name, const char *from, tree_t *options)
{
    tree_t *map = tree_new(TREE_MAP, NULL, recipe->place);
    char *names;

    tree_put(map, kind, recipe->place, options);
    if (name != NULL)
        tree_put(map, "name", recipe->place,
                 tree_new(TREE_SCALAR, name, recipe->place));
    if (from != NULL) {
        names = str_dup(from);
        tree_put(map, "from", recipe->place, words_tree(recipe, names, " "));
        free(names);
    }
    if (recipe->init != NULL)
        tree_put(map, "init", recipe->place, init_tree(recipe));
    tree_add(recipe->list, map);
    recipe->last = map;
}

void nn_recipe_normal(nn_recipe_t *recipe, double std)
{
    tree_t *init = tree_new(TREE_MAP, NULL, recipe->place);
    char text[RECIPE_TEXT];

    numeric_print(text, sizeof text, "std %.17g", std);
    tree_put(init, "normal", recipe->place, options_tree(recipe, text));
    tree_put(recipe->last, "init", recipe->place, init);
}

void nn_recipe_share(nn_recipe_t *recipe, const char *owner)
{
    tree_put(recipe->last, "share", recipe->place,
             tree_new(TREE_SCALAR, owner, recipe->place));
}

void nn_recipe_plain(nn_recipe_t *recipe, const char *kind, const char *name,
                     const char *from)
{
    recipe_append(recipe, kind, name, from,
                  tree_new(TREE_NULL, NULL, recipe->place));
}

void nn_recipe_add(nn_recipe_t *recipe, const char *kind, const char *name,
                   const char *from, const char *format, ...)
{
    str_buf_t text = {0};
    va_list args;

    va_start(args, format);
    str_buf_vadd(&text, format, args);
    va_end(args);
    recipe_append(recipe, kind, name, from, options_tree(recipe, text.text));
    str_buf_free(&text);
}

void nn_recipe_loss(nn_recipe_t *recipe, const char *kind, const char *options,
                    const char *const *keys)
{
    tree_t *map = tree_new(TREE_MAP, NULL, recipe->place);
    char *text = str_dup(options == NULL ? "" : options);

    tree_put(map, kind, recipe->place, options_tree(recipe, text));
    free(text);
    for (; keys[0] != NULL; keys += 2)
        if (keys[1] != NULL)
            tree_put(map, keys[0], recipe->place,
                     tree_new(TREE_SCALAR, keys[1], recipe->place));
    tree_add(recipe->losses, map);
}

err_code_t nn_recipe_check_input(const nn_recipe_t *recipe, const char *preset,
                                 int ndim, const char *shape, err_t *err)
{
    op_desc_t desc;
    char text[NN_SHAPE_TEXT];

    if (recipe->ndim == ndim)
        return ERR_OK;
    nn_desc_plain(&desc, 1, recipe->ndim, recipe->input);
    return nn_fail_at(recipe->place, err,
                      "preset %s takes samples of shape %s, but model.input is "
                      "%s",
                      preset, shape, nn_shape_format(&desc, text));
}

err_code_t nn_recipe_check_heads(const nn_recipe_t *recipe, const char *preset,
                                 int64_t width, int64_t heads, err_t *err)
{
    if (width % heads == 0)
        return ERR_OK;
    return nn_fail_at(recipe->place, err,
                      "preset %s: its width %lld is no multiple of its %lld "
                      "heads",
                      preset, (long long)width, (long long)heads);
}

tree_t *nn_model_options(const tree_t *model, const char *maker)
{
    tree_t *own = tree_new(TREE_MAP, NULL, tree_place(model));

    for (size_t i = 0; i < tree_count(model); i++)
        if (strcmp(tree_key(model, i), "input") != 0 &&
            strcmp(tree_key(model, i), maker) != 0)
            tree_put(own, tree_key(model, i), tree_key_place(model, i),
                     tree_clone(tree_at(model, i)));
    return own;
}
