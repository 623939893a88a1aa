/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* chunk_files: files with chunks and filters of all kinds, and the same data in
 * contiguous storage. */
#ifndef CDDP_TESTS_HDF5IO_CHUNK_FILES_H
#define CDDP_TESTS_HDF5IO_CHUNK_FILES_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "hdf5io/dataset.h"

/* Bits of filters, which are applied in this order. */
enum {
    CHUNK_SHUFFLE = 1,
    CHUNK_DEFLATE = 2,
    CHUNK_LZF = 4,
    CHUNK_FLETCHER32 = 8,
    CHUNK_FILTERS = 16
};

/* Dataset /x; /y is contiguous and holds the number of each row. */
typedef struct chunk_file {
    int ndim;
    hsize_t dims[5], chunk[5]; /* rows first; chunk[0] = 0: contiguous */
    hid_t type;                /* stored */
    unsigned filters;          /* bits of the enumeration above */
    hsize_t user_block;
    void (*more)(hid_t create); /* further settings; NULL: none */
} chunk_file_t;

/* For chunk_file_t.more: adds a shuffle. With CHUNK_SHUFFLE, only HDF5 can undo
 * the filters then. */
void chunk_shuffle_again(hid_t create);

/* Write [file] to directory/name. The value of number i is chunk_value(i). */
void chunk_write(const char *directory, const char *name,
                 const chunk_file_t *file);
double chunk_value(int64_t i);

/* Open /x and /y of directory/name with this bound (0: the default), and with
 * or without reading for the digest. */
hdf5io_dataset_t *chunk_open(const char *directory, const char *name,
                             const chunk_file_t *file, size_t cache_bytes,
                             bool digest);

/* Read all rows, in jumps of [jump] (no divisor of the rows), [batch] at a
 * time; returns the number of values with other bits than those that contiguous
 * storage gives. */
int64_t chunk_wrong(hdf5io_dataset_t *dataset, const chunk_file_t *file,
                    int64_t jump, int64_t batch);

/* Make lzf known to HDF5, so that it writes it; and unknown. */
void chunk_lzf_register(void);
void chunk_lzf_forget(void);

#endif
