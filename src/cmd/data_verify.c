/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every stored value is read once. Values that were never written have no bytes
 * that could be damaged, and their number may be huge (a header can declare
 * 2^40 rows). So datasets and chunks that are not stored are skipped.
 */
#include "cmd/data_verify.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/data_info.h"
#include "cmd/data_walk.h"
#include "hdf5io/h5.h"
#include "hdf5io/virtual.h"

/* Bytes of one read: enough to hide the latency of storage. */
#define VERIFY_BLOCK_BYTES ((size_t)8 << 20)
/* Maximum size of one value, in bytes. */
#define VERIFY_ITEM_MAX ((size_t)1 << 30)
/* Maximum number of chunks of a sparse dataset that are read one by one. */
#define VERIFY_CHUNKS_MAX 4096
/* Maximum size of a dataset, in bytes, that is read as a whole although chunks
 * are missing. */
#define VERIFY_SPARSE_BYTES ((uint64_t)1 << 40)

typedef struct verify {
    const char *name; /* name of the file */
    double every, next;
    cmd_verify_report_t report;
} verify_t;

/* A dataset, and the box [from, to) of it that is read at the moment. */
typedef struct verify_set {
    hid_t id, type, space;
    const char *path;
    int ndim;
    size_t item;
    uint64_t bytes; /* bytes of all values */
    hsize_t dims[H5S_MAX_RANK];
    hsize_t from[H5S_MAX_RANK], to[H5S_MAX_RANK];
    hsize_t block[H5S_MAX_RANK]; /* shape of the block that is read at a time */
    void *buffer;                /* room for one block */
    uint64_t done;               /* number of bytes read so far */
} verify_set_t;

/* Print a line of progress if the last one was printed long enough ago. */
static void verify_tell(verify_t *verify, const verify_set_t *set)
{
    const double now = clock_now();
    char read[32], all[32];
    char *name, *path;

    if (now < verify->next)
        return;
    verify->next = now + verify->every;
    name = str_visible_dup(verify->name);
    path = str_visible_dup(set->path);
    fprintf(stderr, "cddp-data: %s: %s: %s of %s read\n", name, path,
            str_bytes(set->done, read, sizeof read),
            str_bytes(set->bytes, all, sizeof all));
    free(path);
    free(name);
}

/* Read the block that begins at [start], or the part of it inside the box. */
static err_code_t verify_block(verify_set_t *set, const hsize_t *start,
                               err_t *err)
{
    hsize_t count[H5S_MAX_RANK];
    hid_t memory = H5I_INVALID_HID;
    uint64_t read = set->item;
    err_code_t rc = ERR_OK;

    for (int d = 0; d < set->ndim; d++) {
        const hsize_t left = set->to[d] - start[d];

        count[d] = left < set->block[d] ? left : set->block[d];
        read *= count[d];
    }
    if (set->ndim > 0) {
        memory = H5Screate_simple(set->ndim, count, NULL);
        H5Sselect_hyperslab(set->space, H5S_SELECT_SET, start, NULL, count,
                            NULL);
    }
    if (H5Dread(set->id, set->type, set->ndim > 0 ? memory : H5S_ALL,
                set->ndim > 0 ? set->space : H5S_ALL, H5P_DEFAULT,
                set->buffer) < 0)
        rc = h5_err_set(err, ERR_DATA, "dataset %s cannot be read at row %llu",
                        set->path,
                        set->ndim > 0 ? (unsigned long long)start[0] : 0ULL);
    else if (H5Tdetect_class(set->type, H5T_VLEN) > 0 ||
             H5Tis_variable_str(set->type) > 0)
        H5Dvlen_reclaim(set->type, set->ndim > 0 ? memory : set->space,
                        H5P_DEFAULT, set->buffer);
    if (memory >= 0)
        H5Sclose(memory);
    set->done += read;
    return rc;
}

