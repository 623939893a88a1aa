/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Datasets are contiguous and allocated early, so that readers can use pread at
 * their offsets. HDF5 does not store the times of objects: only these bytes
 * would differ between two runs with one seed.
 */
#include "cmd/data_shard.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "hdf5io/h5.h"

static hid_t stored_type(cmd_shard_type_t type)
{
    const hid_t types[] = {[CMD_SHARD_INT8] = H5T_STD_I8LE,
                           [CMD_SHARD_UINT8] = H5T_STD_U8LE,
                           [CMD_SHARD_FLOAT32] = H5T_IEEE_F32LE};

    return types[type];
}

static hid_t memory_type(cmd_shard_type_t type)
{
    const hid_t types[] = {[CMD_SHARD_INT8] = H5T_NATIVE_SCHAR,
                           [CMD_SHARD_UINT8] = H5T_NATIVE_UCHAR,
                           [CMD_SHARD_FLOAT32] = H5T_NATIVE_FLOAT};

    return types[type];
}

/* Make the creation property list of the datasets; < 0 on failure. */
static hid_t creation_list(void)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    if (list < 0)
        return list;
    if (H5Pset_obj_track_times(list, false) < 0 ||
        H5Pset_layout(list, H5D_CONTIGUOUS) < 0 ||
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) < 0 ||
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

static err_code_t field_write(hid_t file, int64_t rows,
                              const cmd_shard_field_t *field, err_t *err)
{
    hsize_t dims[CMD_SHARD_DIMS_MAX + 1] = {(hsize_t)rows};
    hid_t space = H5I_INVALID_HID, list = H5I_INVALID_HID;
    hid_t set = H5I_INVALID_HID;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < field->ndim; i++)
        dims[i + 1] = (hsize_t)field->dims[i];
    space = H5Screate_simple(field->ndim + 1, dims, NULL);
    list = creation_list();
    if (space >= 0 && list >= 0)
        set = H5Dcreate2(file, field->name, stored_type(field->type), space,
                         H5P_DEFAULT, list, H5P_DEFAULT);
    if (set < 0 || H5Dwrite(set, memory_type(field->type), H5S_ALL, H5S_ALL,
                            H5P_DEFAULT, field->data) < 0)
        rc = h5_err_set(err, ERR_IO, "cannot write dataset %s", field->name);
    if (set >= 0 && H5Dclose(set) < 0 && rc == ERR_OK)
        rc = h5_err_set(err, ERR_IO, "cannot write dataset %s", field->name);
    if (list >= 0)
        H5Pclose(list);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

/* Write one scalar attribute of the root group; [type] is the type both in the
 * file and in memory. */
static err_code_t attribute_write(hid_t file, const char *name, hid_t type,
                                  const void *value, err_t *err)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5I_INVALID_HID;
    err_code_t rc = ERR_OK;

    if (space >= 0)
        attribute =
            H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0 || H5Awrite(attribute, type, value) < 0)
        rc = h5_err_set(err, ERR_IO, "cannot write attribute %s", name);
    if (attribute >= 0)
        H5Aclose(attribute);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

static err_code_t text_write(hid_t file, const char *name, const char *text,
                             err_t *err)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    err_code_t rc;

    if (type < 0 || H5Tset_size(type, strlen(text) + 1) < 0)
        rc = h5_err_set(err, ERR_IO, "cannot write attribute %s", name);
    else
        rc = attribute_write(file, name, type, text, err);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

static err_code_t content_write(hid_t file, const cmd_shard_t *shard,
                                err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < shard->field_count; i++) {
        rc = field_write(file, shard->rows, &shard->fields[i], err);
        if (rc != ERR_OK)
            return rc;
    }
    if (shard->seeded)
        rc =
            attribute_write(file, "seed", H5T_NATIVE_UINT64, &shard->seed, err);
    if (rc != ERR_OK || isnan(shard->bound))
        return rc;
    rc = attribute_write(file, "bound_accuracy", H5T_NATIVE_DOUBLE,
                         &shard->bound, err);
    if (rc == ERR_OK)
        rc = text_write(file, "bound_name", shard->bound_by, err);
    return rc;
}

/* Create file [path] and write the whole shard. HDF5 lock held. */
static err_code_t file_fill(const char *path, const cmd_shard_t *shard,
                            err_t *err)
{
    hid_t access = h5_access_list();
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t file = H5I_INVALID_HID;
    err_code_t rc;

    if (access >= 0 && create >= 0 &&
        H5Pset_obj_track_times(create, false) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    if (file < 0)
        rc = h5_err_set(err, ERR_IO, "cannot create the file");
    else
        rc = content_write(file, shard, err);
    if (file >= 0 && H5Fclose(file) < 0 && rc == ERR_OK)
        rc = h5_err_set(err, ERR_IO, "cannot write the file");
    if (create >= 0)
        H5Pclose(create);
    if (access >= 0)
        H5Pclose(access);
    return rc;
}

err_code_t cmd_shard_write(const char *path, const cmd_shard_t *shard,
                           err_t *err)
{
    char *temporary = str_printf("%s.tmp", path);
    err_code_t rc;

    h5_lock();
    rc = file_fill(temporary, shard, err);
    h5_unlock();
    if (rc != ERR_OK) {
        err_prefix(err, "%s", path);
        goto out;
    }
    rc = file_sync(temporary, err);
    if (rc == ERR_OK && rename(temporary, path) != 0)
        rc = err_set(err, ERR_IO, "%s: cannot rename %s to it: %s", path,
                     temporary, strerror(errno));
out:
    if (rc != ERR_OK)
        unlink(temporary);
    free(temporary);
    return rc;
}

err_code_t cmd_shards_clear(const char *directory, const char *name, bool force,
                            err_t *err)
{
    char *pattern = str_printf("%s/%s-*.h5", directory, name);
    err_code_t rc = ERR_OK;
    glob_t found;
    int status = glob(pattern, 0, NULL, &found);

    if (status == GLOB_NOMATCH)
        goto out;
    if (status != 0) {
        rc = err_set(err, ERR_IO, "%s: cannot be listed", pattern);
        goto out;
    }
    if (!force)
        rc = err_set(err, ERR_USAGE,
                     "%s is there already: choose another directory, or add "
                     "--force to replace the shards",
                     found.gl_pathv[0]);
    for (size_t i = 0; i < found.gl_pathc && rc == ERR_OK; i++)
        rc = file_remove_tree(found.gl_pathv[i], err);
    globfree(&found);
out:
    free(pattern);
    return rc;
}

err_code_t cmd_shards_begin(const char *directory, bool force, err_t *err)
{
    err_code_t rc = file_make_dirs(directory, err);

    if (rc == ERR_OK)
        rc = cmd_shards_clear(directory, "train", force, err);
    return rc == ERR_OK ? cmd_shards_clear(directory, "valid", force, err) : rc;
}

err_code_t cmd_shards_put(const char *directory, const char *split, int shard,
                          const cmd_shard_t *content, int64_t *bytes,
                          err_t *err)
{
    char *path = str_printf("%s/%s-%02d.h5", directory, split, shard);
    err_code_t rc = cmd_shard_write(path, content, err);
    struct stat status;

    if (rc == ERR_OK && bytes != NULL && stat(path, &status) == 0)
        *bytes += status.st_size;
    free(path);
    return rc;
}
