/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_sums: XXH3 hashes of the content of a file: of all its bytes, and
 * of each of its blocks (docs/FORMATS.md).
 *
 * Thread rule: one thread per summing.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_SUMS_H
#define CDDP_HDF5IO_CHECKPOINT_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Hashes of the content of a file. */
typedef struct hdf5io_sums {
    uint64_t bytes, hash; /* of the whole file */
    /* The hash of each block of [block_bytes] bytes, to be freed with mem_free;
     * NULL if [block_bytes] or [bytes] is 0. */
    uint64_t block_bytes;
    uint64_t *blocks;
} hdf5io_sums_t;

/* Number of blocks of [bytes] bytes; 0 if [bytes] or [block_bytes] is 0. */
size_t hdf5io_sums_count(uint64_t bytes, uint64_t block_bytes);

/* Computes the sums of a file from its bytes, in their order. */
typedef struct hdf5io_summing hdf5io_summing_t;

/* Begin a file of [bytes] bytes with blocks of [block_bytes] bytes (0: no
 * blocks). ERR_MEMORY. */
err_code_t hdf5io_summing_open(uint64_t bytes, uint64_t block_bytes,
                               hdf5io_summing_t **out, err_t *err);
void hdf5io_summing_close(hdf5io_summing_t *summing); /* NULL allowed */

/* Add the next [count] bytes of the file. In all, no more bytes are added than
 * the file has. */
void hdf5io_summing_add(hdf5io_summing_t *summing, const void *bytes,
                        size_t count);

/* After all bytes were added: set *sums. The caller frees sums->blocks. Called
 * once. */
void hdf5io_summing_end(hdf5io_summing_t *summing, hdf5io_sums_t *sums);

#endif
