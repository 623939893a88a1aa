/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The layers without parameters that change the spatial sizes of [channels,
 * ...]: pad and upsample. */
#include "nn/registry.h"

#define SIZE_LIMIT (1 << 24)

/* ---- pad ----------------------------------------------------------------- */

typedef struct pad_options {
    opt_ints_t before, after;
    int mode;
    double value;
} pad_options_t;

_Static_assert(sizeof(pad_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const char *const pad_modes[] = {"constant", "reflect", NULL};

static const opt_row_t pad_rows[] = {
    {.name = "before",
     .type = OPT_INTS,
     .offset = offsetof(pad_options_t, before),
     .min = 0,
     .max = SIZE_LIMIT,
     .help = "Number of elements added at the beginning of each dimension "
             "after the channels: one number, or one for each dimension"},
    {.name = "after",
     .type = OPT_INTS,
     .offset = offsetof(pad_options_t, after),
     .fallback = "-1",
     .min = -1,
     .max = SIZE_LIMIT,
     .help = "Number of elements added at the end; -1: as many as before"},
    {.name = "mode",
     .type = OPT_CHOICE,
     .offset = offsetof(pad_options_t, mode),
     .fallback = "constant",
     .choices = pad_modes,
     .help = "constant: all added elements have one value; reflect: they are "
             "the input mirrored at its edge elements"},
    {.name = "value",
     .type = OPT_REAL,
     .offset = offsetof(pad_options_t, value),
     .fallback = "0",
     .min = -1e30,
     .max = 1e30,
     .help = "The constant"},
    {.name = NULL},
};

static err_code_t pad_configure(nn_layer_t *layer, const void *options,
                                const tree_t *tree, err_t *err)
{
    const pad_options_t *options_pad = options;
    op_pad_t *pad = &layer->config.pad;
    err_code_t rc = nn_space(&options_pad->before, &layer->config.in, tree,
                             "before", pad->before, err);

    if (rc == ERR_OK)
        rc = nn_space(&options_pad->after, &layer->config.in, tree, "after",
                      pad->after, err);
    for (int i = 0; i < OP_SPACE_MAX; i++)
        if (pad->after[i] < 0)
            pad->after[i] = pad->before[i];
    pad->reflect = options_pad->mode == 1;
    pad->value = options_pad->value;
    return rc;
}

const nn_kind_t nn_kind_pad = {
    .name = "pad",
    .op = OP_PAD,
    .help = "Elements are added on both sides of the 1 to 3 dimensions after "
            "the channels",
    .rows = pad_rows,
    .configure = pad_configure,
};

/* ---- upsample ------------------------------------------------------------ */

typedef struct upsample_options {
    opt_ints_t factor;
    int mode;
} upsample_options_t;

_Static_assert(sizeof(upsample_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const char *const upsample_modes[] = {"nearest", "linear", NULL};

static const opt_row_t upsample_rows[] = {
    {.name = "factor",
     .type = OPT_INTS,
     .offset = offsetof(upsample_options_t, factor),
     .fallback = "2",
     .min = 1,
     .max = 1024,
     .help = "Factor by which a size grows: one number, or one for each "
             "dimension after the channels"},
    {.name = "mode",
     .type = OPT_CHOICE,
     .offset = offsetof(upsample_options_t, mode),
     .fallback = "nearest",
     .choices = upsample_modes,
     .help = "nearest: each element is repeated; linear: linear interpolation "
             "(bilinear or trilinear; PyTorch's align_corners=False)"},
    {.name = NULL},
};

static err_code_t upsample_configure(nn_layer_t *layer, const void *options,
                                     const tree_t *tree, err_t *err)
{
    const upsample_options_t *upsample = options;
    op_view_t *view = &layer->config.view;

    if (upsample->mode == 1)
        layer->config.kind = OP_UPSAMPLE_LINEAR;
    view->ndim = layer->config.in.ndim - 2;
    return nn_space(&upsample->factor, &layer->config.in, tree, "factor",
                    view->dims, err);
}

const nn_kind_t nn_kind_upsample = {
    .name = "upsample",
    .op = OP_UPSAMPLE,
    .help = "Each dimension after the channels grows by a factor: elements are "
            "repeated, or interpolated linearly",
    .rows = upsample_rows,
    .configure = upsample_configure,
};
