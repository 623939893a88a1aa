/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_manifest: the plan of a checkpoint, and its release. The text form
 * is in checkpoint_manifest_print.c and _parse.c. */
#include "config.h"

#include "hdf5io/checkpoint_manifest.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "hdf5io/h5.h"

void hdf5io_manifest_share(int64_t elems, int rank, int size, int64_t *first,
                           int64_t *last)
{
    /* floor(elems * rank / size) without leaving 63 bits. */
    int64_t whole = elems / size, rest = elems % size;

    *first = whole * rank + rest * rank / size;
    *last = whole * (rank + 1) + rest * (rank + 1) / size;
}

int hdf5io_manifest_file_of(const hdf5io_manifest_t *manifest, int rank)
{
    char name[64];

    snprintf(name, sizeof name, "shard-%d.h5", rank);
    for (int i = 0; i < manifest->file_count; i++)
        if (strcmp(manifest->files[i].name, name) == 0)
            return i;
    return -1;
}

char *hdf5io_shape_format(int ndim, const int64_t *dims, char *out, size_t room)
{
    size_t used = 0;

    for (int d = 0; d < ndim && used < room; d++)
        used += (size_t)snprintf(out + used, room - used, "%s%lld",
                                 d == 0 ? "[" : ", ", (long long)dims[d]);
    if (used < room)
        snprintf(out + used, room - used, ndim == 0 ? "[]" : "]");
    return out;
}

void hdf5io_manifest_free(hdf5io_manifest_t *manifest)
{
    for (int i = 0; i < manifest->file_count; i++)
        free(manifest->files[i].name);
    for (int i = 0; i < manifest->tensor_count; i++)
        free(manifest->tensors[i].name);
    free(manifest->files);
    free(manifest->tensors);
    free(manifest->pieces);
    free(manifest->config_text);
    free(manifest->versions);
    free(manifest->created);
    *manifest = (hdf5io_manifest_t){0};
}

static char *versions_text(const char *more)
{
    unsigned major = 0, minor = 0, release = 0;

    h5_lock();
    H5get_libversion(&major, &minor, &release);
    h5_unlock();
    return str_printf("cddp %s, HDF5 %u.%u.%u, jansson %s, xxHash %u%s%s",
                      PACKAGE_VERSION, major, minor, release, JANSSON_VERSION,
                      XXH_versionNumber(), more == NULL ? "" : ", ",
                      more == NULL ? "" : more);
}

static err_code_t tensors_copy(const hdf5io_tensor_t *tensors, int count,
                               hdf5io_manifest_t *m, int64_t *elems, err_t *err)
{
    *elems = 0;
    for (int i = 0; i < count; i++) {
        hdf5io_manifest_tensor_t *t = &m->tensors[i];

        if (tensors[i].ndim < 0 || tensors[i].ndim > MANIFEST_DIMS_MAX)
            return err_set(err, ERR_CONFIG,
                           "tensor %s has %d dimensions, a checkpoint holds 0 "
                           "to %d",
                           tensors[i].name, tensors[i].ndim, MANIFEST_DIMS_MAX);
        t->name = str_dup(tensors[i].name);
        m->tensor_count = i + 1;
        t->ndim = tensors[i].ndim;
        t->elems = 1;
        for (int d = 0; d < t->ndim; d++) {
            t->dims[d] = tensors[i].dims[d];
            t->elems *= t->dims[d];
        }
        *elems += t->elems;
    }
    return ERR_OK;
}

/* Files in the order of the ranks that have something to write. */
static void files_plan(hdf5io_manifest_t *m, bool shared, int64_t elems)
{
    int64_t first, last;

    if (shared && elems > 0)
        m->files[m->file_count++].name = str_dup(MANIFEST_SHARED);
    for (int r = 0; !shared && r < m->world_size; r++) {
        hdf5io_manifest_share(elems, r, m->world_size, &first, &last);
        if (last > first)
            m->files[m->file_count++].name = str_printf("shard-%d.h5", r);
    }
    m->files[m->file_count++].name = str_dup(MANIFEST_VIEW);
}

/* Walk tensors and shares together; every overlap is a piece. */
static void pieces_plan(hdf5io_manifest_t *m, bool shared, int64_t elems)
{
    int64_t start = 0, first = 0, last = elems;
    int rank = 0, file = 0;

    if (!shared)
        hdf5io_manifest_share(elems, 0, m->world_size, &first, &last);
    for (int i = 0; i < m->tensor_count; i++) {
        hdf5io_manifest_tensor_t *t = &m->tensors[i];
        int64_t at = 0;

        t->piece = m->piece_count;
        while (at < t->elems) {
            int64_t room = last - (start + at);

            if (room <= 0) {
                file += last > first;
                rank++;
                hdf5io_manifest_share(elems, rank, m->world_size, &first,
                                      &last);
                continue;
            }
            if (room > t->elems - at)
                room = t->elems - at;
            m->pieces[m->piece_count++] = (hdf5io_manifest_piece_t){
                .tensor = i, .file = file, .first = at, .count = room};
            at += room;
        }
        t->pieces = m->piece_count - t->piece;
        start += t->elems;
    }
}

err_code_t hdf5io_manifest_build(const hdf5io_checkpoint_config_t *config,
                                 const hdf5io_progress_t *progress,
                                 const hdf5io_tensor_t *tensors, int count,
                                 hdf5io_manifest_t *out, err_t *err)
{
    char now[64];
    size_t size = (size_t)config->votes->size, n = (size_t)count;
    int64_t elems;
    err_code_t code;
    hdf5io_manifest_t m = {
        .progress = *progress,
        .world_size = config->votes->size,
        .config_hash = config->config_hash,
        .model_hash = config->model_hash,
        .build_hash = config->build_hash,
    };

    m.tensors = calloc(n + 1, sizeof *m.tensors);
    m.files = calloc(size + 1, sizeof *m.files);
    m.pieces = calloc(n + size, sizeof *m.pieces);
    if (m.tensors == NULL || m.files == NULL || m.pieces == NULL) {
        code = err_set(err, ERR_MEMORY, "no memory for the checkpoint's plan");
        goto fail;
    }
    code = tensors_copy(tensors, count, &m, &elems, err);
    if (code != ERR_OK)
        goto fail;
    m.config_text =
        str_dup(config->config_text == NULL ? "" : config->config_text);
    m.versions = versions_text(config->versions);
    m.created = str_dup(clock_format(clock_wall(), now, sizeof now));
    files_plan(&m, config->mpi != NULL, elems);
    pieces_plan(&m, config->mpi != NULL, elems);
    *out = m;
    return ERR_OK;
fail:
    hdf5io_manifest_free(&m);
    return code;
}
