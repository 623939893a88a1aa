/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* field: one input or target of a sample as the run file describes it. */
#ifndef CDDP_HDF5IO_FIELD_H
#define CDDP_HDF5IO_FIELD_H

#include "base/opt.h"

typedef enum hdf5io_cast {
    HDF5IO_CAST_AUTO,   /* an integer that float32 cannot hold is an error */
    HDF5IO_CAST_FLOAT32 /* it is rounded */
} hdf5io_cast_t;

typedef enum hdf5io_layout { HDF5IO_NCHW, HDF5IO_NHWC } hdf5io_layout_t;

typedef enum hdf5io_flip { /* a bit for each direction */
                           HDF5IO_FLIP_NONE,
                           HDF5IO_FLIP_HORIZONTAL,
                           HDF5IO_FLIP_VERTICAL,
                           HDF5IO_FLIP_BOTH
} hdf5io_flip_t;

/* An entry of `data.input` or `data.target`. The model gets, in float64 and
 * then rounded once to float32,
 *     (value * scale + shift - mean[channel]) / std[channel].
 * Class numbers and tokens need scale 1, a whole shift (-1 if labels start at
 * 1), and no mean or std. */
typedef struct hdf5io_field {
    char *path; /* "/spins" */
    int cast;   /* hdf5io_cast_t */
    double scale, shift;
    opt_reals_t mean, std; /* one number, or one for each channel; none: 0 and
                              1 */
    char *stats; /* file of `cddp-data stats` from which to take mean and std.
                    The reader of the run file does that; hdf5io ignores
                    this member. */
    int layout;  /* hdf5io_layout_t: of the stored samples */
    int64_t one_hot; /* not 0: number of classes of the stored class numbers */
    int flip;        /* hdf5io_flip_t */
    opt_ints_t crop; /* height and width, or one number for both; none: all */
    int64_t pad;     /* pixels added on each side before the crop */
} hdf5io_field_t;

extern const opt_row_t hdf5io_input_options[];
extern const opt_row_t hdf5io_target_options[];

#endif
