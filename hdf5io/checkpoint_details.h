/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_details: what the ranks tell each other about the files that they
 * write, for the manifest: first the place of each piece, then the hashes.
 * Several ranks may write a file together (config->heads). The lowest of these
 * ranks is the head of the file.
 *
 * Thread rule: one thread.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_DETAILS_H
#define CDDP_HDF5IO_CHECKPOINT_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_manifest.h"

/* Who writes which file of a manifest, and which pieces are in it. */
typedef struct hdf5io_details {
    const hdf5io_votes_t *votes;
    hdf5io_manifest_t *manifest;
    /* [file_count + 1]: the pieces of file f are
     * order[pieces[f]] ... order[pieces[f + 1] - 1], and its ranks
     * ranks[writers[f]] ... ranks[writers[f + 1] - 1], both in order. */
    int *pieces, *writers;
    int *order; /* [piece_count] */
    int *ranks; /* [world_size] */
} hdf5io_details_t;

/* [manifest], of a save without MPI-IO, and [votes] outlive *out.
 * hdf5io_details_close frees what is inside. ERR_MEMORY. Local. */
err_code_t hdf5io_details_open(hdf5io_manifest_t *manifest,
                               const hdf5io_votes_t *votes,
                               hdf5io_details_t *out, err_t *err);
void hdf5io_details_close(hdf5io_details_t *details);

/* The file that this rank writes, alone or with others; -1: none. */
int hdf5io_details_file(const hdf5io_details_t *details);
/* Number of the ranks that write [file], and the head of [file]. */
int hdf5io_details_writers(const hdf5io_details_t *details, int file);
int hdf5io_details_head(const hdf5io_details_t *details, int file);

/* This rank hashes blocks *first to *last - 1 of its file. The blocks are
 * divided evenly among the ranks that write the file. The size of the file is
 * known. */
void hdf5io_details_blocks(const hdf5io_details_t *details, size_t *first,
                           size_t *last);

/* Each head tells all ranks the size of its file and the offsets of the pieces
 * in this file. *agreed: see hdf5io_vote. Collective. */
err_code_t hdf5io_details_places(hdf5io_details_t *details, bool *agreed,
                                 err_t *err);

/* Each rank tells all ranks the hashes of its blocks. If a rank writes a file
 * alone, it also tells the hash of the file. Collective. */
err_code_t hdf5io_details_hashes(hdf5io_details_t *details, bool *agreed,
                                 err_t *err);

#endif
