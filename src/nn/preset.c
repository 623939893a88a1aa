/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "base/str.h"

#define RECIPE_TEXT 256

static const nn_preset_t *const presets[] = {
    &nn_preset_mlp,      &nn_preset_lenet,     &nn_preset_resnet18,
    &nn_preset_resnet34, &nn_preset_resnet50,  &nn_preset_unet2d,
    &nn_preset_vit,      &nn_preset_cosmoflow, &nn_preset_gpt2,
    &nn_preset_lstm,     &nn_preset_unet3d,    &nn_preset_deepcam,
};
#define PRESETS ((int)(sizeof presets / sizeof presets[0]))

/* ---- writing layers ------------------------------------------------------ */

/* [words], split at [separator], as a list of scalars; a single word as a
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

/* Of "NAME KEY VALUE ...". */
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

/* ---- from the run file --------------------------------------------------- */

static err_code_t preset_find(const tree_t *node, const nn_preset_t **out,
                              err_t *err)
{
    const char *name = tree_text(node), *names[PRESETS + 1] = {NULL};
    str_buf_t known = {0};
    const char *nearest;
    err_code_t code;

    for (int i = 0; i < PRESETS; i++) {
        if (name != NULL && strcmp(presets[i]->name, name) == 0) {
            *out = presets[i];
            str_buf_free(&known);
            return ERR_OK;
        }
        names[i] = presets[i]->name;
        str_buf_add(&known, "%s%s", i == 0 ? "" : ", ", presets[i]->name);
    }
    nearest = name == NULL ? NULL : str_nearest(name, names);
    code = nn_fail_at(
        tree_place(node), err, "unknown preset '%s'%s%s%s (known: %s)",
        name == NULL ? "" : name, nearest == NULL ? "" : "; did you mean '",
        nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?",
        known.text);
    str_buf_free(&known);
    return code;
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

err_code_t nn_preset_make(const tree_t *name, const tree_t *own,
                          const char *path, const opt_ints_t *input,
                          tree_t **out, err_t *err)
{
    _Alignas(max_align_t) unsigned char options[NN_OPTIONS_MAX] = {0};
    nn_recipe_t recipe = {.place = tree_place(name), .ndim = input->count};
    const nn_preset_t *preset = NULL;
    err_code_t code = preset_find(name, &preset, err);

    if (code != ERR_OK)
        return code;
    for (int i = 0; i < input->count && i < OP_DIMS_MAX; i++)
        recipe.input[i] = input->items[i];
    code = opt_fill(preset->rows, own, path, options, err);
    if (code != ERR_OK)
        return code;
    recipe.list = tree_new(TREE_LIST, NULL, recipe.place);
    code = preset->write(&recipe, options, err);
    opt_free(preset->rows, options);
    if (code == ERR_OK)
        *out = recipe.list;
    else
        tree_free(recipe.list);
    return code;
}

err_code_t nn_preset_write(const tree_t *model, const opt_ints_t *input,
                           tree_t **out, err_t *err)
{
    tree_t *own;
    err_code_t code;

    if (tree_get(model, "layers") != NULL)
        return nn_fail_at(tree_place(tree_get(model, "layers")), err,
                          "the model has a preset and layers; take out one of "
                          "them, or put the preset among the layers: "
                          "{preset: {NAME: {...}}}");
    own = nn_model_options(model, "preset");
    code = nn_preset_make(tree_get(model, "preset"), own, "model", input, out,
                          err);
    tree_free(own);
    return code;
}

void nn_preset_document(str_buf_t *out)
{
    str_buf_add(out, "## Presets\n\n"
                     "`model: {input: [...], preset: NAME}` instead of a list "
                     "of layers; the options\nstand beside them. `cddp-train "
                     "--check` lists the layers that it makes.\n\n");
    for (int i = 0; i < PRESETS; i++) {
        char *title = str_printf("model (preset: %s)", presets[i]->name);

        str_buf_add(out, "### %s\n\n%s.\n\n", presets[i]->name,
                    presets[i]->help);
        opt_document(presets[i]->rows, title, out);
        str_buf_add(out, "\n");
        free(title);
    }
}
