/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_blocks: version 2 of a manifest has a hash of each block of each
 * file. Part of checkpoint_manifest. */
#ifndef CDDP_HDF5IO_CHECKPOINT_BLOCKS_H
#define CDDP_HDF5IO_CHECKPOINT_BLOCKS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "hdf5io/checkpoint_manifest.h"

/* Number of blocks of file number [file]; 0 if the file is empty, or in version
 * 1. */
size_t hdf5io_blocks_count(const hdf5io_manifest_t *manifest, int file);

/* Allocate the hashes of file number [file], all 0, unless they exist.
 * The size of the file is known. ERR_MEMORY. */
err_code_t hdf5io_blocks_open(hdf5io_manifest_t *manifest, int file,
                              err_t *err);

/* Append the member "block_bytes" of the manifest, and the member "blocks" of
 * file number [file]. In version 1 nothing is appended. */
void hdf5io_blocks_size_print(const hdf5io_manifest_t *manifest,
                              str_buf_t *out);
void hdf5io_blocks_print(const hdf5io_manifest_t *manifest, int file,
                         str_buf_t *out);

/* Read these members. In version 1 nothing is read. ERR_DATA, ERR_MEMORY. */
err_code_t hdf5io_blocks_size_parse(json_t *root, hdf5io_manifest_t *out,
                                    err_t *err);
err_code_t hdf5io_blocks_parse(json_t *item, hdf5io_manifest_t *out, int file,
                               err_t *err);

#endif
