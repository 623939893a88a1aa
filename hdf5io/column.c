/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opening a column. Each check is a small function with its own error sentence.
 * HDF5 never converts numbers of the standard types: they are read as stored
 * and converted in one place (convert.h). So contiguous and chunked files give
 * the same bits, and collective reads stay collective (HDF5 makes them
 * independent when it converts).
 */
#include "hdf5io/column.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/retry.h"
#include "hdf5io/column_type.h"
#include "hdf5io/column_way.h"
#include "hdf5io/h5.h"
#include "hdf5io/home.h"
#include "hdf5io/links.h"
#include "hdf5io/names.h"
#include "hdf5io/virtual.h"

static err_code_t column_space_find(bool whole, hdf5io_column_t *out,
                                    err_t *err)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(out->dataset);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);

    if (space >= 0)
        H5Sclose(space);
    if (ndim < 0)
        return h5_err_set(err, ERR_DATA, "%s: the shape of %s is unreadable",
                          out->file, out->path);
    if (ndim == 0 && whole) {
        out->whole = true;
        dims[0] = 1;
        ndim = 1;
    }
    if (ndim == 0)
        return err_set(err, ERR_DATA,
                       "%s: %s is a single value: expected samples along "
                       "dimension 0",
                       out->file, out->path);
    out->rows = (int64_t)dims[0];
    out->ndim = ndim - 1;
    out->elems = 1;
    for (int i = 0; i < out->ndim; i++) {
        out->dims[i] = dims[i + 1];
        if (__builtin_mul_overflow(out->elems, dims[i + 1], &out->elems))
            out->elems = 0;
    }
    if (out->elems < 1 || out->elems > INT32_MAX || out->rows < 0)
        return err_set(
            err, ERR_DATA, "%s: a sample of %s has %s values: expected 1 to %d",
            out->file, out->path,
            out->elems < 1 ? "no or too many" : "too many", INT32_MAX);
    out->row_bytes = (size_t)out->elems * hdf5io_convert_bytes(out->type);
    return ERR_OK;
}

/* Are all filters installed that the chunks were written with? */
static err_code_t column_filters_check(const hdf5io_column_t *column,
                                       hid_t create, err_t *err)
{
    int count = H5Pget_nfilters(create);

    for (int i = 0; i < count; i++) {
        char name[64] = "";
        unsigned flags, config;
        size_t values = 0;
        H5Z_filter_t filter =
            H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL,
                           sizeof name, name, &config);

        if (filter >= 0 && H5Zfilter_avail(filter) > 0)
            continue;
        return h5_err_set(err, ERR_DATA,
                          "%s: %s was written with filter %d (%s), which is "
                          "not installed: set HDF5_PLUGIN_PATH or rewrite the "
                          "file with gzip",
                          column->file, column->path, (int)filter,
                          name[0] != '\0' ? name : "unnamed");
    }
    return ERR_OK;
}

/* If a link leads to another file, remember that file. */
static err_code_t column_source_find(hdf5io_column_t *out, err_t *err)
{
    char *home = hdf5io_home_name(out->dataset);
    struct stat status;

    if (home == NULL)
        return h5_err_set(err, ERR_DATA,
                          "%s: HDF5 does not say which file holds %s",
                          out->file, out->path);
    if (hdf5io_home_same(home, out->file)) {
        free(home);
        return ERR_OK;
    }
    out->source = home;
    if (stat(home, &status) == 0) {
        out->device = (uint64_t)status.st_dev;
        out->inode = (uint64_t)status.st_ino;
    }
    return ERR_OK;
}

static err_code_t column_open_dataset(hid_t file, hdf5io_column_t *out,
                                      err_t *err)
{
    hid_t object = hdf5io_home_object(file, out->path, &out->elsewhere);

    if (object < 0 && retry_cause(h5_err_number()) == RETRY_STORAGE)
        return h5_err_set(err, ERR_IO, "%s: cannot open %s", out->file,
                          out->path);
    if (object < 0) {
        H5Eclear2(H5E_DEFAULT);
        return hdf5io_links_broken(file, out->file, out->path, err)
                   ? ERR_DATA
                   : hdf5io_names_missing(file, out->file, out->path, err);
    }
    if (H5Iget_type(object) != H5I_DATASET) {
        H5Oclose(object);
        return err_set(err, ERR_DATA,
                       "%s: %s is a group: expected a dataset inside it",
                       out->file, out->path);
    }
    out->dataset = object;
    return column_source_find(out, err);
}

/* Check the open dataset, find its type and shape, and choose how it is read.
 */
static err_code_t column_examine(hid_t file, const column_how_t *how,
                                 hdf5io_column_t *column, err_t *err)
{
    hid_t create;
    bool standard = false;
    err_code_t rc = hdf5io_virtual_check(column->dataset, column->path,
                                         &column->files, err);

    if (rc == ERR_OK)
        rc = hdf5io_column_type_find(column, &standard, err);
    if (rc == ERR_OK)
        rc = column_space_find(how->whole, column, err);
    if (rc != ERR_OK)
        return rc;
    create = H5Dget_create_plist(column->dataset);
    rc = hdf5io_column_way_choose(column, create, standard, how, err);
    if (rc == ERR_OK && column->chunks == NULL)
        rc = column_filters_check(column, create, err);
    if (rc == ERR_OK && !column->located)
        rc = hdf5io_column_cache_set(column, file, create, how, err);
    column->elsewhere |= column->source != NULL || column->files > 0 ||
                         H5Pget_external_count(create) > 0;
    H5Pclose(create);
    return rc;
}

