/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * HDF5 creates a shard with its datasets (under its lock; only metadata is
 * written) and closes it. Then the data is written by pwrite at the offsets of
 * the datasets, without the lock: ranks that are threads write in parallel, and
 * write errors are reported here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/h5.h"

/* Maximum bytes between two fsyncs. A single fsync at the end could take longer
 * than a rank may go without calling [alive]. */
#define DIRTY_MAX ((size_t)1 << 30)

char *hdf5io_files_path(const hdf5io_files_t *files, int file)
{
    return str_printf("%s/%s", files->directory,
                      files->manifest->files[file].name);
}

void hdf5io_files_empty(const char *path)
{
    if (truncate(path, 0) != 0 && errno != ENOENT)
        log_debug("hdf5io", "%s: cannot truncate: %s", path, strerror(errno));
}

hid_t hdf5io_files_layout(void)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    if (list >= 0 && (H5Pset_layout(list, H5D_CONTIGUOUS) < 0 ||
                      H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) < 0 ||
                      H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0 ||
                      H5Pset_obj_track_times(list, false) < 0)) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

hid_t hdf5io_files_create(const char *path, hid_t access)
{
    h5_lock_check();
    if (access < 0)
        return access;
    return H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, access);
}

err_code_t hdf5io_files_close(hid_t file, const char *path, err_code_t rc,
                              err_t *err)
{
    h5_lock_check();
    if (file >= 0 && H5Fclose(file) < 0 && rc == ERR_OK)
        rc = h5_err_set(err, ERR_IO, "%s: cannot close", path);
    return rc;
}

hid_t hdf5io_files_dataset(hid_t file, const char *name, hid_t space,
                           hid_t layout)
{
    hid_t dataset = H5I_INVALID_HID, link = H5Pcreate(H5P_LINK_CREATE);

    if (link < 0)
        return link;
    if (H5Pset_create_intermediate_group(link, 1) >= 0)
        dataset = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, link, layout,
                             H5P_DEFAULT);
    H5Pclose(link);
    return dataset;
}

err_code_t hdf5io_files_locate(hid_t dataset, const char *path,
                               const char *name, int64_t *offset, err_t *err)
{
    H5D_space_status_t status;
    haddr_t address;

    h5_lock_check();
    if (H5Dget_space_status(dataset, &status) < 0 ||
        status != H5D_SPACE_STATUS_ALLOCATED)
        return h5_err_set(err, ERR_IO, "%s: %s has no space allocated", path,
                          name);
    address = H5Dget_offset(dataset);
    if (address == HADDR_UNDEF)
        return h5_err_set(err, ERR_IO, "%s: %s has no offset", path, name);
    *offset = (int64_t)address;
    return ERR_OK;
}

