/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_body: writes a file of a checkpoint, or the part of it that one of
 * several ranks has, from front to back: from the headers that HDF5 made
 * (checkpoint_header.h) and from the memory of the tensors.
 *
 * The space of the whole file is reserved before its first byte, so that a full
 * file system is known early. Each piece of some 100 KiB is hashed right before
 * it is written, so it comes from memory once. What was written goes on its way
 * to the disk at once, so that fsync finds little left to do.
 *
 * Thread rule: one thread per file.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_BODY_H
#define CDDP_HDF5IO_CHECKPOINT_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_header.h"
#include "hdf5io/checkpoint_io.h"

/* [bytes] bytes of the file, from byte [at] on. */
typedef struct hdf5io_span {
    uint64_t at, bytes; /* bytes > 0 */
    const char *data;   /* NULL: they are in the header */
} hdf5io_span_t;

typedef struct hdf5io_body {
    const hdf5io_io_t *io;
    const char *path;
    const hdf5io_header_t *header; /* NULL: no span needs it */
    const hdf5io_span_t *spans;    /* in the order of the file */
    size_t count;
} hdf5io_body_t;

/* Create the file [path], which must not exist, and reserve its [bytes] bytes.
 * ERR_IO. */
err_code_t hdf5io_body_create(const hdf5io_io_t *io, const char *path,
                              uint64_t bytes, err_t *err);

/* Write the spans to the file, which is there, durably. [sums]: NULL, or the
 * spans are the whole file of sums->bytes bytes, and the caller has set
 * sums->block_bytes; then the rest of *sums is set on success, and the caller
 * frees sums->blocks. ERR_IO, ERR_MEMORY. Blocks until storage has all bytes,
 * and calls [alive] meanwhile. */
err_code_t hdf5io_body_write(const hdf5io_body_t *body, hdf5io_sums_t *sums,
                             err_t *err);

/* Sort [count] spans, none of which overlap. */
void hdf5io_spans_sort(hdf5io_span_t *spans, size_t count);

/* List what the header has of a file of [bytes] bytes: the gaps between [count]
 * sorted spans, and those at both ends of the file. [out] has room for count +
 * 1 spans. Returns their number. */
size_t hdf5io_spans_gaps(const hdf5io_span_t *spans, size_t count,
                         uint64_t bytes, hdf5io_span_t *out);

#endif