/* Move [start] to the next block in C order; false: there is none. */
static bool verify_advance(const verify_set_t *set, hsize_t *start)
{
    for (int d = set->ndim - 1; d >= 0; d--) {
        if (set->to[d] - start[d] > set->block[d]) {
            start[d] += set->block[d];
            return true;
        }
        start[d] = set->from[d];
    }
    return false;
}

/* Read the box set->from to set->to. */
static err_code_t verify_box(verify_t *verify, verify_set_t *set, err_t *err)
{
    hsize_t start[H5S_MAX_RANK];
    err_code_t rc;

    memcpy(start, set->from, sizeof start);
    do {
        rc = verify_block(set, start, err);
        verify_tell(verify, set);
    } while (rc == ERR_OK && verify_advance(set, start));
    return rc;
}

/* Set *stored to the number of chunks that are stored, *all to the number of
 * chunks of the whole dataset, and [chunk] to the shape of a chunk. False: the
 * dataset has no chunks, or this HDF5 version cannot tell. */
static bool verify_chunks(const verify_set_t *set, hid_t create, hsize_t *chunk,
                          uint64_t *stored, uint64_t *all)
{
#if H5_VERSION_GE(1, 10, 5)
    hsize_t count = 0;

    *all = 1;
    if (H5Pget_layout(create) != H5D_CHUNKED ||
        H5Pget_chunk(create, H5S_MAX_RANK, chunk) != set->ndim ||
        H5Dget_num_chunks(set->id, set->space, &count) < 0)
        return false;
    for (int d = 0; d < set->ndim; d++)
        if (chunk[d] == 0 || __builtin_mul_overflow(
                                 *all, (set->dims[d] - 1) / chunk[d] + 1, all))
            return false;
    *stored = count;
    return true;
#else
    (void)set;
    (void)create;
    (void)chunk;
    (void)stored;
    (void)all;
    return false;
#endif
}

/* Read the [count] chunks that are stored; [chunk] is their shape. */
static err_code_t verify_stored(verify_t *verify, verify_set_t *set,
                                const hsize_t *chunk, uint64_t count,
                                err_t *err)
{
    err_code_t rc = ERR_OK;

    for (uint64_t i = 0; i < count && rc == ERR_OK; i++) {
        bool inside = true;

#if H5_VERSION_GE(1, 10, 5)
        if (H5Dget_chunk_info(set->id, set->space, i, set->from, NULL, NULL,
                              NULL) < 0)
            return h5_err_set(err, ERR_DATA, "the chunks of %s are damaged",
                              set->path);
#endif
        for (int d = 0; d < set->ndim; d++) {
            inside = inside && set->from[d] < set->dims[d];
            set->to[d] = set->dims[d] - set->from[d] < chunk[d]
                             ? set->dims[d]
                             : set->from[d] + chunk[d];
        }
        if (inside)
            rc = verify_box(verify, set, err);
    }
    return rc;
}

/* Read all stored values of [set]. */
static err_code_t verify_values(verify_t *verify, verify_set_t *set,
                                hid_t create, err_t *err)
{
    H5D_space_status_t status = H5D_SPACE_STATUS_ALLOCATED;
    const H5D_layout_t layout = H5Pget_layout(create);
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t stored, all;

    if ((layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS) &&
        H5Pget_external_count(create) == 0 &&
        H5Dget_space_status(set->id, &status) >= 0 &&
        status == H5D_SPACE_STATUS_NOT_ALLOCATED)
        return ERR_OK;
    if (verify_chunks(set, create, chunk, &stored, &all) && stored < all) {
        if (stored <= VERIFY_CHUNKS_MAX)
            return verify_stored(verify, set, chunk, stored, err);
        if (set->bytes > VERIFY_SPARSE_BYTES)
            return err_set(err, ERR_DATA,
                           "dataset %s has %llu of %llu chunks: expected at "
                           "most %d, or all of them; what is missing would be "
                           "read as its fill value",
                           set->path, (unsigned long long)stored,
                           (unsigned long long)all, VERIFY_CHUNKS_MAX);
    }
    return verify_box(verify, set, err);
}

