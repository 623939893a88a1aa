/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * unet2d, unet3d: an encoder that halves the edges of an image or volume
 * several times, a decoder that doubles them as often, and shortcuts between
 * equal sizes (Ronneberger et al., "U-Net", 2015; Cicek et al., "3D U-Net",
 * 2016). Convolutions are padded and followed by batch norm; upsampling repeats
 * the nearest element.
 */
#include <stdio.h>

#include "nn/preset.h"

#define NAME_TEXT 64
#define DEPTH_MAX 8

typedef struct unet_options {
    int64_t out, width, depth;
    double mask;
} unet_options_t;

_Static_assert(sizeof(unet_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t unet_rows[] = {
    {.name = "out",
     .type = OPT_INT,
     .offset = offsetof(unet_options_t, out),
     .min = 1,
     .max = 1 << 20,
     .help = "Number of channels of the output"},
    {.name = "width",
     .type = OPT_INT,
     .offset = offsetof(unet_options_t, width),
     .fallback = "64",
     .min = 1,
     .max = 1 << 16,
     .help =
         "Number of channels at full size; it doubles when the size is halved"},
    {.name = "depth",
     .type = OPT_INT,
     .offset = offsetof(unet_options_t, depth),
     .fallback = "4",
     .min = 1,
     .max = DEPTH_MAX,
     .help = "How many times the size is halved; the edges of the input must "
             "be multiples of 2^depth"},
    {.name = "mask",
     .type = OPT_REAL,
     .offset = offsetof(unet_options_t, mask),
     .fallback = "0",
     .min = 0,
     .max = 0.9999,
     .help = "Rate of dropout on the input, so that in training the net learns "
             "to fill in missing numbers; 0: no dropout"},
    {.name = NULL},
};

/* Add two convolutions with batch norm and relu. The last relu is called
 * [name]. */
static void write_pair(nn_recipe_t *recipe, const char *name, const char *from,
                       int64_t channels)
{
    for (int i = 0; i < 2; i++) {
        nn_recipe_add(recipe, "conv", NULL, i == 0 ? from : NULL,
                      "out %lld kernel 3 pad 1 bias false",
                      (long long)channels);
        nn_recipe_plain(recipe, "batchnorm", NULL, NULL);
        nn_recipe_plain(recipe, "relu", i == 1 ? name : NULL, NULL);
    }
}

static void write_decoder(nn_recipe_t *recipe, const unet_options_t *unet)
{
    char name[NAME_TEXT], from[NAME_TEXT];

    for (int d = (int)unet->depth - 1; d >= 0; d--) {
        nn_recipe_add(recipe, "upsample", NULL, NULL, "factor 2");
        snprintf(name, sizeof name, "up%d", d);
        nn_recipe_add(recipe, "conv", name, NULL, "out %lld kernel 1",
                      (long long)(unet->width << d));
        snprintf(from, sizeof from, "up%d down%d", d, d);
        snprintf(name, sizeof name, "joined%d", d);
        nn_recipe_plain(recipe, "concat", name, from);
        snprintf(name, sizeof name, "level%d", d);
        write_pair(recipe, name, NULL, unet->width << d);
    }
}

/* Check that preset [name] can halve each of the [space] edges of the input as
 * often as its depth demands. */
static err_code_t unet_check(const nn_recipe_t *recipe, const char *name,
                             const unet_options_t *unet, int space, err_t *err)
{
    err_code_t rc =
        nn_recipe_check_input(recipe, name, 1 + space,
                              space == 2 ? "[channels, height, width]"
                                         : "[channels, depth, height, width]",
                              err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 1; i <= space; i++)
        if (recipe->input[i] % (1 << unet->depth) != 0)
            return nn_fail_at(recipe->place, err,
                              "preset %s halves %s %lld times, so %s must be "
                              "multiples of %d, but one is %lld",
                              name, space == 2 ? "images" : "volumes",
                              (long long)unet->depth,
                              space == 2 ? "height and width" : "its edges",
                              1 << unet->depth, (long long)recipe->input[i]);
    return ERR_OK;
}

static err_code_t unet_write(nn_recipe_t *recipe, const char *preset,
                             const unet_options_t *unet, int space, err_t *err)
{
    char name[NAME_TEXT];
    err_code_t rc = unet_check(recipe, preset, unet, space, err);

    if (rc != ERR_OK)
        return rc;
    if (unet->mask > 0)
        nn_recipe_add(recipe, "dropout", "mask", NULL, "rate %.17g",
                      unet->mask);
    for (int d = 0; d < (int)unet->depth; d++) {
        snprintf(name, sizeof name, "down%d", d);
        write_pair(recipe, name, NULL, unet->width << d);
        nn_recipe_add(recipe, "maxpool", NULL, NULL, "kernel 2");
    }
    write_pair(recipe, "bottom", NULL, unet->width << unet->depth);
    write_decoder(recipe, unet);
    nn_recipe_add(recipe, "conv", "head", NULL, "out %lld kernel 1",
                  (long long)unet->out);
    return ERR_OK;
}

static err_code_t unet2d_write(nn_recipe_t *recipe, const void *options,
                               err_t *err)
{
    return unet_write(recipe, "unet2d", options, 2, err);
}

static err_code_t unet3d_write(nn_recipe_t *recipe, const void *options,
                               err_t *err)
{
    return unet_write(recipe, "unet3d", options, 3, err);
}

const nn_preset_t nn_preset_unet2d = {
    .name = "unet2d",
    .help = "U-Net for images (Ronneberger et al., 2015): the output is an "
            "image of the same height and width",
    .rows = unet_rows,
    .write = unet2d_write,
};

const nn_preset_t nn_preset_unet3d = {
    .name = "unet3d",
    .help = "U-Net for volumes (Cicek et al., 2016): the output is a volume of "
            "the same size",
    .rows = unet_rows,
    .write = unet3d_write,
};
