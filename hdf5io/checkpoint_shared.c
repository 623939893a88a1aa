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

/* Elements [first, last) of a tensor that is being written. */
typedef struct shared_run {
    hdf5io_files_t *files;
    int number; /* of the tensor */
    hid_t dataset, space;
    int64_t first, last;
} shared_run_t;

/* Write the elements of [run] from [data]. The memory space is one run, since
 * HDF5 walks a selection in the order of the flat tensor. */
static err_code_t run_write(const shared_run_t *run, const float *data,
                            err_t *err)
{
    const hdf5io_manifest_tensor_t *tensor =
        &run->files->manifest->tensors[run->number];
    hsize_t elems = (hsize_t)(run->last - run->first);
    err_code_t rc = ERR_OK;
    hid_t memory;

    if (run->last <= run->first)
        return ERR_OK;
    memory = H5Screate_simple(1, &elems, NULL);
    if (run_select(run->space, tensor, run->first, run->last) < 0 ||
        H5Dwrite(run->dataset, H5T_NATIVE_FLOAT, memory, run->space,
                 H5P_DEFAULT, data) < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot write %s", MANIFEST_SHARED,
                        tensor->name);
    else
        run->files->bytes += (int64_t)elems * (int64_t)sizeof(float);
    if (memory >= 0)
        H5Sclose(memory);
    return rc;
}

/* Set [run] to the elements that this rank writes. The tensor is whole on all
 * ranks and starts at element [start] of the [elems] elements of all such
 * tensors. */
static void run_mine(shared_run_t *run, int64_t elems, int64_t start)
{
    const hdf5io_files_t *files = run->files;
    int64_t size = files->manifest->tensors[run->number].elems, first, last;

    hdf5io_manifest_share(elems, files->rank, files->manifest->world_size,
                          &first, &last);
    first = first > start ? first - start : 0;
    last = last > start ? last - start : 0;
    run->first = first < size ? first : size;
    run->last = last < size ? last : size;
    check(run->first <= run->last,
          "rank %d writes elements %lld to %lld of tensor %d", files->rank,
          (long long)run->first, (long long)run->last, run->number);
}

/* Write the parts that this rank holds. */
static err_code_t parts_write(shared_run_t *run, err_t *err)
{
    const hdf5io_tensor_t *tensor = &run->files->tensors[run->number];
    err_code_t rc = ERR_OK;

    for (int p = 0; rc == ERR_OK && p < tensor->part_count; p++) {
        const hdf5io_part_t *part = &tensor->parts[p];

        if (part->rank != run->files->rank)
            continue;
        run->first = part->first;
        run->last = part->first + part->count;
        rc = run_write(run, part->data, err);
    }
    return rc;
}

/* Create (collective), write and locate one tensor. */
static err_code_t tensor_write(shared_run_t *run, hid_t file, hid_t layout,
                               err_t *err)
{
    const hdf5io_tensor_t *tensor = &run->files->tensors[run->number];
    hdf5io_manifest_t *m = run->files->manifest;
    hdf5io_manifest_tensor_t *t = &m->tensors[run->number];
    hsize_t extent[MANIFEST_DIMS_MAX];
    int ndim = hdf5io_box_extent(t, extent);
    err_code_t rc = ERR_OK;

    run->space = H5Screate_simple(ndim, extent, NULL);
    run->dataset = hdf5io_files_dataset(file, t->name, run->space, layout);
    if (run->dataset < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot create dataset %s",
                        MANIFEST_SHARED, t->name);
    else if (tensor->parts != NULL)
        rc = parts_write(run, err);
    else
        rc = run_write(run, tensor->data + run->first, err);
    if (rc == ERR_OK && t->elems > 0)
        rc = hdf5io_files_locate(run->dataset, MANIFEST_SHARED, t->name,
                                 &m->pieces[t->piece].offset, err);
    if (run->dataset >= 0)
        H5Dclose(run->dataset);
    if (run->space >= 0)
        H5Sclose(run->space);
    return rc;
}

static err_code_t tensors_write(hdf5io_files_t *files, hid_t file, hid_t layout,
                                err_t *err)
{
    hdf5io_manifest_t *m = files->manifest;
    int64_t elems = hdf5io_manifest_common(m, files->tensors);
    int64_t start = 0;
    err_code_t result = ERR_OK;

    for (int i = 0; i < m->tensor_count; i++) {
        shared_run_t run = {.files = files, .number = i};
        err_t why = ERR_INIT;
        err_code_t rc;

        run_mine(&run, elems, start);
        rc = tensor_write(&run, file, layout, &why);
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
    else
        hdf5io_files_empty(path);
    free(path);
    return rc;
}
