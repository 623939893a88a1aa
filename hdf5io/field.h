/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* field: one input or target of a sample as the run file describes it. */
#ifndef CDDP_HDF5IO_FIELD_H
#define CDDP_HDF5IO_FIELD_H

#include "base/opt.h"

/* An entry of `data.input` or `data.target`. The model gets, in float64 and
 * then rounded once to float32,
 *     (value * scale + shift - mean[channel]) / std[channel].
 * Class numbers and tokens need scale 1, a whole shift (-1 if labels start at
 * 1), and no mean or std. */
typedef struct hdf5io_field {
    char *path; /* "/spins" */
    int cast; /* inputs: index of the choice "float32"; targets: by the loss */
    double scale, shift;
    opt_reals_t mean, std; /* one number, or one for each channel; none: 0 and
                              1 */
    char *stats; /* file of `cddp-data stats` from which to take mean and std.
                    Whoever reads the run file does that: hdf5io ignores it. */
} hdf5io_field_t;

extern const opt_row_t hdf5io_input_options[];
extern const opt_row_t hdf5io_target_options[];

#endif
