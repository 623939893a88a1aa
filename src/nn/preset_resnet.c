/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Residual networks (He et al., "Deep Residual Learning for Image Recognition",
 * 2016), in the form that torchvision made common: the 3x3 convolution of a
 * bottleneck has the stride. The stem depends on the size of the images: 7x7
 * with stride 2 and a maxpool for large images, 3x3 for small ones as in CIFAR.
 */
#include <stdio.h>

#include "nn/preset.h"

#define BLOCK_TEXT 32
#define NAME_TEXT 64
/* Maximum height and width of images with the 3x3 stem. */
#define SMALL_IMAGE 64

enum { STEM_AUTO, STEM_CIFAR, STEM_IMAGENET };

typedef struct resnet_options {
    int64_t classes, width;
    int stem;
} resnet_options_t;

_Static_assert(sizeof(resnet_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const char *const stems[] = {"auto", "cifar", "imagenet", NULL};

static const opt_row_t resnet_rows[] = {
    {.name = "classes",
     .type = OPT_INT,
     .offset = offsetof(resnet_options_t, classes),
     .min = 1,
     .max = 1 << 28,
     .help = "Number of features of the output"},
    {.name = "width",
     .type = OPT_INT,
     .offset = offsetof(resnet_options_t, width),
     .fallback = "64",
     .min = 1,
     .max = 1 << 16,
     .help = "Number of channels of the first stage; each further stage has "
             "twice as many"},
    {.name = "stem",
     .type = OPT_CHOICE,
     .offset = offsetof(resnet_options_t, stem),
     .fallback = "auto",
     .choices = stems,
     .help = "First layers. cifar: a 3x3 convolution; imagenet: a 7x7 "
             "convolution of stride 2 and a maxpool; auto: cifar for images up "
             "to 64x64, imagenet for larger ones"},
    {.name = NULL},
};

/* One residual block. */
typedef struct block {
    nn_recipe_t *recipe;
    const char *name;   /* name of its output */
    const char *before; /* the layer that it reads */
    int64_t channels;   /* output channels of its 3x3 convolutions */
    int stride;
    bool bottleneck;
    bool project; /* the shortcut is a 1x1 convolution, as input and output
                     differ in shape */
} block_t;

/* A convolution of a block. The first one reads [before] of the block, each
 * other one the layer before it. */
typedef struct conv {
    int number; /* within the block, from 1 */
    int64_t out;
    int kernel, stride;
    bool relu; /* a relu follows */
} conv_t;

/* Add conv, batchnorm and, if [conv->relu], relu. They are called NAME_conv1,
 * NAME_bn1, NAME_relu1 for block NAME and number 1. */
static void write_conv(const block_t *block, const conv_t *conv)
{
    const char *from = conv->number == 1 ? block->before : NULL;
    char name[NAME_TEXT];

    snprintf(name, sizeof name, "%s_conv%d", block->name, conv->number);
    nn_recipe_add(block->recipe, "conv", name, from,
                  "out %lld kernel %d stride %d pad %d bias false",
                  (long long)conv->out, conv->kernel, conv->stride,
                  conv->kernel / 2);
    snprintf(name, sizeof name, "%s_bn%d", block->name, conv->number);
    nn_recipe_plain(block->recipe, "batchnorm", name, NULL);
    snprintf(name, sizeof name, "%s_relu%d", block->name, conv->number);
    if (conv->relu)
        nn_recipe_plain(block->recipe, "relu", name, NULL);
}

static void write_block(const block_t *block)
{
    const int64_t c = block->channels;
    const int64_t out = block->bottleneck ? 4 * c : c;
    const int last = block->bottleneck ? 3 : 2; /* number of convolutions */
    char name[NAME_TEXT], from[3 * NAME_TEXT];

    if (block->bottleneck) {
        write_conv(block, &(conv_t){1, c, 1, 1, true});
        write_conv(block, &(conv_t){2, c, 3, block->stride, true});
        write_conv(block, &(conv_t){3, out, 1, 1, false});
    } else {
        write_conv(block, &(conv_t){1, c, 3, block->stride, true});
        write_conv(block, &(conv_t){2, c, 3, 1, false});
    }
    snprintf(from, sizeof from, "%s_bn%d %s", block->name, last, block->before);
    if (block->project) {
        snprintf(name, sizeof name, "%s_down", block->name);
        nn_recipe_add(block->recipe, "conv", name, block->before,
                      "out %lld kernel 1 stride %d bias false", (long long)out,
                      block->stride);
        snprintf(name, sizeof name, "%s_downbn", block->name);
        nn_recipe_plain(block->recipe, "batchnorm", name, NULL);
        snprintf(from, sizeof from, "%s_bn%d %s", block->name, last, name);
    }
    snprintf(name, sizeof name, "%s_add", block->name);
    nn_recipe_plain(block->recipe, "add", name, from);
    nn_recipe_plain(block->recipe, "relu", block->name, NULL);
}

static void write_stem(nn_recipe_t *recipe, const resnet_options_t *resnet)
{
    const long long width = (long long)resnet->width;
    bool small =
        recipe->input[1] <= SMALL_IMAGE && recipe->input[2] <= SMALL_IMAGE;

    if (resnet->stem != STEM_AUTO)
        small = resnet->stem == STEM_CIFAR;
    if (small)
        nn_recipe_add(recipe, "conv", "stem_conv", NULL,
                      "out %lld kernel 3 pad 1 bias false", width);
    else
        nn_recipe_add(recipe, "conv", "stem_conv", NULL,
                      "out %lld kernel 7 stride 2 pad 3 bias false", width);
    nn_recipe_plain(recipe, "batchnorm", "stem_bn", NULL);
    nn_recipe_plain(recipe, "relu", small ? "stem" : "stem_relu", NULL);
    if (!small)
        nn_recipe_add(recipe, "maxpool", "stem", NULL,
                      "kernel 3 stride 2 pad 1");
}

static err_code_t resnet_write(nn_recipe_t *recipe, const void *options,
                               const char *preset, const int depths[4],
                               bool bottleneck, err_t *err)
{
    const resnet_options_t *resnet = options;
    char name[BLOCK_TEXT], before[BLOCK_TEXT] = "stem";
    err_code_t rc = nn_recipe_check_input(recipe, preset, 3,
                                          "[channels, height, width]", err);

    if (rc != ERR_OK)
        return rc;
    write_stem(recipe, resnet);
    for (int s = 0; s < 4; s++)
        for (int b = 0; b < depths[s]; b++) {
            block_t block = {.recipe = recipe,
                             .name = name,
                             .before = before,
                             .channels = resnet->width << s,
                             .stride = s > 0 && b == 0 ? 2 : 1,
                             .bottleneck = bottleneck};

            block.project = b == 0 && (s > 0 || bottleneck);
            snprintf(name, sizeof name, "s%db%d", s + 1, b + 1);
            write_block(&block);
            snprintf(before, sizeof before, "s%db%d", s + 1, b + 1);
        }
    nn_recipe_plain(recipe, "mean", "pool", NULL);
    nn_recipe_add(recipe, "linear", "head", NULL, "out %lld",
                  (long long)resnet->classes);
    return ERR_OK;
}

static err_code_t resnet18_write(nn_recipe_t *recipe, const void *options,
                                 err_t *err)
{
    return resnet_write(recipe, options, "resnet18", (int[]){2, 2, 2, 2}, false,
                        err);
}

static err_code_t resnet34_write(nn_recipe_t *recipe, const void *options,
                                 err_t *err)
{
    return resnet_write(recipe, options, "resnet34", (int[]){3, 4, 6, 3}, false,
                        err);
}

static err_code_t resnet50_write(nn_recipe_t *recipe, const void *options,
                                 err_t *err)
{
    return resnet_write(recipe, options, "resnet50", (int[]){3, 4, 6, 3}, true,
                        err);
}

const nn_preset_t nn_preset_resnet18 = {
    .name = "resnet18",
    .help = "Residual network of 18 layers (He et al., 2016)",
    .rows = resnet_rows,
    .write = resnet18_write,
};

const nn_preset_t nn_preset_resnet34 = {
    .name = "resnet34",
    .help = "Residual network of 34 layers",
    .rows = resnet_rows,
    .write = resnet34_write,
};

const nn_preset_t nn_preset_resnet50 = {
    .name = "resnet50",
    .help = "Residual network of 50 layers, in bottleneck blocks",
    .rows = resnet_rows,
    .write = resnet50_write,
};
