/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_attribute.h"

#include <stdbool.h>
#include <stdlib.h>

#include "hdf5io/h5.h"

/* Copy the values of [source] to a new attribute [name] of [to]. */
static bool values_copy(hid_t source, hid_t to, const char *name, hid_t type,
                        hid_t space)
{
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const bool pointers = H5Tdetect_class(type, H5T_VLEN) > 0 ||
                          H5Tdetect_class(type, H5T_STRING) > 0;
    void *values = NULL;
    hid_t made = H5I_INVALID_HID;
    bool good = false, read = false;

    if (count >= 0)
        values = calloc((size_t)count + 1, H5Tget_size(type));
    if (values != NULL)
        made = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (made >= 0)
        read = count == 0 || H5Aread(source, type, values) >= 0;
    if (read)
        good = count == 0 || H5Awrite(made, type, values) >= 0;
    if (read && count > 0 && pointers)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
    if (made >= 0)
        good = H5Aclose(made) >= 0 && good;
    free(values);
    return good;
}

/* Called for each attribute of the source; [context] is where they go. */
static herr_t attribute_copy(hid_t from, const char *name,
                             const H5A_info_t *info, void *context)
{
    const hid_t to = *(hid_t *)context;
    const hid_t source = H5Aopen(from, name, H5P_DEFAULT);
    const hid_t stored = source >= 0 ? H5Aget_type(source) : H5I_INVALID_HID;
    /* A type with a name belongs to its file. */
    const hid_t type = stored >= 0 ? H5Tcopy(stored) : H5I_INVALID_HID;
    const hid_t space = source >= 0 ? H5Aget_space(source) : H5I_INVALID_HID;
    bool good = type >= 0 && space >= 0;

    (void)info;
    if (good && H5Aexists(to, name) == 0 &&
        H5Tdetect_class(type, H5T_REFERENCE) <= 0)
        good = values_copy(source, to, name, type, space);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (stored >= 0)
        H5Tclose(stored);
    if (source >= 0)
        H5Aclose(source);
    return good ? 0 : -1;
}

err_code_t cmd_attributes_copy(hid_t from, hid_t to, const char *path,
                               err_t *err)
{
    const hid_t source = H5Oopen(from, path, H5P_DEFAULT);
    hid_t target = H5I_INVALID_HID;
    hsize_t index = 0;
    err_code_t rc = ERR_OK;

    if (source < 0)
        return h5_err_set(err, ERR_DATA, "%s cannot be opened", path);
    target = H5Oopen(to, path, H5P_DEFAULT);
    if (target < 0 || H5Aiterate2(source, H5_INDEX_NAME, H5_ITER_INC, &index,
                                  attribute_copy, &target) < 0)
        rc = h5_err_set(err, ERR_IO, "the attributes of %s cannot be copied",
                        path);
    if (target >= 0)
        H5Oclose(target);
    H5Oclose(source);
    return rc;
}
