/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * vit: an image is cut into patches, which are the tokens of a transformer
 * (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021), with a norm
 * before each part of a block, and before the head the mean over all tokens, or
 * a class token: a learnt token ahead of the others. It is a learnt tensor that
 * is added to zeros.
 */
#include <stdio.h>

#include "nn/preset.h"

#define NAME_TEXT 32

typedef struct vit_options {
    int64_t classes, patch, width, depth, heads, mlp;
    double dropout, eps;
    int pool;
} vit_options_t;

_Static_assert(sizeof(vit_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

enum { POOL_MEAN, POOL_TOKEN };

static const char *const pools[] = {"mean", "token", NULL};

#define SIZE(key, field, fallback_text, most, text)                            \
    {                                                                          \
        .name = (key), .type = OPT_INT,                                        \
        .offset = offsetof(vit_options_t, field), .fallback = (fallback_text), \
        .min = 1, .max = (most), .help = (text)                                \
    }

static const opt_row_t vit_rows[] = {
    SIZE("classes", classes, NULL, 1 << 28, "Number of features of the output"),
    SIZE("patch", patch, "16", 1 << 16,
         "Height and width of a patch, in pixels; it divides those of the "
         "image"),
    SIZE("width", width, "192", 1 << 20, "Number of features of a token"),
    SIZE("depth", depth, "12", 1000,
         "Number of blocks; each has an attention and an mlp"),
    SIZE("heads", heads, "3", 1 << 16,
         "Number of heads of the attention; it divides width"),
    SIZE("mlp", mlp, "4", 64,
         "Number of hidden features of an mlp, in multiples of width"),
    {.name = "dropout",
     .type = OPT_REAL,
     .offset = offsetof(vit_options_t, dropout),
     .fallback = "0",
     .min = 0,
     .max = 0.9999,
     .help = "Rate of dropout after each attention and after each mlp; 0: no "
             "dropout"},
    {.name = "pool",
     .type = OPT_CHOICE,
     .offset = offsetof(vit_options_t, pool),
     .fallback = "mean",
     .choices = pools,
     .help = "What the head reads. mean: the mean over all tokens; token: a "
             "learnt class token ahead of the others, as in torchvision"},
    {.name = "eps",
     .type = OPT_REAL,
     .offset = offsetof(vit_options_t, eps),
     .fallback = "1e-5",
     .min = 1e-12,
     .max = 1,
     .help = "Added to the variance in each layernorm; torchvision's models "
             "have 1e-6"},
    {.name = NULL},
};

static void write_norm(nn_recipe_t *recipe, const vit_options_t *vit,
                       const char *name, const char *from)
{
    nn_recipe_add(recipe, "layernorm", name, from, "eps %.17g", vit->eps);
}

/* Put a class token ahead of the tokens of the layer "pixels". */
static void write_token(nn_recipe_t *recipe)
{
    nn_recipe_add(recipe, "slice", NULL, "pixels", "size 1");
    nn_recipe_add(recipe, "scale", NULL, NULL, "by 0");
    nn_recipe_plain(recipe, "position", "class_token", NULL);
    nn_recipe_add(recipe, "concat", NULL, "class_token pixels", "axis 1");
}

/* Add the last layers of a part of a block, and the shortcut from [before]. */
static void write_end(nn_recipe_t *recipe, const vit_options_t *vit,
                      const char *part, const char *before, const char *name)
{
    char from[3 * NAME_TEXT], end[2 * NAME_TEXT];

    snprintf(end, sizeof end, "%s_out", part);
    nn_recipe_add(recipe, "linear", end, NULL, "out %lld flatten false",
                  (long long)vit->width);
    if (vit->dropout > 0) {
        snprintf(end, sizeof end, "%s_drop", part);
        nn_recipe_add(recipe, "dropout", end, NULL, "rate %.17g", vit->dropout);
    }
    snprintf(from, sizeof from, "%s %s", end, before);
    nn_recipe_plain(recipe, "add", name, from);
}

static void write_block(nn_recipe_t *recipe, const vit_options_t *vit,
                        const char *before, int number)
{
    const long long width = (long long)vit->width;
    char part[NAME_TEXT], middle[NAME_TEXT], name[NAME_TEXT];

    snprintf(part, sizeof part, "b%d_attention", number);
    snprintf(middle, sizeof middle, "b%d_middle", number);
    write_norm(recipe, vit, NULL, before);
    nn_recipe_add(recipe, "linear", NULL, NULL, "out %lld flatten false",
                  3 * width);
    nn_recipe_add(recipe, "attention", NULL, NULL, "heads %lld",
                  (long long)vit->heads);
    write_end(recipe, vit, part, before, middle);
    snprintf(part, sizeof part, "b%d_mlp", number);
    snprintf(name, sizeof name, "b%d", number);
    write_norm(recipe, vit, NULL, NULL);
    nn_recipe_add(recipe, "linear", NULL, NULL, "out %lld flatten false",
                  (long long)vit->mlp * width);
    nn_recipe_plain(recipe, "gelu", NULL, NULL);
    write_end(recipe, vit, part, middle, name);
}

static err_code_t vit_check(const nn_recipe_t *recipe, const vit_options_t *vit,
                            err_t *err)
{
    err_code_t rc = nn_recipe_check_input(recipe, "vit", 3,
                                          "[channels, height, width]", err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 1; i < 3; i++)
        if (recipe->input[i] % vit->patch != 0)
            return nn_fail_at(recipe->place, err,
                              "preset vit cuts images into patches of %lld x "
                              "%lld, so height and width must be multiples of "
                              "%lld, but one is %lld",
                              (long long)vit->patch, (long long)vit->patch,
                              (long long)vit->patch,
                              (long long)recipe->input[i]);
    return nn_recipe_check_heads(recipe, "vit", vit->width, vit->heads, err);
}

static err_code_t vit_write(nn_recipe_t *recipe, const void *options,
                            err_t *err)
{
    const vit_options_t *vit = options;
    char before[NAME_TEXT] = "tokens";
    err_code_t rc = vit_check(recipe, vit, err);

    if (rc != ERR_OK)
        return rc;
    nn_recipe_add(recipe, "conv", "patches", NULL,
                  "out %lld kernel %lld stride %lld", (long long)vit->width,
                  (long long)vit->patch, (long long)vit->patch);
    nn_recipe_add(recipe, "reshape", NULL, NULL, "shape %lld,-1",
                  (long long)vit->width);
    nn_recipe_add(recipe, "permute", vit->pool == POOL_TOKEN ? "pixels" : NULL,
                  NULL, "order 2,1");
    if (vit->pool == POOL_TOKEN)
        write_token(recipe);
    nn_recipe_plain(recipe, "position", "tokens", NULL);
    for (int b = 1; b <= (int)vit->depth; b++) {
        write_block(recipe, vit, before, b);
        snprintf(before, sizeof before, "b%d", b);
    }
    write_norm(recipe, vit, "norm", NULL);
    if (vit->pool == POOL_TOKEN)
        nn_recipe_add(recipe, "slice", "pool", NULL, "size 1");
    else
        nn_recipe_add(recipe, "mean", "pool", NULL, "axes 1");
    nn_recipe_add(recipe, "linear", "head", NULL, "out %lld",
                  (long long)vit->classes);
    return ERR_OK;
}

const nn_preset_t nn_preset_vit = {
    .name = "vit",
    .help = "Vision transformer (Dosovitskiy et al., 2021) on patches of an "
            "image; the default size is Ti/16",
    .rows = vit_rows,
    .write = vit_write,
};
