/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/field.h"

static const char *const casts[] = {"auto", "float32", NULL};
static const char *const layouts[] = {"nchw", "nhwc", NULL};
static const char *const flips[] = {"none", "horizontal", "vertical", "both",
                                    NULL};

#define FIELD(member, key, kind, value, ...)                             \
    {                                                                    \
        .name = (key), .type = (kind),                                   \
        .offset = offsetof(hdf5io_field_t, member), .fallback = (value), \
        __VA_ARGS__                                                      \
    }

#define NUMBER_ROWS                                                            \
    FIELD(cast, "cast", OPT_CHOICE, "auto", .choices = casts, .free = true,    \
          .help = "float32: integers that float32 cannot hold (of more than "  \
                  "24 bits) are rounded; auto: the first such integer ends "   \
                  "the run. Used only without scale, shift, mean and std"),    \
        FIELD(scale, "scale", OPT_REAL, "1.0",                                 \
              .help = "each value is multiplied by it"),                       \
        FIELD(shift, "shift", OPT_REAL, "0.0",                                 \
              .help = "added after the scale"),                                \
        FIELD(mean, "mean", OPT_REALS, "[]",                                   \
              .help =                                                          \
                  "subtracted after scale and shift: one number, or one "      \
                  "for each channel. Channels are the first dimension of "     \
                  "samples with three dimensions or more, and the "            \
                  "columns of samples with one. Scale, shift, mean and "       \
                  "std are computed in float64, and the result is rounded "    \
                  "once"),                                                     \
        FIELD(std, "std", OPT_REALS, "[]", .min = 1e-300, .max = 1e300,        \
              .help = "each value is divided by it after the mean is "         \
                      "subtracted: one number, or one for each channel"),      \
        FIELD(stats, "stats", OPT_TEXT, "",                                    \
              .help = "a file of cddp-data stats --yaml, from which mean and " \
                      "std of this dataset are taken. A channel that does "    \
                      "not vary gets std 1"),                                  \
        FIELD(layout, "layout", OPT_CHOICE, "nchw", .choices = layouts,        \
              .help = "of the stored samples. nhwc: their last dimension "     \
                      "counts the channels; the model gets this dimension as " \
                      "the first one"),                                        \
        FIELD(one_hot, "one_hot", OPT_INT, "0", .min = 0, .max = 1 << 20,      \
              .unit = "classes",                                               \
              .help =                                                          \
                  "number of classes. Each stored number is a class, from "    \
                  "0 on (after shift), and becomes one number for each "       \
                  "class, along a new first dimension: 1 for this class, "     \
                  "0 for the others. one_hot: 0 turns it off"),                \
        FIELD(flip, "flip", OPT_CHOICE, "none", .choices = flips,              \
              .help = "in training, half of the samples are mirrored along "   \
                      "the last dimension (horizontal), along the one before " \
                      "it (vertical), or, independently, along each of them "  \
                      "(both). The choice depends on run.seed, epoch and "     \
                      "sample only, so it is the same for an input and a "     \
                      "target with the same flip, crop and pad"),              \
        FIELD(crop, "crop", OPT_INTS, "[]", .min = 1, .max = 1 << 30,          \
              .help = "height and width (one number: both are equal) of the "  \
                      "part of the last two dimensions that the model gets: "  \
                      "from a random place in training, else from the "        \
                      "middle. []: the stored size"),                          \
        FIELD(pad, "pad", OPT_INT, "0", .min = 0, .max = 1 << 30,              \
              .unit = "pixels",                                                \
              .help = "width of a border around the last two dimensions, "     \
                      "added before the crop. Its numbers count as stored "    \
                      "zeros; those of class numbers are loss.ignore_index")

const opt_row_t hdf5io_input_options[] = {
    FIELD(path, "path", OPT_TEXT, NULL,
          .help = "the HDF5 dataset that holds the inputs, samples along "
                  "dimension 0"),
    NUMBER_ROWS,
    {.name = NULL}};

const opt_row_t hdf5io_target_options[] = {
    FIELD(path, "path", OPT_TEXT, "",
          .help = "the HDF5 dataset that holds the targets, samples along "
                  "dimension 0; the loss chooses their type; with "
                  "data.sequence there is none"),
    NUMBER_ROWS,
    {.name = NULL}};
