/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_cut: which rank reads which bytes of a checkpoint. All its files
 * are cut into chunks. In version 2 of the manifest a chunk is a block, which
 * has a hash. A rank reads consecutive chunks, about as many as any other rank,
 * so it opens few files. In version 1 only whole files have a hash: then one
 * rank reads all chunks of a file. All ranks compute the same result.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_CUT_H
#define CDDP_HDF5IO_CHECKPOINT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_manifest.h"

/* [bytes] bytes from [first] on of file number [file]; an empty file has one
 * empty chunk. */
typedef struct hdf5io_chunk {
    int file;
    uint64_t first, bytes;
    uint64_t hash; /* of the block, or in version 1 of the whole file */
    bool begins;   /* it is the first chunk of this block or file */
    bool ends;     /* it is the last chunk of this block or file */
} hdf5io_chunk_t;

/* Chunks are numbered in the order of the files. */
typedef struct hdf5io_cut {
    const hdf5io_manifest_t *manifest;
    uint64_t each; /* bytes of a chunk; the last one of a file may be shorter */
    size_t *files; /* [file_count + 1]: the first chunk of each file */
    size_t *ranks; /* [ranks + 1]: the first chunk that each rank reads */
    uint64_t most; /* bytes of the largest chunk */
    size_t turns;  /* the most chunks of one rank */
} hdf5io_cut_t;

/* Cut the files of [manifest], which outlives the cut, for [ranks] ranks.
 * [readers] (or NULL): the rank that reads each file, in ascending order.
 * hdf5io_cut_close frees what is inside. ERR_MEMORY. */
err_code_t hdf5io_cut_open(const hdf5io_manifest_t *manifest, int ranks,
                           const int *readers, hdf5io_cut_t *out, err_t *err);
void hdf5io_cut_close(hdf5io_cut_t *cut);

/* The chunk that [rank] reads in turn number [turn]; false: none. */
bool hdf5io_cut_chunk(const hdf5io_cut_t *cut, int rank, size_t turn,
                      hdf5io_chunk_t *out);

#endif
