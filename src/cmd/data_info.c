/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_info.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/data_layout.h"
#include "cmd/data_walk.h"
#include "hdf5io/h5.h"
#include "hdf5io/shard.h"
#include "hdf5io/virtual.h"

const char *cmd_data_type_name(hid_t type, char *out, size_t room)
{
    unsigned bits = (unsigned)H5Tget_size(type) * 8;

    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        snprintf(out, room, "%sint%u",
                 H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
        return out;
    case H5T_FLOAT:
        snprintf(out, room, "float%u", bits);
        return out;
    case H5T_STRING:
        return "text";
    case H5T_COMPOUND:
        return "compound";
    case H5T_ENUM:
        return "enum";
    default:
        return "other";
    }
}

/* What the walk over the datasets appends to. */
typedef struct describe {
    hid_t file;
    const char *name;
    str_buf_t *text;
    cmd_layout_ways_t ways;
} describe_t;

static void shape_add(hid_t space, str_buf_t *text)
{
    hsize_t dims[H5S_MAX_RANK];
    int ndim = H5Sget_simple_extent_dims(space, dims, NULL);

    str_buf_add(text, "[");
    for (int i = 0; i < ndim; i++)
        str_buf_add(text, "%s%llu", i > 0 ? ", " : "",
                    (unsigned long long)dims[i]);
    str_buf_add(text, "]");
}

static err_code_t dataset_describe(void *context, hid_t set, const char *path,
                                   const char *target, err_t *err)
{
    describe_t *self = context;
    str_buf_t *text = self->text;
    hid_t type = H5I_INVALID_HID, space = H5I_INVALID_HID;
    char word[32];
    int files;
    err_code_t rc = hdf5io_virtual_check(set, path, &files, err);

    if (rc != ERR_OK)
        return rc;
    type = H5Dget_type(set);
    space = H5Dget_space(set);
    if (type < 0 || space < 0) {
        rc = h5_err_set(err, ERR_DATA, "dataset %s is damaged", path);
    } else {
        str_buf_add(text, "  %-21s %-8s ", path,
                    cmd_data_type_name(type, word, sizeof word));
        shape_add(space, text);
        str_buf_add(text, " ");
        cmd_layout_name(set, text);
        if (target != NULL)
            str_buf_add(text, " -> %s", target);
        str_buf_add(text, "\n");
        cmd_layout_describe(self->file, self->name, set, path, &self->ways,
                            text);
    }
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

/* Does the attribute have exactly one value, stored in at most [room] bytes? */
static bool attribute_single(hid_t attribute, hid_t type, size_t room)
{
    hid_t space = H5Aget_space(attribute);
    bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
                  H5Tget_size(type) <= room;

    if (space >= 0)
        H5Sclose(space);
    return single;
}

static herr_t attribute_visit(hid_t group, const char *name,
                              const H5A_info_t *info, void *context)
{
    str_buf_t *text = context;
    hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    hid_t type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
    char word[256] = "";
    double real = 0;
    int64_t whole = 0;

    (void)info;
    /* Of attributes that are no single value, only the name is printed. */
    str_buf_add(text, "  %-21s ", name);
    if (type >= 0 && H5Tget_class(type) == H5T_FLOAT &&
        attribute_single(attribute, type, sizeof real) &&
        H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0)
        str_buf_add(text, "%.10g\n", real);
    else if (type >= 0 && H5Tget_class(type) == H5T_INTEGER &&
             attribute_single(attribute, type, sizeof whole) &&
             H5Aread(attribute, H5T_NATIVE_INT64, &whole) >= 0)
        str_buf_add(text, "%lld\n", (long long)whole);
    else if (type >= 0 && H5Tget_class(type) == H5T_STRING &&
             H5Tis_variable_str(type) == 0 &&
             attribute_single(attribute, type, sizeof word - 1) &&
             H5Aread(attribute, type, word) >= 0)
        str_buf_add(text, "%s\n", word);
    else
        str_buf_add(text, "(attribute)\n");
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return 0;
}

void cmd_data_prefix(const char *path, err_t *err)
{
    if (err != NULL && strncmp(err->text, path, strlen(path)) != 0)
        err_prefix(err, "%s", path);
}

err_code_t cmd_data_open(const char *path, hid_t *out, err_t *err)
{
    hid_t access;
    hid_t file;

    access = h5_access_list();
    file = access < 0 ? H5I_INVALID_HID : H5Fopen(path, H5F_ACC_RDONLY, access);
    if (access >= 0)
        H5Pclose(access);
    if (file < 0)
        return h5_err_set(err, ERR_DATA,
                          "cannot be opened as HDF5: it is truncated, damaged "
                          "or of another format");
    *out = file;
    return ERR_OK;
}

err_code_t cmd_data_info(const char *path, str_buf_t *out, err_t *err)
{
    describe_t describe = {.name = path, .text = out};
    char size[32];
    uint64_t bytes;
    hid_t file = H5I_INVALID_HID;
    hsize_t index = 0;
    err_code_t rc;

    if (access(path, F_OK) != 0)
        return err_set(err, ERR_DATA, "%s: there is no such file", path);
    rc = hdf5io_shard_probe(path, &bytes, err);
    if (rc != ERR_OK)
        return rc;
    h5_lock();
    rc = cmd_data_open(path, &file, err);
    if (rc == ERR_OK) {
        str_buf_add(out, "%s: %s\n", path, str_bytes(bytes, size, sizeof size));
        if (H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, &index,
                        attribute_visit, out) < 0)
            rc = h5_err_set(err, ERR_DATA, "its attributes cannot be listed");
    }
    describe.file = file;
    if (rc == ERR_OK)
        rc = cmd_data_walk(file, path, dataset_describe, &describe, err);
    if (rc == ERR_OK)
        cmd_layout_sum(&describe.ways, out);
    if (file >= 0)
        H5Fclose(file);
    h5_unlock();
    if (rc != ERR_OK)
        cmd_data_prefix(path, err);
    return rc;
}
