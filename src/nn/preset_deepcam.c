/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * deepcam: segmentation of climate maps, with a class for each pixel, similar
 * to the network of Kurth et al. ("Exascale Deep Learning for Climate
 * Analytics", 2018) that MLPerf HPC trains. It has the encoder of DeepLabv3+
 * (Chen et al., 2018), made of residual blocks of separable convolutions as in
 * Xception; then convolutions of several dilations side by side; then a decoder
 * that also reads the fine features of the encoder. By default it is narrower
 * and less deep than the benchmark's network; the options width and blocks make
 * it as large.
 */
#include <stdio.h>

#include "nn/preset.h"

#define NAME_TEXT 64
/* Input size over output size of the encoder, for height and width. */
#define STRIDE 16

typedef struct deepcam_options {
    int64_t classes, width, blocks;
} deepcam_options_t;

_Static_assert(sizeof(deepcam_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t deepcam_rows[] = {
    {.name = "classes",
     .type = OPT_INT,
     .offset = offsetof(deepcam_options_t, classes),
     .fallback = "3",
     .min = 1,
     .max = 1 << 16,
     .help = "Number of classes of a pixel"},
    {.name = "width",
     .type = OPT_INT,
     .offset = offsetof(deepcam_options_t, width),
     .fallback = "32",
     .min = 1,
     .max = 1 << 12,
     .help = "Number of channels at half size; it doubles when the size is "
             "halved again"},
    {.name = "blocks",
     .type = OPT_INT,
     .offset = offsetof(deepcam_options_t, blocks),
     .fallback = "4",
     .min = 0,
     .max = 100,
     .help = "Number of residual blocks at the smallest size"},
    {.name = NULL},
};

/* Add conv without bias, batchnorm and, if [relu], relu. The last of these
 * layers is called [name]. */
static void write_conv(nn_recipe_t *recipe, const char *name, const char *from,
                       bool relu, const char *options)
{
    nn_recipe_add(recipe, "conv", NULL, from, "%s bias false", options);
    nn_recipe_plain(recipe, "batchnorm", relu ? NULL : name, NULL);
    if (relu)
        nn_recipe_plain(recipe, "relu", name, NULL);
}

/* A part of the network. NULL: [from] is the layer before it, [name] is made
 * from kind and number. */
typedef struct part {
    const char *name, *from;
    int64_t in, out; /* channels */
    int stride;
    bool relu; /* of a separable convolution: a relu follows */
} part_t;

/* Add a separable convolution: a convolution of each channel alone, then a 1x1
 * convolution across channels. */
static void write_separable(nn_recipe_t *recipe, part_t part)
{
    char options[NAME_TEXT];

    nn_recipe_add(recipe, "conv", NULL, part.from,
                  "out %lld kernel 3 pad 1 groups %lld stride %d bias false",
                  (long long)part.in, (long long)part.in, part.stride);
    snprintf(options, sizeof options, "out %lld kernel 1", (long long)part.out);
    write_conv(recipe, part.name, NULL, part.relu, options);
}

/* Add a residual block, which has a name and from. */
static void write_block(nn_recipe_t *recipe, part_t block)
{
    const int64_t in = block.in, out = block.out;
    char body[2 * NAME_TEXT], from[5 * NAME_TEXT], options[NAME_TEXT];
    char shortcut[2 * NAME_TEXT];

    snprintf(body, sizeof body, "%s_body", block.name);
    snprintf(shortcut, sizeof shortcut, "%s", block.from);
    write_separable(recipe, (part_t){NULL, block.from, in, out, 1, true});
    write_separable(recipe,
                    (part_t){body, NULL, out, out, block.stride, false});
    if (in != out || block.stride != 1) {
        snprintf(shortcut, sizeof shortcut, "%s_short", block.name);
        snprintf(options, sizeof options, "out %lld kernel 1 stride %d",
                 (long long)out, block.stride);
        write_conv(recipe, shortcut, block.from, false, options);
    }
    snprintf(from, sizeof from, "%s %s", body, shortcut);
    nn_recipe_plain(recipe, "add", NULL, from);
    nn_recipe_plain(recipe, "relu", block.name, NULL);
}

/* Add the encoder. Its last layer, at 1/16 of the input's size, is called
 * middle<blocks>, or entry16 if the option blocks is 0. The features at 1/4 of
 * the size are called fine. */
static void write_encoder(nn_recipe_t *recipe, const deepcam_options_t *net)
{
    char options[NAME_TEXT], name[NAME_TEXT], before[NAME_TEXT] = "stem";
    const int64_t w = net->width;

    snprintf(options, sizeof options, "out %lld kernel 3 pad 1 stride 2",
             (long long)w);
    write_conv(recipe, NULL, NULL, true, options);
    snprintf(options, sizeof options, "out %lld kernel 3 pad 1", (long long)w);
    write_conv(recipe, "stem", NULL, true, options);
    write_block(recipe, (part_t){"fine", "stem", w, 2 * w, .stride = 2});
    write_block(recipe, (part_t){"coarse", "fine", 2 * w, 4 * w, .stride = 2});
    write_block(recipe,
                (part_t){"entry16", "coarse", 4 * w, 8 * w, .stride = 2});
    snprintf(before, sizeof before, "entry16");
    for (int b = 1; b <= (int)net->blocks; b++) {
        snprintf(name, sizeof name, "middle%d", b);
        write_block(recipe, (part_t){name, before, 8 * w, 8 * w, .stride = 1});
        snprintf(before, sizeof before, "%s", name);
    }
}

/* Add convolutions of several dilations and the mean over the whole image,
 * which are concatenated ("atrous spatial pyramid pooling"). The output is
 * called encoded. */
static void write_pyramid(nn_recipe_t *recipe, const deepcam_options_t *net)
{
    static const int rates[] = {6, 12, 18};
    const long long out = 4 * (long long)net->width;
    char before[NAME_TEXT] = "entry16", options[NAME_TEXT], name[NAME_TEXT];

    if (net->blocks > 0)
        snprintf(before, sizeof before, "middle%d", (int)net->blocks);
    snprintf(options, sizeof options, "out %lld kernel 1", out);
    write_conv(recipe, "near", before, true, options);
    for (int i = 0; i < 3; i++) {
        snprintf(options, sizeof options,
                 "out %lld kernel 3 pad %d dilation %d", out, rates[i],
                 rates[i]);
        snprintf(name, sizeof name, "rate%d", rates[i]);
        write_conv(recipe, name, before, true, options);
    }
    nn_recipe_add(recipe, "adaptive_avgpool", NULL, before, "size 1");
    nn_recipe_add(recipe, "conv", NULL, NULL, "out %lld kernel 1", out);
    nn_recipe_plain(recipe, "relu", NULL, NULL);
    nn_recipe_add(recipe, "upsample", "image", NULL, "factor %lld,%lld",
                  (long long)(recipe->input[1] / STRIDE),
                  (long long)(recipe->input[2] / STRIDE));
    nn_recipe_plain(recipe, "concat", NULL, "near rate6 rate12 rate18 image");
    snprintf(options, sizeof options, "out %lld kernel 1", out);
    write_conv(recipe, "encoded", NULL, true, options);
}

static void write_decoder(nn_recipe_t *recipe, const deepcam_options_t *net)
{
    const int64_t out = 4 * net->width;
    char options[NAME_TEXT];

    nn_recipe_add(recipe, "upsample", "wide", NULL, "factor 4 mode linear");
    snprintf(options, sizeof options, "out %lld kernel 1",
             (long long)net->width);
    write_conv(recipe, "detail", "fine", true, options);
    nn_recipe_plain(recipe, "concat", NULL, "wide detail");
    write_separable(recipe, (part_t){NULL, NULL, 5 * net->width, out, 1, true});
    write_separable(recipe, (part_t){NULL, NULL, out, out, 1, true});
    nn_recipe_add(recipe, "conv", NULL, NULL, "out %lld kernel 1",
                  (long long)net->classes);
    nn_recipe_add(recipe, "upsample", "head", NULL, "factor 4 mode linear");
}

static err_code_t deepcam_write(nn_recipe_t *recipe, const void *options,
                                err_t *err)
{
    err_code_t rc = nn_recipe_check_input(recipe, "deepcam", 3,
                                          "[channels, height, width]", err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 1; i < 3; i++)
        if (recipe->input[i] % STRIDE != 0)
            return nn_fail_at(recipe->place, err,
                              "preset deepcam makes images %d times smaller, "
                              "so height and width must be multiples of %d, "
                              "but one is %lld",
                              STRIDE, STRIDE, (long long)recipe->input[i]);
    write_encoder(recipe, options);
    write_pyramid(recipe, options);
    write_decoder(recipe, options);
    return ERR_OK;
}

const nn_preset_t nn_preset_deepcam = {
    .name = "deepcam",
    .help = "Segmentation, with a class for each pixel: an encoder and decoder "
            "similar to DeepCAM (Kurth et al., 2018)",
    .rows = deepcam_rows,
    .write = deepcam_write,
};