/* Create the 1-dimensional dataset of a piece. Lock held. */
static err_code_t piece_create(hid_t file, hid_t layout, const char *path,
                               const char *name, hdf5io_manifest_piece_t *piece,
                               err_t *err)
{
    hsize_t extent = (hsize_t)piece->count;
    hid_t space = H5Screate_simple(1, &extent, NULL);
    hid_t dataset = hdf5io_files_dataset(file, name, space, layout);
    err_code_t rc;

    if (dataset < 0)
        rc =
            h5_err_set(err, ERR_IO, "%s: cannot create dataset %s", path, name);
    else
        rc = hdf5io_files_locate(dataset, path, name, &piece->offset, err);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

/* Create the file and the datasets of all its pieces. Lock held. */
static err_code_t shard_layout(hdf5io_manifest_t *m, int number,
                               const char *path, err_t *err)
{
    hid_t access = h5_access_list(), layout = hdf5io_files_layout();
    hid_t file = layout < 0 ? layout : hdf5io_files_create(path, access);
    err_code_t rc = ERR_OK;

    if (file < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot create", path);
    for (int i = 0; i < m->piece_count && rc == ERR_OK; i++) {
        char *name;

        if (m->pieces[i].file != number)
            continue;
        name = hdf5io_manifest_piece_name(m, i);
        rc = piece_create(file, layout, path, name, &m->pieces[i], err);
        free(name);
    }
    rc = hdf5io_files_close(file, path, rc, err);
    if (layout >= 0)
        H5Pclose(layout);
    if (access >= 0)
        H5Pclose(access);
    return rc;
}

/* An open shard. */
typedef struct shard_file {
    const hdf5io_files_t *files;
    const char *path;
    int fd;
    size_t dirty; /* bytes that are not synced yet */
} shard_file_t;

/* Write [run] of this rank's share, which was planned as [piece]. */
static err_code_t piece_fill(shard_file_t *shard,
                             const hdf5io_manifest_piece_t *piece,
                             const hdf5io_run_t *run, err_t *err)
{
    const hdf5io_files_t *files = shard->files;
    const char *data = (const char *)run->data;
    size_t bytes = (size_t)piece->count * sizeof(float), done = 0;
    err_code_t rc = ERR_OK;

    check(run->tensor == piece->tensor && run->first == piece->first &&
              run->count == piece->count,
          "rank %d: tensor %d from %lld on is planned, its share has tensor %d "
          "from %lld on",
          files->rank, piece->tensor, (long long)piece->first, run->tensor,
          (long long)run->first);
    check(data != NULL, "rank %d has no elements from %lld on of tensor %d",
          files->rank, (long long)piece->first, piece->tensor);
    check(piece->offset > 0, "tensor %d has no place in %s", piece->tensor,
          shard->path);
    while (done < bytes && rc == ERR_OK) {
        size_t room = DIRTY_MAX - shard->dirty;
        size_t bite = bytes - done < room ? bytes - done : room;

        rc = hdf5io_io_write(
            files->io, shard->fd, shard->path,
            &(hdf5io_io_data_t){data + done, bite, piece->offset + (off_t)done},
            err);
        done += bite;
        shard->dirty += bite;
        check(shard->dirty <= DIRTY_MAX, "%zu bytes are not synced",
              shard->dirty);
        if (rc == ERR_OK && shard->dirty == DIRTY_MAX) {
            rc = hdf5io_io_flush(files->io, shard->fd, shard->path, err);
            shard->dirty = 0;
        }
    }
    return rc;
}

static err_code_t shard_fill(hdf5io_files_t *files, int number,
                             const char *path, err_t *err)
{
    const hdf5io_manifest_t *m = files->manifest;
    shard_file_t shard = {.files = files, .path = path};
    err_code_t rc;

    rc = file_open_regular(path, O_WRONLY, FILE_OWN, &shard.fd, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0, n = 0; i < m->piece_count && rc == ERR_OK; i++) {
        hdf5io_run_t run;

        if (m->pieces[i].file != number)
            continue;
        run = hdf5io_share_run(files->share, n++);
        rc = piece_fill(&shard, &m->pieces[i], &run, err);
    }
    if (rc == ERR_OK)
        rc = hdf5io_io_flush(files->io, shard.fd, path, err);
    if (close(shard.fd) != 0 && rc == ERR_OK)
        rc =
            err_set(err, ERR_IO, "%s: close failed: %s", path, strerror(errno));
    return rc;
}

err_code_t hdf5io_files_hash(hdf5io_files_t *files, int file, err_t *err)
{
    hdf5io_manifest_file_t *entry = &files->manifest->files[file];
    hdf5io_sums_t sums = {.block_bytes = files->manifest->block_bytes};
    char *path = hdf5io_files_path(files, file);
    err_code_t rc = hdf5io_io_hash(files->io, path, &sums, NULL, err);

    if (rc == ERR_OK) {
        entry->hash = sums.hash;
        entry->bytes = sums.bytes;
        entry->blocks = sums.blocks;
    }
    if (rc == ERR_OK && files->disk)
        rc = hdf5io_io_compare(files->io, path, entry->hash, err);
    free(path);
    return rc;
}

err_code_t hdf5io_files_shard(hdf5io_files_t *files, err_t *err)
{
    int number = hdf5io_manifest_file_of(files->manifest, files->rank);
    char *path;
    err_code_t rc;

    if (number < 0)
        return ERR_OK;
    path = hdf5io_files_path(files, number);
    h5_lock();
    rc = shard_layout(files->manifest, number, path, err);
    h5_unlock();
    if (rc == ERR_OK)
        rc = shard_fill(files, number, path, err);
    if (rc == ERR_OK)
        rc = hdf5io_files_hash(files, number, err);
    if (rc == ERR_OK)
        files->bytes += (int64_t)files->manifest->files[number].bytes;
    else
        hdf5io_files_empty(path);
    free(path);
    return rc;
}
