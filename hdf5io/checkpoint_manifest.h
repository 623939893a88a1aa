/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_manifest: the contents of a checkpoint, in memory and as
 * MANIFEST.json (docs/FORMATS.md). Each writing rank builds the manifest from
 * its tensors, so all ranks know the whole plan; readers parse the file. The
 * text ends with a hash of itself, so damage is detected.
 *
 * Thread rule: a plain value, not shared.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_MANIFEST_H
#define CDDP_HDF5IO_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "hdf5io/checkpoint.h"

#define MANIFEST_NAME "MANIFEST.json"
#define MANIFEST_VIEW "checkpoint.h5"
#define MANIFEST_SHARED "shared.h5"
#define MANIFEST_DIMS_MAX 6
/* Members "format" and "version" of the text (the version is 1 or 2); the text
 * ends with SELF_KEY, 16 hexadecimal digits and SELF_TAIL. */
#define MANIFEST_FORMAT "cddp-checkpoint"
#define MANIFEST_VERSION 2
#define MANIFEST_SELF_KEY " \"manifest_xxh3\": \""
#define MANIFEST_SELF_TAIL "\"\n}\n"
/* Bytes of a block: the number that cddp writes, and the least and the largest
 * number that a reader accepts. A reader needs memory for a whole block. */
#define MANIFEST_BLOCK ((uint64_t)4 << 20)
#define MANIFEST_BLOCK_LEAST ((uint64_t)64)
#define MANIFEST_BLOCK_MOST ((uint64_t)64 << 20)

typedef struct hdf5io_manifest_file {
    char *name; /* within the checkpoint's directory, without slash */
    uint64_t bytes, hash;
    bool hashed; /* [hash] is known; false: several ranks wrote the file */
    /* Hash of each block (checkpoint_blocks.h); NULL: there is no block. */
    uint64_t *blocks;
} hdf5io_manifest_file_t;

/* Elements [first, first + count) of a flat tensor are stored at byte [offset]
 * of file number [file]. */
typedef struct hdf5io_manifest_piece {
    int tensor, file;
    int64_t first, count;
    int64_t offset;
} hdf5io_manifest_piece_t;

typedef struct hdf5io_manifest_tensor {
    char *name; /* "model/conv1.weight" */
    int ndim;
    int64_t dims[MANIFEST_DIMS_MAX];
    int64_t elems;
    int piece, pieces; /* pieces [piece, piece + pieces) of the manifest */
} hdf5io_manifest_tensor_t;

typedef struct hdf5io_manifest {
    int version; /* of the text */
    /* Bytes of a block (the last one of a file may be shorter); version 1: 0 */
    uint64_t block_bytes;
    hdf5io_progress_t progress;
    int world_size;
    uint64_t config_hash, model_hash, build_hash;
    char *config_text; /* never NULL */
    char *versions;    /* "cddp 0.1.0, HDF5 1.10.8, ..." */
    char *created;     /* "2031-05-04T10:20:30Z" */
    hdf5io_manifest_file_t *files;
    int file_count;
    /* [world_size]: the file that each rank writes, alone or with others; -1:
     * none. NULL with MPI-IO, and in a manifest that was read. */
    int *file_of;
    hdf5io_manifest_tensor_t *tensors;
    int tensor_count;
    hdf5io_manifest_piece_t *pieces; /* sorted by tensor and first element */
    int piece_count;
    hdf5io_mark_t *marks; /* of the training data */
    int mark_count;
} hdf5io_manifest_t;

/*
 * Plan the files for [tensors]. The tensors that all ranks hold are
 * concatenated and divided into votes->size equal runs of elements; run r goes
 * to the file of rank r, shard-H.h5, where H is its head (config->heads), and
 * so do the parts that only rank r holds. Elements that are consecutive in a
 * tensor and in one file are one piece. If all ranks of a file have no
 * elements, there is no such file. With config->mpi each tensor is one piece in
 * shared.h5. The file of virtual datasets is the last one. Sizes, hashes and
 * offsets are still 0.
 */
err_code_t hdf5io_manifest_build(const hdf5io_checkpoint_config_t *config,
                                 const hdf5io_progress_t *progress,
                                 const hdf5io_tensor_t *tensors, int count,
                                 hdf5io_manifest_t *out, err_t *err);

/* Text of the manifest's member "versions" for this process. [more]: see
 * hdf5io_checkpoint_config_t. The caller frees it. */
char *hdf5io_manifest_versions(const char *more);

/* Name of the dataset that holds piece number [piece] in its shard: the
 * tensor's name, or "NAME@FIRST" if an earlier piece of the tensor is in the
 * same file. The caller frees it. */
char *hdf5io_manifest_piece_name(const hdf5io_manifest_t *manifest, int piece);

/* Number of elements of those [tensors] that are whole on every rank. */
int64_t hdf5io_manifest_common(const hdf5io_manifest_t *manifest,
                               const hdf5io_tensor_t *tensors);

/* Divide [count] things (elements to write, chunks or files to read) evenly
 * among [size] ranks: [rank] gets numbers *first to *last - 1. */
void hdf5io_manifest_share(int64_t count, int rank, int size, int64_t *first,
                           int64_t *last);

/* Order of two pieces (for qsort) by their place: file and offset. */
int hdf5io_piece_compare(const void *a, const void *b);

/* Does each byte of a file belong to one piece at most? Sorts a copy of all
 * pieces. True also if there is no memory for the copy. */
bool hdf5io_manifest_disjoint(const hdf5io_manifest_t *manifest);

/* Append the text of MANIFEST.json. ERR_CONFIG if a string is not UTF-8. */
err_code_t hdf5io_manifest_print(const hdf5io_manifest_t *manifest,
                                 str_buf_t *out, err_t *err);

/* Parse and check the whole text: its hash, that the pieces cover each element
 * of a tensor once, and that no two pieces share a byte of a file. ERR_DATA
 * says what is wrong, without the path. ERR_CONFIG: the text is whole, but a
 * later version of cddp wrote it, and this version cannot read it. *hash
 * becomes the hash of the text. */
err_code_t hdf5io_manifest_parse(const char *text, size_t bytes,
                                 hdf5io_manifest_t *out, uint64_t *hash,
                                 err_t *err);

/* Read and parse [directory]/MANIFEST.json. ERR_DATA and ERR_CONFIG, as above,
 * name the path; ERR_IO: storage could not be read. */
err_code_t hdf5io_manifest_load(const char *directory, hdf5io_manifest_t *out,
                                uint64_t *hash, err_t *err);

/* Free everything that [manifest] owns; a zeroed manifest is allowed. */
void hdf5io_manifest_free(hdf5io_manifest_t *manifest);

/* Write the shape as "[32, 1, 3, 3]" to [out], which is returned. */
char *hdf5io_shape_format(int ndim, const int64_t *dims, char *out,
                          size_t room);

#endif
