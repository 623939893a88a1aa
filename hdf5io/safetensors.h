/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * safetensors: files of named tensors, by which models come from and go to
 * other programs. A file begins with the length of a JSON map (8 bytes, little
 * endian). Then follows the map, which has type, shape and byte range of each
 * tensor, and then the bytes of all tensors, without holes.
 *
 * Nothing in a file is trusted: before a tensor is read, the whole map was
 * checked against the size of the file.
 *
 * Thread rule: a file that is open is only read; any thread may use it.
 */
#ifndef CDDP_HDF5IO_SAFETENSORS_H
#define CDDP_HDF5IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"

/* Dimensions of a tensor, and bytes of a map (as in other readers). */
#define HDF5IO_SAFE_DIMS_MAX 8
#define HDF5IO_SAFE_MAP_MAX (100 * 1000 * 1000)

/* type, its name in a file, bytes of an element */
#define HDF5IO_SAFE_MAP(X)   \
    X(F32, "F32", 4)         \
    X(F64, "F64", 8)         \
    X(I32, "I32", 4)         \
    X(I64, "I64", 8)         \
    X(BOOL, "BOOL", 1)       \
    X(U8, "U8", 1)           \
    X(I8, "I8", 1)           \
    X(U16, "U16", 2)         \
    X(I16, "I16", 2)         \
    X(U32, "U32", 4)         \
    X(U64, "U64", 8)         \
    X(F16, "F16", 2)         \
    X(BF16, "BF16", 2)       \
    X(F8_E4M3, "F8_E4M3", 1) \
    X(F8_E5M2, "F8_E5M2", 1) \
    X(F8_E8M0, "F8_E8M0", 1) \
    X(C64, "C64", 8)

typedef enum hdf5io_safe_type {
#define HDF5IO_SAFE_ENUM(type, name, bytes) HDF5IO_SAFE_##type,
    HDF5IO_SAFE_MAP(HDF5IO_SAFE_ENUM)
#undef HDF5IO_SAFE_ENUM
        HDF5IO_SAFE_TYPES
} hdf5io_safe_type_t;

/* Name of [type] in a file, and bytes of an element. */
const char *hdf5io_safe_type_name(hdf5io_safe_type_t type);
int hdf5io_safe_type_bytes(hdf5io_safe_type_t type);

/* One tensor of a file. */
typedef struct hdf5io_safe_tensor {
    const char *name;
    hdf5io_safe_type_t type;
    int ndim; /* 0: one number */
    int64_t dims[HDF5IO_SAFE_DIMS_MAX];
    int64_t elems;          /* filled by a reader */
    uint64_t offset, bytes; /* filled by a reader; offset after the map */
} hdf5io_safe_tensor_t;

/* ---- reading ------------------------------------------------------------- */

/* The map of a file. */
typedef struct hdf5io_safe {
    hdf5io_safe_tensor_t *tensors; /* [count], in the order of their bytes */
    int count;
    char *path; /* NULL: it was parsed only */
    int fd;
    uint64_t begin; /* of the tensors, in bytes of the file */
} hdf5io_safe_t;

/* Open [path], and read and check its map. ERR_DATA names what is wrong with
 * the file; ERR_IO: it cannot be read; ERR_MEMORY. hdf5io_safe_close also
 * closes a zeroed one. Blocks; local. */
err_code_t hdf5io_safe_open(const char *path, hdf5io_safe_t *out, err_t *err);
void hdf5io_safe_close(hdf5io_safe_t *file);

/* The index of the tensor called [name], -1: there is none. */
int hdf5io_safe_find(const hdf5io_safe_t *file, const char *name);

/* Read tensor [index], of type F32, to [out], which has room for its elements.
 * ERR_DATA: it is of another type, or the file was cut off meanwhile; ERR_IO.
 * Blocks; local. */
err_code_t hdf5io_safe_read(const hdf5io_safe_t *file, int index, float *out,
                            err_t *err);

/* Bytes of the map of a file with [bytes] bytes, of which [head] has the first
 * 8 (fewer, if the file is shorter). ERR_DATA. */
err_code_t hdf5io_safe_length(const void *head, uint64_t bytes,
                              uint64_t *length, err_t *err);

/* Parse the map [text] of [length] bytes, which [bytes] bytes of tensors
 * follow. ERR_DATA, ERR_MEMORY; without the path. */
err_code_t hdf5io_safe_parse(const char *text, size_t length, uint64_t bytes,
                             hdf5io_safe_t *out, err_t *err);

/* ---- writing ------------------------------------------------------------- */

/* Point *data to the bytes of tensor [index]; valid until the next call. */
typedef err_code_t hdf5io_safe_fetch_t(void *context, int index,
                                       const void **data, err_t *err);

/* The tensors of a file that is to be written. Names differ. */
typedef struct hdf5io_safe_plan {
    const hdf5io_safe_tensor_t *tensors; /* [count] */
    int count;
    hdf5io_safe_fetch_t *fetch; /* called once for each tensor, in order */
    void *context;
} hdf5io_safe_plan_t;

/* Write the tensors to [path], which appears complete or not at all, and is on
 * the disk then (file_publish_fill). ERR_CONFIG: a name is not UTF-8 or appears
 * twice; ERR_IO; errors of fetch. Blocks; local. */
err_code_t hdf5io_safe_write(const char *path, file_replace_t replace,
                             const hdf5io_safe_plan_t *plan, err_t *err);

#endif
