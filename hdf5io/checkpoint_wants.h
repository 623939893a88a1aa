/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_wants: where the bytes of a checkpoint's files go in the tensors
 * of a rank. Positions are in bytes, since a chunk may begin and end within an
 * element.
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

/* What a rank wants to read from a checkpoint. */
typedef struct hdf5io_wish {
    const hdf5io_manifest_t *manifest;
    const hdf5io_tensor_t *tensors; /* of this rank */
    /* [manifest->tensor_count]: index in [tensors], -1: not wanted. A wanted
     * tensor has the same shape in both. */
    const int *wanted;
    int rank;
} hdf5io_wish_t;

/* [wish] is copied; what its members point to outlives *out. ERR_MEMORY. */
err_code_t hdf5io_wants_open(const hdf5io_wish_t *wish, hdf5io_wants_t **out,
                             err_t *err);
void hdf5io_wants_close(hdf5io_wants_t *wants); /* NULL allowed */

/* The address in a tensor of this rank where byte [at] of file number [file]
 * goes; NULL: this rank does not want the byte. *count is lowered, to 1 or
 * more: the *count bytes from [at] on all go there, one after the other, or
 * this rank wants none of them. */
void *hdf5io_wants_place(const hdf5io_wants_t *wants, int file, uint64_t at,
                         uint64_t *count);

/* [bytes] holds the [count] bytes from [at] on of file number [file]. Copy
 * those that this rank wants to its tensors. */
void hdf5io_wants_copy(const hdf5io_wants_t *wants, int file, uint64_t at,
                       const void *bytes, uint64_t count);

/* Does some rank want any of these bytes? The same on all ranks. */
bool hdf5io_wants_any(const hdf5io_wants_t *wants, int file, uint64_t at,
                      uint64_t count);

#endif
