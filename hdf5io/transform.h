/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * transform: what is done to the numbers of a sample between file and model.
 * Arithmetic is in float64 with one rounding at the end, without fused
 * operations, so the bits are those of the same formula in NumPy.
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
    const char *key;         /* the same: "data.input" */
    int ndim;                /* of one sample */
    const uint64_t *dims;    /* [ndim] */
} transform_source_t;

typedef struct hdf5io_transform {
    bool made;
    bool plain; /* numbers are only rounded */
    double scale, shift;
    double *mean, *std; /* [channels]; NULL: none, then of both */
    int64_t elems;      /* numbers of a stored sample */
    int64_t channels;
    int64_t inner; /* consecutive numbers of one channel */
} hdf5io_transform_t;

/* Find what [field] does to the samples of [source]. ERR_DATA: mean or std
 * have numbers for more or fewer channels. ERR_MEMORY. The caller frees *out by
 * hdf5io_transform_free, which may be called for a zeroed one. */
err_code_t hdf5io_transform_make(const hdf5io_field_t *field,
                                 const transform_source_t *source,
                                 hdf5io_transform_t *out, err_t *err);
void hdf5io_transform_free(hdf5io_transform_t *transform);

/* Transform one sample of [elems] numbers, stored at [in] in [type], which may
 * be unaligned, to out[elems]. Pure. */
void hdf5io_transform_reals(const hdf5io_transform_t *transform,
                            convert_type_t type, const void *in, float *out);

/* Append what is done to a number x, such as "(x * 2 - mean) / std, 3
 * channels". Nothing if it is plain. */
void hdf5io_transform_say(const hdf5io_transform_t *transform, str_buf_t *out);

#endif
