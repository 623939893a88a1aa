/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* As with shards of checkpoints, HDF5 makes the headers, and data is written to
 * the offsets of the datasets, so that no two processes use HDF5 on one
 * file. */
#include "hdf5io/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/h5.h"

int64_t hdf5io_output_bytes(const hdf5io_output_t *output)
{
    int64_t bytes = output->whole ? sizeof(int64_t) : sizeof(float);

    for (int d = 0; d < output->ndim; d++)
        bytes *= output->dims[d];
    return bytes;
}

/* Create one dataset. Lock held. */
static err_code_t output_create(hid_t file, hid_t layout, const char *draft,
                                int64_t samples, hdf5io_output_t *output,
                                err_t *err)
{
    hsize_t extent[1 + HDF5IO_OUTPUT_DIMS] = {(hsize_t)samples};
    hid_t space, dataset;
    err_code_t rc;

    for (int d = 0; d < output->ndim; d++)
        extent[1 + d] = (hsize_t)output->dims[d];
    space = H5Screate_simple(1 + output->ndim, extent, NULL);
    dataset = H5Dcreate2(file, output->name,
                         output->whole ? H5T_STD_I64LE : H5T_IEEE_F32LE, space,
                         H5P_DEFAULT, layout, H5P_DEFAULT);
    rc = dataset < 0 ? h5_err_set(err, ERR_IO, "%s: cannot create dataset %s",
                                  draft, output->name)
                     : hdf5io_files_locate(dataset, draft, output->name,
                                           &output->offset, err);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

err_code_t hdf5io_outputs_create(const char *draft, int64_t samples,
                                 hdf5io_output_t *outputs, int count,
                                 err_t *err)
{
    hid_t access, layout, file;
    err_code_t rc = ERR_OK;

    h5_lock();
    access = h5_access_list();
    layout = hdf5io_files_layout();
    file = layout < 0 ? layout : hdf5io_files_create(draft, access);
    if (file < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot create", draft);
    for (int i = 0; i < count && rc == ERR_OK; i++)
        rc = output_create(file, layout, draft, samples, &outputs[i], err);
    if (file >= 0) {
        rc = hdf5io_files_close(file, draft, rc, err);
        if (rc != ERR_OK)
            unlink(draft);
    }
    if (layout >= 0)
        H5Pclose(layout);
    if (access >= 0)
        H5Pclose(access);
    h5_unlock();
    return rc;
}

err_code_t hdf5io_outputs_open(const char *draft, int *fd, err_t *err)
{
    return file_open_regular(draft, O_WRONLY, FILE_OWN, fd, err);
}

err_code_t hdf5io_outputs_write(const hdf5io_outputs_file_t *file,
                                const hdf5io_output_t *output, int64_t row,
                                int64_t rows, const void *data, err_t *err)
{
    const int64_t bytes = hdf5io_output_bytes(output);

    return hdf5io_io_write(
        &hdf5io_io_system, file->fd, file->draft,
        &(hdf5io_io_data_t){data, (size_t)(rows * bytes),
                            (off_t)(output->offset + row * bytes)},
        err);
}

err_code_t hdf5io_outputs_sync(const hdf5io_outputs_file_t *file, err_t *err)
{
    return hdf5io_io_flush(&hdf5io_io_system, file->fd, file->draft, err);
}

err_code_t hdf5io_outputs_publish(const char *draft, const char *path,
                                  err_t *err)
{
    char *copy = str_dup(path);
    err_code_t rc;

    /* The headers were written by another descriptor, which is closed. */
    rc = hdf5io_io_sync(&hdf5io_io_system, draft, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_rename(&hdf5io_io_system, draft, path, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_sync(&hdf5io_io_system, dirname(copy), err);
    free(copy);
    return rc;
}
