/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/preset.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const nn_preset_t *const presets[] = {
    &nn_preset_mlp,      &nn_preset_lenet,     &nn_preset_resnet18,
    &nn_preset_resnet34, &nn_preset_resnet50,  &nn_preset_unet2d,
    &nn_preset_vit,      &nn_preset_cosmoflow, &nn_preset_gpt2,
    &nn_preset_lstm,     &nn_preset_unet3d,    &nn_preset_deepcam,
};
#define PRESETS ((int)(sizeof presets / sizeof presets[0]))

/* ---- from the run file --------------------------------------------------- */

static err_code_t preset_find(const tree_t *node, const nn_preset_t **out,
                              err_t *err)
{
    const char *name = tree_text(node), *names[PRESETS + 1] = {NULL};
    str_buf_t known = {0};
    const char *nearest;
    err_code_t rc;

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
    rc = nn_fail_at(
        tree_place(node), err, "unknown preset '%s'%s%s%s (known: %s)",
        name == NULL ? "" : name, nearest == NULL ? "" : "; did you mean '",
        nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?",
        known.text);
    str_buf_free(&known);
    return rc;
}

err_code_t nn_preset_make(const nn_preset_use_t *use, tree_t **out, err_t *err)
{
    const opt_ints_t *input = use->input;
    _Alignas(max_align_t) unsigned char options[NN_OPTIONS_MAX] = {0};
    nn_recipe_t recipe = {.place = tree_place(use->name), .ndim = input->count};
    const nn_preset_t *preset = NULL;
    err_code_t rc = preset_find(use->name, &preset, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < input->count && i < OP_DIMS_MAX; i++)
        recipe.input[i] = input->items[i];
    rc = opt_fill(preset->rows, use->options, use->path, options, err);
    if (rc != ERR_OK)
        return rc;
    recipe.list = tree_new(TREE_LIST, NULL, recipe.place);
    rc = preset->write(&recipe, options, err);
    opt_free(preset->rows, options);
    if (rc == ERR_OK)
        *out = recipe.list;
    else
        tree_free(recipe.list);
    return rc;
}

err_code_t nn_preset_write(const tree_t *model, const opt_ints_t *input,
                           tree_t **out, err_t *err)
{
    nn_preset_use_t use = {
        .name = tree_get(model, "preset"), .path = "model", .input = input};
    tree_t *options;
    err_code_t rc;

    if (tree_get(model, "layers") != NULL)
        return nn_fail_at(tree_place(tree_get(model, "layers")), err,
                          "the model has a preset and layers; take out one of "
                          "them, or put the preset among the layers: "
                          "{preset: {NAME: {...}}}");
    options = nn_model_options(model, "preset");
    use.options = options;
    rc = nn_preset_make(&use, out, err);
    tree_free(options);
    return rc;
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

const opt_row_t *nn_preset_option_rows(const char *name)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(presets[i]->name, name) == 0)
            return presets[i]->rows;
    return NULL;
}
