/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shared.h5 holds each whole tensor, in its own shape, in one file that all
 * ranks write by MPI-IO. Creating the file and its datasets is collective. The
 * data is written independently: each rank writes its own run of elements. The
 * runs are contiguous in the file, so collective writes would gain nothing;
 * they would let the MPI library send everything to a few writing ranks (Open
 * MPI on some file systems: all bytes go through rank 0).
 *
 * A rank whose write fails still makes the remaining collective calls, since
 * the other ranks wait in them, and reports its first failure at the end.
 */
#include <stdlib.h>

#include "base/check.h"
#include "hdf5io/checkpoint_box.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/h5.h"

/* Select elements [first, last) of the tensor in [space]. The range is not
 * empty. */
static herr_t run_select(hid_t space, const hdf5io_manifest_tensor_t *tensor,
                         int64_t first, int64_t last)
{
    herr_t status = 0;

    for (int64_t at = first; at < last && status >= 0;) {
        H5S_seloper_t how = at == first ? H5S_SELECT_SET : H5S_SELECT_OR;
        hdf5io_box_t box;

        hdf5io_box_next(tensor, at, last, &box);
        status =
            H5Sselect_hyperslab(space, how, box.start, NULL, box.count, NULL);
        at += box.elems;
    }
    return status;
}

/* Write elements [first, last) of the tensor from [data]. The memory space is
 * one run, since HDF5 walks a selection in the order of the flat tensor. */
static err_code_t run_write(hid_t dataset, hid_t space,
                            const hdf5io_manifest_tensor_t *tensor,
                            const float *data, int64_t first, int64_t last,
                            err_t *err)
{
    hsize_t elems = (hsize_t)(last - first);
    err_code_t rc = ERR_OK;
    hid_t memory;

    if (last <= first)
        return ERR_OK;
    memory = H5Screate_simple(1, &elems, NULL);
    if (run_select(space, tensor, first, last) < 0 ||
        H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, data) <
            0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot write %s", MANIFEST_SHARED,
                        tensor->name);
    if (memory >= 0)
        H5Sclose(memory);
    return rc;
}

/* Elements [*first, *last) of tensor number [i] that this rank writes. The
 * tensor is whole on all ranks and starts at element [start] of the [elems]
 * elements of all such tensors. */
static void run_mine(const hdf5io_files_t *files, int64_t elems, int64_t start,
                     int i, int64_t *first, int64_t *last)
{
    int64_t size = files->manifest->tensors[i].elems;

    hdf5io_manifest_share(elems, files->rank, files->manifest->world_size,
                          first, last);
    *first = *first > start ? *first - start : 0;
    *last = *last > start ? *last - start : 0;
    *first = *first < size ? *first : size;
    *last = *last < size ? *last : size;
    check(*first <= *last, "rank %d writes elements %lld to %lld of tensor %d",
          files->rank, (long long)*first, (long long)*last, i);
}

/* Write the parts that this rank holds. */
static err_code_t parts_write(hdf5io_files_t *files, hid_t dataset, hid_t space,
                              int i, err_t *err)
{
    const hdf5io_tensor_t *tensor = &files->tensors[i];
    err_code_t rc = ERR_OK;

    for (int p = 0; rc == ERR_OK && p < tensor->part_count; p++) {
        const hdf5io_part_t *part = &tensor->parts[p];

        if (part->rank != files->rank)
            continue;
        rc = run_write(dataset, space, &files->manifest->tensors[i], part->data,
                       part->first, part->first + part->count, err);
        if (rc == ERR_OK)
            files->bytes += part->count * (int64_t)sizeof(float);
    }
    return rc;
}

/* Write elements [first, last) of a tensor that is whole on all ranks. */
static err_code_t share_write(hdf5io_files_t *files, hid_t dataset, hid_t space,
                              int i, int64_t first, int64_t last, err_t *err)
{
    err_code_t rc;

    rc = run_write(dataset, space, &files->manifest->tensors[i],
                   files->tensors[i].data + first, first, last, err);
    if (rc == ERR_OK)
        files->bytes += (last - first) * (int64_t)sizeof(float);
    return rc;
}

/* Create (collective), write and locate one tensor. */
static err_code_t tensor_write(hdf5io_files_t *files, hid_t file, hid_t layout,
                               int i, int64_t first, int64_t last, err_t *err)
{
    hdf5io_manifest_t *m = files->manifest;
    hdf5io_manifest_tensor_t *t = &m->tensors[i];
    hsize_t extent[MANIFEST_DIMS_MAX];
    int ndim = hdf5io_box_extent(t, extent);
    hid_t space = H5Screate_simple(ndim, extent, NULL);
    hid_t dataset = hdf5io_files_dataset(file, t->name, space, layout);
    err_code_t rc = ERR_OK;

    if (dataset < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot create dataset %s",
                        MANIFEST_SHARED, t->name);
    else if (files->tensors[i].parts != NULL)
        rc = parts_write(files, dataset, space, i, err);
    else
        rc = share_write(files, dataset, space, i, first, last, err);
    if (rc == ERR_OK && t->elems > 0)
        rc = hdf5io_files_locate(dataset, MANIFEST_SHARED, t->name,
                                 &m->pieces[t->piece].offset, err);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

static err_code_t tensors_write(hdf5io_files_t *files, hid_t file, hid_t layout,
                                err_t *err)
{
    hdf5io_manifest_t *m = files->manifest;
    int64_t elems = hdf5io_manifest_common(m, files->tensors);
    int64_t start = 0, first, last;
    err_code_t result = ERR_OK;

    for (int i = 0; i < m->tensor_count; i++) {
        err_code_t rc;
        err_t why = ERR_INIT;

        run_mine(files, elems, start, i, &first, &last);
        rc = tensor_write(files, file, layout, i, first, last, &why);
        if (rc != ERR_OK && result == ERR_OK)
            result = err_set(err, rc, "%s", why.text);
        if (files->tensors[i].parts == NULL)
            start += m->tensors[i].elems;
    }
    return result;
}

/* Create and fill shared.h5. Lock held. */
static err_code_t shared_write(hdf5io_files_t *files, h5mpi_t *mpi,
                               const char *path, err_t *err)
{
    hid_t access = h5mpi_access_list(mpi);
    hid_t layout = hdf5io_files_layout();
    hid_t file = layout < 0 ? layout : hdf5io_files_create(path, access);
    err_code_t rc;

    if (file < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot create by MPI-IO", path);
    else
        rc = tensors_write(files, file, layout, err);
    rc = hdf5io_files_close(file, path, rc, err);
    if (layout >= 0)
        H5Pclose(layout);
    if (access >= 0)
        H5Pclose(access);
    return rc;
}

err_code_t hdf5io_files_shared(hdf5io_files_t *files, h5mpi_t *mpi, err_t *err)
{
    char *path;
    err_code_t rc;

    if (files->manifest->piece_count == 0)
        return ERR_OK;
    path = str_printf("%s/%s", files->directory, MANIFEST_SHARED);
    h5_lock();
    rc = shared_write(files, mpi, path, err);
    h5_unlock();
    /* Data of this rank may still be only in this node's page cache. */
    if (rc == ERR_OK)
        rc = hdf5io_io_sync(files->io, path, err);
    free(path);
    return rc;
}
