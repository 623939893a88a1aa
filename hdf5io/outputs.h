/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * outputs: an HDF5 file with what a model says of every sample, one row for
 * each (docs/FORMATS.md, "Predictions"). One process creates the file as a
 * draft, with the space for all rows; then any number of processes write rows,
 * each with a descriptor of its own; at last the draft gets its name. The bytes
 * of the file depend on nothing but the rows.
 *
 * Unless stated otherwise, errors are ERR_IO, and calls are local.
 */
#ifndef CDDP_HDF5IO_OUTPUTS_H
#define CDDP_HDF5IO_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define HDF5IO_OUTPUT_NAME 96
#define HDF5IO_OUTPUT_DIMS 8

/* A dataset [samples, dims]. */
typedef struct hdf5io_output {
    char name[HDF5IO_OUTPUT_NAME];
    bool whole; /* int64; otherwise float32 */
    int ndim;   /* of one row */
    int64_t dims[HDF5IO_OUTPUT_DIMS];
    int64_t offset; /* of the data in the file, in bytes */
} hdf5io_output_t;

/* Bytes of one row. */
int64_t hdf5io_output_bytes(const hdf5io_output_t *output);

/* Create the file [draft], which must not exist, with the [count] datasets
 * [outputs] of [samples] rows, and enter their offsets. After an error the file
 * is removed. */
err_code_t hdf5io_outputs_create(const char *draft, int64_t samples,
                                 hdf5io_output_t *outputs, int count,
                                 err_t *err);

/* Open [draft] to write rows. The caller closes *fd. */
err_code_t hdf5io_outputs_open(const char *draft, int *fd, err_t *err);

/* Where rows are written. [draft] is used in messages. */
typedef struct hdf5io_outputs_file {
    const char *draft;
    int fd;
} hdf5io_outputs_file_t;

/* Write [rows] rows from number [row] on. Any thread may call it. */
err_code_t hdf5io_outputs_write(const hdf5io_outputs_file_t *file,
                                const hdf5io_output_t *output, int64_t row,
                                int64_t rows, const void *data, err_t *err);

/* Wait until what was written by this descriptor is durable. */
err_code_t hdf5io_outputs_sync(const hdf5io_outputs_file_t *file, err_t *err);

/* Name the draft [path], durably. */
err_code_t hdf5io_outputs_publish(const char *draft, const char *path,
                                  err_t *err);

#endif
