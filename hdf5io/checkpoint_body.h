/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_body: writes a file of a checkpoint from its first byte to its
 * last. The bytes come from the headers that HDF5 made (checkpoint_header.h)
 * and from the memory of the tensors. If several ranks write the file, each
 * rank writes its own bytes.
 *
 * The space of the whole file is reserved before its first byte, so that a lack
 * of space is known early. Pieces of 256 KiB are hashed right before they are
 * written, so their bytes are read from memory only once. The write-back to the
 * disk begins long before fsync, so that fsync takes little time.
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

/* Write the spans durably to the file, which exists. [sums] may be NULL. If it
 * is not, the spans are the whole file, the caller has set sums->bytes and
 * sums->block_bytes, the other members are set on success, and the caller frees
 * sums->blocks. ERR_IO, ERR_MEMORY. Blocks until storage has all bytes, and
 * calls [alive] meanwhile. */
err_code_t hdf5io_body_write(const hdf5io_body_t *body, hdf5io_sums_t *sums,
                             err_t *err);

/* Sort [count] spans, none of which overlap. */
void hdf5io_spans_sort(hdf5io_span_t *spans, size_t count);

/* List the bytes of a file of [bytes] bytes that are in the header: those
 * between [count] sorted spans, before the first span, and after the last one.
 * [out] has room for count + 1 spans. Returns their number. */
size_t hdf5io_spans_gaps(const hdf5io_span_t *spans, size_t count,
                         uint64_t bytes, hdf5io_span_t *out);

#endif
