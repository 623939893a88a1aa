/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Both commands walk over the links of a file and open what they lead to. The
 * walk stops at the first fault; its sentence is carried in the visitor.
 */
#include "cmd/data_info.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/h5.h"
#include "hdf5io/shard.h"

enum { SLAB_BYTES = 8 << 20 }; /* read at a time: enough to hide the latency */

typedef struct visitor {
    err_code_t (*dataset)(struct visitor *visitor, hid_t set, const char *name,
                          err_t *err);
    str_buf_t *text;             /* info */
    cmd_verify_report_t *report; /* verify */
    err_code_t code;
    err_t *err;
} visitor_t;

/* Name of [type] as h5py would give it. */
static const char *type_name(hid_t type, char *out, size_t room)
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

static const char *layout_name(hid_t set)
{
    hid_t list = H5Dget_create_plist(set);
    const char *name = "other layout";
    int filters;

    if (list < 0)
        return name;
    filters = H5Pget_nfilters(list);
    switch (H5Pget_layout(list)) {
    case H5D_CONTIGUOUS:
        name = "contiguous";
        break;
    case H5D_CHUNKED:
        name = filters > 0 ? "chunked, filtered" : "chunked";
        break;
    case H5D_COMPACT:
        name = "compact";
        break;
    case H5D_VIRTUAL:
        name = "virtual";
        break;
    default:
        break;
    }
    H5Pclose(list);
    return name;
}

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

static err_code_t dataset_describe(visitor_t *visitor, hid_t set,
                                   const char *name, err_t *err)
{
    hid_t type = H5Dget_type(set);
    hid_t space = H5Dget_space(set);
    err_code_t code = ERR_OK;
    char word[32];

    if (type < 0 || space < 0) {
        code = h5_err_set(err, ERR_DATA, "dataset /%s is damaged", name);
    } else {
        str_buf_add(visitor->text, "  /%-20s %-8s ", name,
                    type_name(type, word, sizeof word));
        shape_add(space, visitor->text);
        str_buf_add(visitor->text, " %s\n", layout_name(set));
    }
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return code;
}

/* Read rows [first, first + count) of [set] into [buffer]; count 0: all. */
static bool slab_read(hid_t set, hid_t type, hid_t space, hsize_t first,
                      hsize_t count, void *buffer)
{
    hsize_t start[H5S_MAX_RANK] = {first};
    hsize_t dims[H5S_MAX_RANK];
    int ndim = H5Sget_simple_extent_dims(space, dims, NULL);
    hid_t memory = H5I_INVALID_HID;
    bool done = false;

    if (ndim == 0)
        return H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) >= 0;
    dims[0] = count;
    memory = H5Screate_simple(ndim, dims, NULL);
    if (memory >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, dims, NULL) >=
            0 &&
        H5Dread(set, type, memory, space, H5P_DEFAULT, buffer) >= 0) {
        done = true;
        if (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0)
            H5Dvlen_reclaim(type, memory, H5P_DEFAULT, buffer);
    }
    if (memory >= 0)
        H5Sclose(memory);
    return done;
}

/* Read all of [set] in slabs of whole rows. */
static err_code_t dataset_slabs(hid_t set, hid_t type, hid_t space,
                                const char *name, int64_t *bytes, err_t *err)
{
    hssize_t points = H5Sget_simple_extent_npoints(space);
    hsize_t dims[H5S_MAX_RANK] = {1};
    size_t row, rows, item = H5Tget_size(type);
    void *buffer = NULL;
    err_code_t code;

    if (points == 0)
        return ERR_OK;
    if (points < 0 || item == 0 ||
        H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return h5_err_set(err, ERR_DATA, "dataset /%s is damaged", name);
    row = (size_t)points / dims[0] * item;
    rows = row < SLAB_BYTES ? SLAB_BYTES / row : 1;
    rows = rows < dims[0] ? rows : dims[0];
    code = mem_alloc(rows * row, "reading a dataset", &buffer, err);
    for (hsize_t i = 0; i < dims[0] && code == ERR_OK; i += rows) {
        hsize_t left = dims[0] - i;

        if (!slab_read(set, type, space, i, left < rows ? left : rows, buffer))
            code = h5_err_set(err, ERR_DATA,
                              "dataset /%s cannot be read at row %llu", name,
                              (unsigned long long)i);
    }
    mem_free(buffer);
    if (code == ERR_OK)
        *bytes += (int64_t)((size_t)points * item);
    return code;
}

static err_code_t dataset_verify(visitor_t *visitor, hid_t set,
                                 const char *name, err_t *err)
{
    hid_t type = H5Dget_type(set);
    hid_t space = H5Dget_space(set);
    err_code_t code;

    if (type < 0 || space < 0)
        code = h5_err_set(err, ERR_DATA, "dataset /%s is damaged", name);
    else
        code =
            dataset_slabs(set, type, space, name, &visitor->report->bytes, err);
    visitor->report->datasets++;
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return code;
}

static herr_t link_visit(hid_t group, const char *name, const H5L_info_t *info,
                         void *context)
{
    visitor_t *visitor = context;
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);

    (void)info;
    if (object < 0) {
        visitor->code = h5_err_set(visitor->err, ERR_DATA,
                                   "object /%s cannot be opened", name);
        return -1;
    }
    if (H5Iget_type(object) == H5I_DATASET)
        visitor->code = visitor->dataset(visitor, object, name, visitor->err);
    H5Oclose(object);
    return visitor->code == ERR_OK ? 0 : -1;
}

