/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_manifest: what a checkpoint consists of, in memory and as
 * MANIFEST.json (docs/FORMATS.md). Writers build one from their tensors, so
 * that every rank knows the whole plan; readers parse one. It ends with a hash
 * of its own text, so a damaged manifest is told from a good one.
 *
 * Thread rule: a value, no sharing.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_MANIFEST_H
#define CDDP_HDF5IO_CHECKPOINT_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "hdf5io/checkpoint.h"

#define MANIFEST_NAME "MANIFEST.json"
#define MANIFEST_VIEW "checkpoint.h5"
#define MANIFEST_SHARED "shared.h5"
#define MANIFEST_DIMS_MAX 6
/* "format" and "version" of the text, and how it ends: KEY, 16 digits, TAIL. */
#define MANIFEST_FORMAT "cddp-checkpoint"
#define MANIFEST_VERSION 1
#define MANIFEST_SELF_KEY " \"manifest_xxh3\": \""
#define MANIFEST_SELF_TAIL "\"\n}\n"

typedef struct hdf5io_manifest_file {
    char *name; /* in the checkpoint's directory, no slash */
    uint64_t bytes, hash;
} hdf5io_manifest_file_t;

/* [count] elements of the flat tensor from [first] on lie at byte [offset] of
 * file number [file]. */
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
    int piece, pieces; /* its pieces: [piece, piece + pieces) */
} hdf5io_manifest_tensor_t;

typedef struct hdf5io_manifest {
    hdf5io_progress_t progress;
    int world_size;
    uint64_t config_hash, model_hash, build_hash;
    char *config_text; /* never NULL */
    char *versions;    /* "cddp 0.1.0, HDF5 1.10.8, ..." */
    char *created;     /* "2031-05-04T10:20:30Z" */
    hdf5io_manifest_file_t *files;
    int file_count;
    hdf5io_manifest_tensor_t *tensors;
    int tensor_count;
    hdf5io_manifest_piece_t *pieces; /* by tensor, then by first element */
    int piece_count;
    hdf5io_mark_t *marks; /* of the data */
    int mark_count;
} hdf5io_manifest_t;

/*
 * Plan the files of [tensors]: those that are whole on all ranks, flat and one
 * after the other, are cut into votes->size equal runs of elements; run r goes
 * to shard-r.h5, as do the parts that rank r holds (a rank without elements has
 * no file). With config->mpi: one piece a tensor, all in shared.h5. The view is
 * the last file. Sizes, hashes and offsets are 0 yet.
 */
err_code_t hdf5io_manifest_build(const hdf5io_checkpoint_config_t *config,
                                 const hdf5io_progress_t *progress,
                                 const hdf5io_tensor_t *tensors, int count,
                                 hdf5io_manifest_t *out, err_t *err);

/* What such a manifest says of versions in this process; [more]: see
 * hdf5io_checkpoint_config_t. free() it. */
char *hdf5io_manifest_versions(const char *more);

/* The file that [rank] writes as a shard, -1: none. */
int hdf5io_manifest_file_of(const hdf5io_manifest_t *manifest, int rank);

/* The dataset of piece number [piece] in its shard: the tensor's name, and for
 * all but the first of several in one file "NAME@FIRST"; free() it. */
char *hdf5io_manifest_piece_name(const hdf5io_manifest_t *manifest, int piece);

/* Elements of [tensors] that are whole on every rank. */
int64_t hdf5io_manifest_common(const hdf5io_manifest_t *manifest,
                               const hdf5io_tensor_t *tensors);

/* The elements [*first, *last) of the concatenated tensors that [rank] of
 * [size] writes. */
void hdf5io_manifest_share(int64_t elems, int rank, int size, int64_t *first,
                           int64_t *last);

/* Append MANIFEST.json. ERR_CONFIG if a text is not UTF-8. */
err_code_t hdf5io_manifest_print(const hdf5io_manifest_t *manifest,
                                 str_buf_t *out, err_t *err);

/* Parse and check everything: hash of the text, ranges that cover each tensor
 * once. ERR_DATA says what is wrong, without the path. *hash is that of the
 * text. */
err_code_t hdf5io_manifest_parse(const char *text, size_t bytes,
                                 hdf5io_manifest_t *out, uint64_t *hash,
                                 err_t *err);

/* Read and parse [directory]/MANIFEST.json; ERR_DATA names the path, ERR_IO:
 * storage could not be read. */
err_code_t hdf5io_manifest_load(const char *directory, hdf5io_manifest_t *out,
                                uint64_t *hash, err_t *err);

/* Free what it holds; a zeroed one is fine. */
void hdf5io_manifest_free(hdf5io_manifest_t *manifest);

/* "[32, 1, 3, 3]" into [out]. */
char *hdf5io_shape_format(int ndim, const int64_t *dims, char *out,
                          size_t room);

#endif
