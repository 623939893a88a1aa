/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The local part of checkpoint_read. Bytes are read by pread at the offsets in
 * the manifest, so reading needs neither HDF5 nor its lock. */
#include "hdf5io/checkpoint_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_load.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints hold little-endian floats, which are read in place"
#endif

/* Read the elements of [range], all of which [piece] holds. */
static err_code_t piece_read(const hdf5io_saved_t *saved,
                             const hdf5io_manifest_piece_t *piece,
                             const hdf5io_range_t *range, err_t *err)
{
    char *path = str_printf("%s/%s", saved->directory,
                            saved->manifest->files[piece->file].name);
    int64_t skip = (range->first - piece->first) * (int64_t)sizeof(float);
    err_code_t rc = hdf5io_io_read(saved->io, path, range->data,
                                   (size_t)range->count * sizeof(float),
                                   piece->offset + skip, err);

    free(path);
    return rc;
}

err_code_t hdf5io_checkpoint_fetch_range(const hdf5io_saved_t *saved,
                                         const hdf5io_range_t *range,
                                         err_t *err)
{
    const hdf5io_manifest_t *m = saved->manifest;
    const hdf5io_manifest_tensor_t *t = &m->tensors[range->tensor];
    const int64_t last = range->first + range->count;
    int64_t done = 0;
    err_code_t rc = ERR_OK;

    for (int i = t->piece; i < t->piece + t->pieces && rc == ERR_OK; i++) {
        const hdf5io_manifest_piece_t *piece = &m->pieces[i];
        int64_t to = piece->first + piece->count;
        hdf5io_range_t part = *range;

        if (piece->first > part.first)
            part.first = piece->first;
        part.count = (to < last ? to : last) - part.first;
        if (part.count <= 0)
            continue;
        part.data += part.first - range->first;
        rc = piece_read(saved, piece, &part, err);
        done += part.count;
    }
    check(rc != ERR_OK || done == range->count,
          "%s: %lld of %lld elements from %lld on are in pieces", t->name,
          (long long)done, (long long)range->count, (long long)range->first);
    return rc;
}

err_code_t hdf5io_checkpoint_fetch(const hdf5io_saved_t *saved, int tensor,
                                   float *data, err_t *err)
{
    const hdf5io_range_t whole = {.tensor = tensor,
                                  .count =
                                      saved->manifest->tensors[tensor].elems,
                                  .data = data};

    return hdf5io_checkpoint_fetch_range(saved, &whole, err);
}

err_code_t hdf5io_checkpoint_verify(const char *path,
                                    hdf5io_checkpoint_info_t *info, err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    const hdf5io_saved_t saved = {&hdf5io_io_system, path, &m};
    bool damaged;
    err_code_t rc = hdf5io_manifest_load(path, &m, &hash, err);

    if (rc == ERR_OK)
        rc = hdf5io_load_check(&saved, &damaged, err);
    if (rc == ERR_OK && info != NULL) {
        snprintf(info->path, sizeof info->path, "%s", path);
        info->progress = m.progress;
        info->world_size = m.world_size;
        info->bytes_written = 0;
    }
    hdf5io_manifest_free(&m);
    return rc;
}
