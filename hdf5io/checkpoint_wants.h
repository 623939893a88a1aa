/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_wants: where the bytes of a checkpoint's files go in a rank's
 * tensors. It works by bytes, so chunks may begin and end within elements.
 *
 * Thread rule: one thread per rank.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_WANTS_H
#define CDDP_HDF5IO_CHECKPOINT_WANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_manifest.h"

typedef struct hdf5io_wants hdf5io_wants_t;

/* What a rank wants of a checkpoint. */
typedef struct hdf5io_wish {
    const hdf5io_manifest_t *manifest;
    const hdf5io_tensor_t *tensors; /* of this rank */
    /* [manifest->tensor_count]: index in [tensors], -1: not wanted. Shapes are
     * the same. */
    const int *wanted;
    int rank;
} hdf5io_wish_t;

/* [wish] is copied; what it points to outlives the wants. ERR_MEMORY. */
err_code_t hdf5io_wants_open(const hdf5io_wish_t *wish, hdf5io_wants_t **out,
                             err_t *err);
void hdf5io_wants_close(hdf5io_wants_t *wants); /* NULL allowed */

/* Where byte [at] of file number [file] goes on this rank; NULL: nowhere. The
 * same holds for all of the *count bytes from there on, which are consecutive
 * in memory; *count is lowered to their number, at least 1. */
void *hdf5io_wants_place(const hdf5io_wants_t *wants, int file, uint64_t at,
                         uint64_t *count);

/* Copy what is wanted of the [count] bytes from [at] on of file number [file],
 * which are at [bytes]. */
void hdf5io_wants_copy(const hdf5io_wants_t *wants, int file, uint64_t at,
                       const void *bytes, uint64_t count);

/* Does some rank want any of these bytes? The same on all ranks. */
bool hdf5io_wants_any(const hdf5io_wants_t *wants, int file, uint64_t at,
                      uint64_t count);

#endif
