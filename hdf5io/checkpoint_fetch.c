/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The local part of checkpoint_read. Bytes are read by pread at the offsets in
 * the manifest, so reading needs neither HDF5 nor its lock. */
#include "hdf5io/checkpoint_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "hdf5io/checkpoint.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints hold little-endian floats, which are read in place"
#endif

err_code_t hdf5io_checkpoint_check(const hdf5io_io_t *io, const char *directory,
                                   const hdf5io_manifest_t *manifest, int file,
                                   retry_cause_t *cause, err_t *err)
{
    const hdf5io_manifest_file_t *want = &manifest->files[file];
    char *path = str_printf("%s/%s", directory, want->name);
    char expected[HASH_TEXT_MAX], found[HASH_TEXT_MAX];
    uint64_t hash, bytes;
    err_code_t rc = hdf5io_io_size(io, path, &bytes, cause, err);

    if (rc == ERR_OK && bytes == want->bytes)
        rc = hdf5io_io_hash(io, path, &hash, &bytes, cause, err);
    if (rc != ERR_OK)
        goto out;
    *cause = RETRY_ABSENT;
    if (bytes != want->bytes)
        rc = err_set(err, ERR_DATA, "%s: it has %llu bytes instead of %llu",
                     path, (unsigned long long)bytes,
                     (unsigned long long)want->bytes);
    else if (hash != want->hash)
        rc = err_set(err, ERR_DATA,
                     "%s: its content has the hash %s instead of %s, so it "
                     "is damaged",
                     path, hash_format(hash, found),
                     hash_format(want->hash, expected));
out:
    free(path);
    return rc;
}

/* Read elements [first, last) of a tensor, all of which [piece] holds. */
static err_code_t piece_read(const hdf5io_io_t *io, const char *directory,
                             const hdf5io_manifest_t *manifest,
                             const hdf5io_manifest_piece_t *piece,
                             int64_t first, int64_t last, float *data,
                             err_t *err)
{
    char *path =
        str_printf("%s/%s", directory, manifest->files[piece->file].name);
    int64_t skip = (first - piece->first) * (int64_t)sizeof(float);
    err_code_t rc =
        hdf5io_io_read(io, path, data, (size_t)(last - first) * sizeof(float),
                       piece->offset + skip, err);

    free(path);
    return rc;
}

err_code_t hdf5io_checkpoint_fetch_run(const hdf5io_io_t *io,
                                       const char *directory,
                                       const hdf5io_manifest_t *manifest,
                                       int tensor, int64_t first, int64_t count,
                                       float *data, err_t *err)
{
    const hdf5io_manifest_tensor_t *t = &manifest->tensors[tensor];
    const int64_t last = first + count;
    int64_t done = 0;
    err_code_t rc = ERR_OK;

    for (int i = t->piece; i < t->piece + t->pieces && rc == ERR_OK; i++) {
        const hdf5io_manifest_piece_t *piece = &manifest->pieces[i];
        int64_t from = piece->first > first ? piece->first : first;
        int64_t to = piece->first + piece->count;

        to = to < last ? to : last;
        if (from < to)
            rc = piece_read(io, directory, manifest, piece, from, to,
                            data + (from - first), err);
        done += from < to ? to - from : 0;
    }
    check(rc != ERR_OK || done == count,
          "%s: %lld of %lld elements from %lld on are in pieces", t->name,
          (long long)done, (long long)count, (long long)first);
    return rc;
}

err_code_t hdf5io_checkpoint_fetch(const hdf5io_io_t *io, const char *directory,
                                   const hdf5io_manifest_t *manifest,
                                   int tensor, float *data, err_t *err)
{
    return hdf5io_checkpoint_fetch_run(io, directory, manifest, tensor, 0,
                                       manifest->tensors[tensor].elems, data,
                                       err);
}

err_code_t hdf5io_checkpoint_verify(const char *path,
                                    hdf5io_checkpoint_info_t *info, err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    retry_cause_t cause;
    err_code_t rc = hdf5io_manifest_load(path, &m, &hash, err);

    for (int i = 0; i < m.file_count && rc == ERR_OK; i++)
        rc = hdf5io_checkpoint_check(&hdf5io_io_system, path, &m, i, &cause,
                                     err);
    if (rc == ERR_OK && info != NULL) {
        snprintf(info->path, sizeof info->path, "%s", path);
        info->progress = m.progress;
        info->world_size = m.world_size;
        info->bytes_written = 0;
    }
    hdf5io_manifest_free(&m);
    return rc;
}
