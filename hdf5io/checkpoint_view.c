/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint.h5 has a virtual dataset for each tensor, in its own shape, mapped
 * box by box to the pieces in the shards (or as a whole to shared.h5). Source
 * files are named without a directory, so HDF5 looks for them next to this
 * file, and the whole directory can be moved. The fill value is NaN: if a shard
 * is missing, HDF5 shows fill values without an error, and zeros could be
 * mistaken for weights. Step, epoch, samples and world size are attributes of
 * the root group.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5io/checkpoint_box.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/h5.h"

/* The 1-dimensional dataset of a piece. */
typedef struct piece_source {
    const char *file, *name;
    hsize_t elems;
} piece_source_t;

/* Map one box of [tensor] to elements of [source], from [first] on. */
static herr_t box_map(hid_t list, const hdf5io_manifest_tensor_t *tensor,
                      const hdf5io_box_t *box, const piece_source_t *source,
                      hsize_t first)
{
    hsize_t extent[MANIFEST_DIMS_MAX], elems = (hsize_t)box->elems;
    int ndim = hdf5io_box_extent(tensor, extent);
    hid_t whole = H5Screate_simple(ndim, extent, NULL);
    hid_t from = H5Screate_simple(1, &source->elems, NULL);
    herr_t status = -1;

    if (H5Sselect_hyperslab(whole, H5S_SELECT_SET, box->start, NULL, box->count,
                            NULL) >= 0 &&
        H5Sselect_hyperslab(from, H5S_SELECT_SET, &first, NULL, &elems, NULL) >=
            0)
        status = H5Pset_virtual(list, whole, source->file, source->name, from);
    if (from >= 0)
        H5Sclose(from);
    if (whole >= 0)
        H5Sclose(whole);
    return status;
}

static herr_t piece_map(hid_t list, const hdf5io_manifest_t *m, int number)
{
    const hdf5io_manifest_piece_t *piece = &m->pieces[number];
    const hdf5io_manifest_tensor_t *tensor = &m->tensors[piece->tensor];
    int64_t at = piece->first, last = piece->first + piece->count;
    char *name = hdf5io_manifest_piece_name(m, number);
    const piece_source_t source = {.file = m->files[piece->file].name,
                                   .name = name,
                                   .elems = (hsize_t)piece->count};
    herr_t status = 0;

    while (at < last && status >= 0) {
        hdf5io_box_t box;

        hdf5io_box_next(tensor, at, last, &box);
        status =
            box_map(list, tensor, &box, &source, (hsize_t)(at - piece->first));
        at += box.elems;
    }
    free(name);
    return status;
}

/* Map a whole tensor to shared.h5, where the source has the tensor's own
 * shape. */
static herr_t whole_map(hid_t list, const hdf5io_manifest_t *m,
                        const hdf5io_manifest_piece_t *piece)
{
    const hdf5io_manifest_tensor_t *tensor = &m->tensors[piece->tensor];
    hsize_t extent[MANIFEST_DIMS_MAX];
    int ndim = hdf5io_box_extent(tensor, extent);
    hid_t space = H5Screate_simple(ndim, extent, NULL);
    herr_t status;

    status = H5Pset_virtual(list, space, m->files[piece->file].name,
                            tensor->name, space);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* Creation properties with all mappings; a tensor without elements has no
 * mapping. */
static hid_t tensor_map(const hdf5io_manifest_t *m, int number)
{
    const hdf5io_manifest_tensor_t *tensor = &m->tensors[number];
    const float nothing = NAN;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    herr_t status = H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &nothing);

    if (status >= 0)
        status = H5Pset_obj_track_times(list, false);
    for (int i = 0; i < tensor->pieces && status >= 0; i++) {
        const hdf5io_manifest_piece_t *piece = &m->pieces[tensor->piece + i];

        if (strcmp(m->files[piece->file].name, MANIFEST_SHARED) == 0)
            status = whole_map(list, m, piece);
        else
            status = piece_map(list, m, tensor->piece + i);
    }
    if (status < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

static err_code_t tensor_show(hid_t file, const char *path,
                              const hdf5io_manifest_t *m, int number,
                              err_t *err)
{
    hsize_t extent[MANIFEST_DIMS_MAX];
    int ndim = hdf5io_box_extent(&m->tensors[number], extent);
    hid_t space = H5Screate_simple(ndim, extent, NULL);
    hid_t list = tensor_map(m, number), dataset = H5I_INVALID_HID;
    err_code_t rc = ERR_OK;

    if (space >= 0 && list >= 0)
        dataset =
            hdf5io_files_dataset(file, m->tensors[number].name, space, list);
    if (dataset < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot create dataset %s", path,
                        m->tensors[number].name);
    else
        H5Dclose(dataset);
    if (list >= 0)
        H5Pclose(list);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

static herr_t number_attach(hid_t file, const char *name, int64_t value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute =
        H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t status = -1;

    if (attribute >= 0) {
        status = H5Awrite(attribute, H5T_NATIVE_INT64, &value);
        H5Aclose(attribute);
    }
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* Write the attributes and datasets of the open file. Lock held. */
static err_code_t view_fill(hid_t file, const char *path,
                            const hdf5io_manifest_t *m, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (number_attach(file, "step", m->progress.step) < 0 ||
        number_attach(file, "epoch", m->progress.epoch) < 0 ||
        number_attach(file, "samples", m->progress.samples) < 0 ||
        number_attach(file, "world_size", m->world_size) < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot write attributes", path);
    for (int i = 0; i < m->tensor_count && rc == ERR_OK; i++)
        rc = tensor_show(file, path, m, i, err);
    return rc;
}

err_code_t hdf5io_files_view(hdf5io_files_t *files, err_t *err)
{
    int number = files->manifest->file_count - 1;
    char *path = hdf5io_files_path(files, number);
    hdf5io_header_t header;
    err_code_t rc;

    h5_lock();
    rc = hdf5io_header_open(path, &header, err);
    if (rc == ERR_OK)
        rc = view_fill(header.file, path, files->manifest, err);
    rc = hdf5io_header_end(&header, rc, err);
    h5_unlock();
    if (rc == ERR_OK)
        rc = hdf5io_files_write(files, number, &header, err);
    hdf5io_header_close(&header);
    free(path);
    return rc;
}