err_code_t hdf5io_column_open(hid_t file, const char *name, const char *path,
                              const column_how_t *how, hdf5io_column_t *out,
                              err_t *err)
{
    hdf5io_column_t column = {.file = name,
                              .path = path,
                              .fd = -1,
                              .dataset = H5I_INVALID_HID,
                              .memory = H5I_INVALID_HID};
    err_code_t rc;

    h5_lock_check();
    rc = column_open_dataset(file, &column, err);
    if (rc == ERR_OK)
        rc = column_examine(file, how, &column, err);
    if (rc == ERR_OK)
        *out = column;
    else
        hdf5io_column_close(&column);
    return rc;
}

err_code_t hdf5io_column_cut(hdf5io_column_t *column, int64_t length,
                             int64_t skip, err_t *err)
{
    char shape[256];

    check(length > 0 && (skip == 0 || skip == 1) && column->stream == 0,
          "%s: cut to %lld from %lld, a stream of %lld", column->path,
          (long long)length, (long long)skip, (long long)column->stream);
    if (column->ndim > 0)
        return err_set(err, ERR_DATA,
                       "%s: %s has rows of shape %s: with data.sequence it is "
                       "one stream of numbers, with one dimension",
                       column->file, column->path,
                       hdf5io_column_shape(column, shape, sizeof shape));
    if (column->located)
        column->offset += (uint64_t)skip * column->row_bytes;
    column->rows = column->rows > 0 ? (column->rows - 1) / length : 0;
    column->ndim = 1;
    column->dims[0] = (hsize_t)length;
    column->elems = length;
    column->row_bytes *= (size_t)length;
    if (column->band > 0)
        column->band = column->band < length ? 1 : column->band / length;
    column->stream = length;
    column->skip = skip;
    return ERR_OK;
}

err_code_t hdf5io_column_unite(hdf5io_column_t *column, err_t *err)
{
    const bool single = column->whole;
    int64_t elems;

    check(column->stream == 0, "%s: unite a stream of %lld", column->path,
          (long long)column->stream);
    if (column->ndim + 2 > H5S_MAX_RANK)
        return err_set(
            err, ERR_DATA, "%s: %s has %d dimensions: expected at most %d",
            column->file, column->path, column->ndim + 1, H5S_MAX_RANK - 1);
    if (column->rows == 0 ||
        __builtin_mul_overflow(column->elems, column->rows, &elems) ||
        elems > INT32_MAX)
        return err_set(err, ERR_DATA,
                       "%s: %s has %s values for one sample: expected 1 to %d, "
                       "since with data.samples: files the dataset is one "
                       "sample",
                       column->file, column->path,
                       column->rows == 0 ? "no" : "too many", INT32_MAX);
    if (!single) {
        memmove(column->dims + 1, column->dims,
                (size_t)column->ndim * sizeof column->dims[0]);
        column->dims[0] = (hsize_t)column->rows;
        column->ndim++;
    }
    column->row_bytes *= (size_t)column->rows;
    column->elems = elems;
    column->band = column->band > 0 ? 1 : 0;
    column->rows = 1;
    column->whole = true;
    return ERR_OK;
}

err_code_t hdf5io_column_join(hdf5io_column_t *column, hid_t joined, err_t *err)
{
    hid_t access;

    h5_lock_check();
    check(column->collective && !column->located,
          "%s is joined: collective %d, located %d", column->path,
          column->collective, column->located);
    access = H5Dget_access_plist(column->dataset);
    H5Dclose(column->dataset);
    column->dataset = H5Dopen2(joined, column->path, access);
    H5Pclose(access);
    if (column->dataset < 0)
        return h5_err_set(err, ERR_DATA, "%s: %s does not open by MPI-IO",
                          column->file, column->path);
    return ERR_OK;
}

bool hdf5io_column_apart(const hdf5io_column_t *column)
{
    return column->located || (column->chunks != NULL &&
                               !hdf5io_chunks_through_h5(column->chunks));
}

void hdf5io_column_share(hdf5io_column_t *column, const hdf5io_column_t *other)
{
    if (column->chunks == NULL || other->chunks == NULL ||
        column->chunks == other->chunks ||
        strcmp(column->path, other->path) != 0 ||
        strcmp(column->file, other->file) != 0)
        return;
    hdf5io_chunks_close(column->chunks);
    column->chunks = other->chunks;
    column->cached = 0;
    hdf5io_chunks_share(column->chunks);
}

void hdf5io_column_trim(hdf5io_column_t *column)
{
    h5_lock_check();
    if (column->memory >= 0)
        H5Tclose(column->memory);
    if (column->dataset >= 0)
        H5Dclose(column->dataset);
    column->memory = H5I_INVALID_HID;
    column->dataset = H5I_INVALID_HID;
}

void hdf5io_column_close(hdf5io_column_t *column)
{
    hdf5io_column_trim(column);
    hdf5io_chunks_close(column->chunks);
    column->chunks = NULL;
    if (column->fd >= 0)
        close(column->fd);
    column->fd = -1;
    free(column->source);
    column->source = NULL;
}
