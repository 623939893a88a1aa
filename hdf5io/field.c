/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/field.h"

static const char *const casts[] = {"float32", NULL};

#define FIELD(member, key, kind, value, ...)                             \
    {                                                                    \
        .name = (key), .type = (kind),                                   \
        .offset = offsetof(hdf5io_field_t, member), .fallback = (value), \
        __VA_ARGS__                                                      \
    }

#define NUMBER_ROWS                                                            \
    FIELD(scale, "scale", OPT_REAL, "1.0",                                     \
          .help = "each value is multiplied by it"),                           \
        FIELD(shift, "shift", OPT_REAL, "0.0",                                 \
              .help = "added after the scale"),                                \
        FIELD(mean, "mean", OPT_REALS, "[]",                                   \
              .help = "subtracted after scale and shift: one number, or one "  \
                      "for each channel. Channels are the first dimension of " \
                      "samples with three dimensions or more, and the "        \
                      "columns of samples with one. All of this is computed "  \
                      "in float64 and rounded once"),                          \
        FIELD(std, "std", OPT_REALS, "[]", .min = 1e-300, .max = 1e300,        \
              .help = "what is left after the mean is divided by it: one "     \
                      "number, or one for each channel"),                      \
        FIELD(stats, "stats", OPT_TEXT, "",                                    \
              .help = "a file of cddp-data stats --yaml, from which mean and " \
                      "std of this dataset are taken. A channel that does "    \
                      "not vary gets std 1")

const opt_row_t hdf5io_input_options[] = {
    FIELD(path, "path", OPT_TEXT, NULL,
          .help = "the HDF5 dataset that holds the inputs, samples along "
                  "dimension 0"),
    FIELD(cast, "cast", OPT_CHOICE, "float32", .choices = casts,
          .help = "the type that the model receives"),
    NUMBER_ROWS,
    {.name = NULL}};

const opt_row_t hdf5io_target_options[] = {
    FIELD(path, "path", OPT_TEXT, "",
          .help = "the HDF5 dataset that holds the targets, samples along "
                  "dimension 0; the loss chooses their type; with "
                  "data.sequence there is none"),
    NUMBER_ROWS,
    {.name = NULL}};
