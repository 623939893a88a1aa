/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_labels.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "hdf5io/h5.h"
#include "import/copy.h"

err_code_t cmd_labels_check(const import_source_t *source, int field,
                            err_t *err)
{
    const import_field_t *of = &source->fields[field];
    H5T_class_t class;

    h5_lock();
    class = H5Tget_class(of->stored);
    h5_unlock();
    if ((class == H5T_INTEGER || class == H5T_ENUM || class == H5T_FLOAT) &&
        of->item <= sizeof(int64_t) && import_field_bytes(of) == of->item)
        return ERR_OK;
    return err_set(
        err, ERR_DATA,
        "dataset /%s is no label: expected one whole number a sample",
        of->name);
}

/* The class in the bits of a double. */
static int64_t whole(int64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof number);
    return number >= -CMD_LABELS_MAX && number <= CMD_LABELS_MAX &&
                   number == floor(number)
               ? (int64_t)number
               : CMD_LABELS_NONE;
}

err_code_t cmd_labels_get(const import_source_t *source, int field,
                          int64_t rows, const void *data, int64_t *out,
                          err_t *err)
{
    const import_field_t *of = &source->fields[field];
    bool real;
    hid_t type;
    err_code_t rc = ERR_OK;

    /* In place: values of at most 8 bytes become values of 8 bytes. */
    memcpy(out, data, (size_t)rows * of->item);
    h5_lock();
    real = H5Tget_class(of->stored) == H5T_FLOAT;
    type = H5Tget_class(of->stored) == H5T_ENUM ? H5Tget_super(of->stored)
                                                : H5Tcopy(of->stored);
    if (type < 0 ||
        H5Tconvert(type, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64,
                   (size_t)rows, out, NULL, H5P_DEFAULT) < 0)
        rc = h5_err_set(err, ERR_DATA, "the labels of /%s cannot be read",
                        of->name);
    if (type >= 0)
        H5Tclose(type);
    h5_unlock();
    for (int64_t i = 0; i < rows && real && rc == ERR_OK; i++)
        out[i] = whole(out[i]);
    return rc;
}

/* Count the labels of a slab, the first of which is sample [first]. */
static err_code_t slab_count(const import_source_t *source,
                             const int64_t *labels, int64_t first, int64_t rows,
                             int64_t *counts, int *classes, err_t *err)
{
    for (int64_t i = 0; i < rows; i++) {
        if (labels[i] == CMD_LABELS_NONE)
            return err_set(
                err, ERR_DATA,
                "sample %lld (of all, from 0) has no whole number in "
                "/%s: expected a class from 0 to %d",
                (long long)(first + i), source->fields[0].name,
                CMD_LABELS_MAX - 1);
        if (labels[i] < 0 || labels[i] >= CMD_LABELS_MAX)
            return err_set(err, ERR_DATA,
                           "sample %lld (of all, from 0) has %lld in /%s: "
                           "expected a class from 0 to %d",
                           (long long)(first + i), (long long)labels[i],
                           source->fields[0].name, CMD_LABELS_MAX - 1);
        counts[labels[i]]++;
        if (labels[i] >= *classes)
            *classes = (int)labels[i] + 1;
    }
    return ERR_OK;
}

err_code_t cmd_labels_count(import_source_t *source, int64_t *counts,
                            int *classes, err_t *err)
{
    const int64_t slab = import_copy_rows(source);
    int64_t *labels = NULL;
    void *data = NULL;
    err_code_t rc = cmd_labels_check(source, 0, err);

    *classes = 0;
    if (rc == ERR_OK)
        rc = mem_new(int64_t, (size_t)slab, "labels", &labels, err);
    if (rc == ERR_OK)
        rc = mem_alloc((size_t)slab * source->fields[0].item, "labels", &data,
                       err);
    for (int64_t done = 0; done < source->rows && rc == ERR_OK;) {
        const int64_t left = source->rows - done;
        const int64_t rows = slab < left ? slab : left;

        rc = source->kind->read(source, rows, &data, err);
        if (rc == ERR_OK)
            rc = cmd_labels_get(source, 0, rows, data, labels, err);
        if (rc == ERR_OK)
            rc = slab_count(source, labels, done, rows, counts, classes, err);
        done += rows;
    }
    mem_free(labels);
    mem_free(data);
    return rc;
}
