/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Types of numbers, and the shape of what is converted. */
#ifndef CDDP_IMPORT_TYPE_H
#define CDDP_IMPORT_TYPE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IMPORT_DIMS_MAX = 8, IMPORT_NAME_MAX = 256 };

typedef enum import_type {
    IMPORT_INT8,
    IMPORT_UINT8,
    IMPORT_INT16,
    IMPORT_UINT16,
    IMPORT_INT32,
    IMPORT_UINT32,
    IMPORT_INT64,
    IMPORT_UINT64,
    IMPORT_FLOAT16,
    IMPORT_FLOAT32,
    IMPORT_FLOAT64,
    IMPORT_TYPES,
    IMPORT_STORED = IMPORT_TYPES /* any other: import_field_t.stored */
} import_type_t;

/* Names as in NumPy: "uint8", "float32". */
const char *import_type_name(import_type_t type);
bool import_type_parse(const char *name, import_type_t *out);

/* Bytes of one number; [type] is not IMPORT_STORED. */
size_t import_type_size(import_type_t type);

/* One dataset of the result: its name, and type and shape of one sample. */
typedef struct import_field {
    char name[IMPORT_NAME_MAX]; /* "image", "group/image": no slash before */
    import_type_t type;
    int ndim; /* 0: one number a sample */
    int64_t dims[IMPORT_DIMS_MAX];
    /* IMPORT_STORED: HDF5's type, in files and in memory (not owned), and the
     * bytes of a value. */
    hid_t stored;
    size_t item;
} import_field_t;

/* Bytes of one value of [field]. */
size_t import_field_item(const import_field_t *field);

/* Bytes of one sample of [field], which import_field_check has accepted. */
size_t import_field_bytes(const import_field_t *field);

/* ERR_DATA, without the name of the file: a dimension is not positive, or a
 * sample has more than 2^40 bytes. */
err_code_t import_field_check(const import_field_t *field, err_t *err);

/* Set field->name. ERR_USAGE: it is empty, too long, or contains anything but
 * letters, digits, '_', '-' and '.'. */
err_code_t import_field_call(import_field_t *field, const char *name,
                             err_t *err);

bool import_field_equal(const import_field_t *a, const import_field_t *b);

#endif