static err_code_t links_walk(hid_t file, visitor_t *visitor, err_t *err)
{
    herr_t status;

    visitor->code = ERR_OK;
    visitor->err = err;
    status = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, link_visit, visitor);
    if (visitor->code != ERR_OK)
        return visitor->code;
    if (status < 0)
        return h5_err_set(err, ERR_DATA, "its objects cannot be listed");
    return ERR_OK;
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

    /* Scalars only (data_size says so); others are named without a value. */
    str_buf_add(text, "  %-21s ", name);
    if (type >= 0 && H5Tget_class(type) == H5T_FLOAT && info->data_size <= 8 &&
        H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0)
        str_buf_add(text, "%.10g\n", real);
    else if (type >= 0 && H5Tget_class(type) == H5T_INTEGER &&
             info->data_size <= 8 &&
             H5Tget_size(type) == (size_t)info->data_size &&
             H5Aread(attribute, H5T_NATIVE_INT64, &whole) >= 0)
        str_buf_add(text, "%lld\n", (long long)whole);
    else if (type >= 0 && H5Tget_class(type) == H5T_STRING &&
             H5Tis_variable_str(type) == 0 && info->data_size < sizeof word &&
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

static err_code_t file_open(const char *path, hid_t *out, err_t *err)
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
    visitor_t visitor = {.dataset = dataset_describe, .text = out};
    char size[32];
    uint64_t bytes;
    hid_t file = H5I_INVALID_HID;
    hsize_t index = 0;
    err_code_t code;

    if (access(path, F_OK) != 0)
        return err_set(err, ERR_DATA, "%s: there is no such file", path);
    code = hdf5io_shard_probe(path, &bytes, err);
    if (code != ERR_OK)
        return code;
    h5_lock();
    code = file_open(path, &file, err);
    if (code == ERR_OK) {
        str_buf_add(out, "%s: %s\n", path, str_bytes(bytes, size, sizeof size));
        if (H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, &index,
                        attribute_visit, out) < 0)
            code = h5_err_set(err, ERR_DATA, "its attributes cannot be listed");
    }
    if (code == ERR_OK)
        code = links_walk(file, &visitor, err);
    if (file >= 0)
        H5Fclose(file);
    h5_unlock();
    if (code != ERR_OK)
        err_prefix(err, "%s", path);
    return code;
}

err_code_t cmd_data_verify(const char *path, cmd_verify_report_t *out,
                           err_t *err)
{
    cmd_verify_report_t report = {0};
    visitor_t visitor = {.dataset = dataset_verify, .report = &report};
    hid_t file = H5I_INVALID_HID;
    uint64_t size;
    err_code_t code = hash_file(path, &report.hash, &size, err);

    if (code != ERR_OK)
        return code;
    h5_lock();
    code = file_open(path, &file, err);
    if (code == ERR_OK)
        code = links_walk(file, &visitor, err);
    if (code == ERR_OK && report.datasets == 0)
        code = err_set(err, ERR_DATA, "it holds no dataset");
    if (file >= 0)
        H5Fclose(file);
    h5_unlock();
    if (code == ERR_OK)
        *out = report;
    else
        err_prefix(err, "%s", path);
    return code;
}
