/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * convert: from stored numbers of any width and byte order to the float32 and
 * int64 of training. Contiguous data (read by pread) and chunked data (read by
 * HDF5 without its own conversion) use the same loops, so the storage layout of
 * a file does not change the result by a bit. Pure functions.
 */
#ifndef CDDP_HDF5IO_CONVERT_H
#define CDDP_HDF5IO_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum convert_kind {
    CONVERT_I8,
    CONVERT_U8,
    CONVERT_I16,
    CONVERT_U16,
    CONVERT_I32,
    CONVERT_U32,
    CONVERT_I64,
    CONVERT_U64,
    CONVERT_F32,
    CONVERT_F64,
    CONVERT_F16,  /* binary16 of IEEE 754 */
    CONVERT_BF16, /* the upper half of a float32 */
    CONVERT_KINDS
} convert_kind_t;

typedef struct convert_type {
    convert_kind_t kind;
    bool swap; /* stored in the opposite byte order */
} convert_type_t;

/* Bytes per stored number. */
size_t hdf5io_convert_bytes(convert_type_t type);

/* Is it a type of real numbers? */
bool hdf5io_convert_is_real(convert_type_t type);

/* out[i] = in[i], rounded to the nearest float or double. [in] may be
 * unaligned. */
void hdf5io_convert_floats(convert_type_t type, const void *in, size_t count,
                           float *out);
void hdf5io_convert_doubles(convert_type_t type, const void *in, size_t count,
                            double *out);

/* out[i] = in[i]. Returns [count], or the index of the first number that is not
 * an int64 (a fraction, NaN, too large). */
size_t hdf5io_convert_ints(convert_type_t type, const void *in, size_t count,
                           int64_t *out);

/* The index of the first integer that float32 cannot hold, or [count]. With a
 * real type always [count]. */
size_t hdf5io_convert_inexact(convert_type_t type, const void *in,
                              size_t count);

/* Write one stored number as text to [out] of [room] bytes; returns [out]. */
char *hdf5io_convert_format(convert_type_t type, const void *in, char *out,
                            size_t room);

#endif