/* Fill [out] with type, shape and block size of dataset [id]. ERR_DATA if they
 * are damaged, or the number of bytes overflows. */
static err_code_t verify_set_open(hid_t id, const char *path, verify_set_t *out,
                                  err_t *err)
{
    verify_set_t *set = out;
    size_t room;

    *set = (verify_set_t){.id = id,
                          .type = H5Dget_type(id),
                          .space = H5Dget_space(id),
                          .path = path};
    if (set->type < 0 || set->space < 0)
        return h5_err_set(err, ERR_DATA, "dataset %s is damaged", path);
    set->item = H5Tget_size(set->type);
    set->ndim = H5Sget_simple_extent_dims(set->space, set->dims, NULL);
    set->bytes = set->item;
    if (set->item == 0 || set->item > VERIFY_ITEM_MAX || set->ndim < 0)
        return h5_err_set(err, ERR_DATA,
                          "dataset %s is damaged: its values have %zu bytes",
                          path, set->item);
    room = VERIFY_BLOCK_BYTES / set->item;
    for (int d = set->ndim - 1; d >= 0; d--) {
        const hsize_t dim = set->dims[d];

        if (__builtin_mul_overflow(set->bytes, dim, &set->bytes))
            return err_set(err, ERR_DATA,
                           "dataset %s is damaged: its shape has more values "
                           "than can be counted",
                           path);
        set->to[d] = dim;
        room = room == 0 ? 1 : room;
        set->block[d] = dim < room ? dim : room;
        room = dim == 0 || set->block[d] < dim ? 1 : room / dim;
    }
    return ERR_OK;
}

static err_code_t verify_dataset(void *context, hid_t id, const char *path,
                                 const char *target, err_t *err)
{
    verify_t *verify = context;
    const hid_t create = H5Dget_create_plist(id);
    verify_set_t set = {.type = H5I_INVALID_HID, .space = H5I_INVALID_HID};
    size_t room;
    int files;
    err_code_t rc = hdf5io_virtual_check(id, path, &files, err);

    (void)target;
    if (rc == ERR_OK)
        rc = verify_set_open(id, path, &set, err);
    if (rc == ERR_OK && create < 0)
        rc = h5_err_set(err, ERR_DATA, "dataset %s is damaged", path);
    if (rc == ERR_OK && set.bytes > 0) {
        room = set.item;
        for (int d = 0; d < set.ndim; d++)
            room *= (size_t)set.block[d];
        rc = mem_alloc(room, "reading a dataset", &set.buffer, err);
        if (rc == ERR_OK)
            rc = verify_values(verify, &set, create, err);
        mem_free(set.buffer);
    }
    verify->report.datasets++;
    verify->report.bytes += (int64_t)set.done;
    if (set.space >= 0)
        H5Sclose(set.space);
    if (set.type >= 0)
        H5Tclose(set.type);
    if (create >= 0)
        H5Pclose(create);
    return rc;
}

err_code_t cmd_data_verify(const char *path, double every,
                           cmd_verify_report_t *out, err_t *err)
{
    verify_t verify = {
        .name = path, .every = every, .next = clock_now() + every};
    hid_t file = H5I_INVALID_HID;
    uint64_t size;
    err_code_t rc = hash_file(path, &verify.report.hash, &size, err);

    if (rc != ERR_OK)
        return rc;
    h5_lock();
    rc = cmd_data_open(path, &file, err);
    if (rc == ERR_OK)
        rc = cmd_data_walk(file, path, verify_dataset, &verify, err);
    if (rc == ERR_OK && verify.report.datasets == 0)
        rc = err_set(err, ERR_DATA, "it holds no dataset");
    if (file >= 0)
        H5Fclose(file);
    h5_unlock();
    if (rc == ERR_OK)
        *out = verify.report;
    else
        cmd_data_prefix(path, err);
    return rc;
}
