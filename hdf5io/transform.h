/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * transform: what is done to a sample between file and model. Its numbers are
 * scaled and normalized in float64 with one rounding at the end, without fused
 * operations, so the bits are those of the same formula in NumPy. Its numbers
 * may change their places: channels come first, a crop is taken, the crop is
 * mirrored.
 *
 * An image has planes of lines of pixels. A pixel is a number, or with nhwc the
 * numbers of all channels.
 */
#ifndef CDDP_HDF5IO_TRANSFORM_H
#define CDDP_HDF5IO_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "hdf5io/convert.h"
#include "hdf5io/field.h"

/* The dataset that a transform is for. */
typedef struct transform_source {
    const char *file, *path; /* for error sentences */
    const char *key;         /* for error sentences: "data.input" */
    int ndim;                /* of one sample */
    const uint64_t *dims;    /* [ndim] */
} transform_source_t;

typedef struct hdf5io_transform {
    bool made;
    bool plain; /* numbers are only rounded */
    bool exact; /* and an integer that float32 cannot hold is an error */
    bool moves; /* numbers change their places */
    double scale, shift;
    double *mean, *std; /* [channels]; both NULL: none */
    int64_t channels;
    int64_t inner;   /* consecutive stored numbers of one channel */
    int64_t classes; /* one-hot; 0: no */
    /* Numbers of a stored sample, and of one as the model gets it. */
    int64_t elems, out_elems;
    /* If nothing moves: one plane of one line, and each number is a pixel. */
    int64_t planes, height, width; /* stored */
    int64_t pixel;                 /* numbers of a pixel */
    int64_t out_height, out_width, pad;
    hdf5io_flip_t flip;
} hdf5io_transform_t;

/* Find what [field] does to the samples of [source]. ERR_DATA: the samples have
 * too few dimensions, other numbers of channels, or are too small. ERR_MEMORY.
 * The caller frees *out by hdf5io_transform_free, which may be called for a
 * zeroed one. */
err_code_t hdf5io_transform_make(const hdf5io_field_t *field,
                                 const transform_source_t *source,
                                 hdf5io_transform_t *out, err_t *err);
void hdf5io_transform_free(hdf5io_transform_t *transform);

/* What the random choices depend on, beside the number of the sample. */
typedef struct hdf5io_draw {
    uint64_t seed;
    int64_t epoch;
} hdf5io_draw_t;

/* The crop of one sample: its place in the padded image, and whether it is
 * mirrored. */
typedef struct transform_crop {
    int64_t top, left;
    bool flip_lines, flip_pixels;
} transform_crop_t;

/* The crop of sample [sample]; [draw] NULL: the middle, not mirrored. Pure.
 */
transform_crop_t hdf5io_transform_crop(const hdf5io_transform_t *transform,
                                       const hdf5io_draw_t *draw,
                                       int64_t sample);

/* One line of a delivered sample: [left] pixels of border, [count] stored
 * pixels from stored pixel [from] on, [right] pixels of border; [back]: the
 * stored ones in the opposite order. */
typedef struct transform_line {
    int64_t from, left, count, right;
    bool back;
} transform_line_t;

/* Line [line] (0 .. planes * out_height - 1) of a sample with [crop]. Pure.
 */
transform_line_t hdf5io_transform_line(const hdf5io_transform_t *transform,
                                       transform_crop_t crop, int64_t line);

/* Transform one sample of real numbers, stored at [in] in [type], which may be
 * unaligned, to out[out_elems]. Not with classes. Pure. */
void hdf5io_transform_reals(const hdf5io_transform_t *transform,
                            transform_crop_t crop, convert_type_t type,
                            const void *in, float *out);

/* Append what is done to a number x, such as "(x * 2 - mean) / std, 3
 * channels"; nothing if it is plain (say). Append what is done to places, such
 * as "channels first" (moves_say); nothing if they do not move. */
void hdf5io_transform_say(const hdf5io_transform_t *transform, str_buf_t *out);
void hdf5io_transform_moves_say(const hdf5io_transform_t *transform,
                                str_buf_t *out);

#endif
