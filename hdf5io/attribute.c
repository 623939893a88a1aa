/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/attribute.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "hdf5io/h5.h"
#include "hdf5io/shard.h"

/* Is the attribute a single integer or float? */
static bool number_single(hid_t attribute)
{
    hid_t space = H5Aget_space(attribute), type = H5Aget_type(attribute);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
                  (class == H5T_INTEGER || class == H5T_FLOAT);

    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return single;
}

/* Read the attribute [name] of the open [file]. Lock held. */
static err_code_t number_read(hid_t file, const char *path, const char *name,
                              double *out, err_t *err)
{
    htri_t there = H5Aexists(file, name);
    hid_t attribute;
    err_code_t rc = ERR_OK;

    if (there == 0) {
        *out = NAN;
        return ERR_OK;
    }
    attribute = H5Aopen(file, name, H5P_DEFAULT);
    if (there < 0 || attribute < 0)
        return h5_err_set(err, ERR_DATA, "%s: cannot open attribute %s", path,
                          name);
    if (!number_single(attribute))
        rc = err_set(err, ERR_DATA,
                     "%s: attribute %s is not a number, or has several", path,
                     name);
    else if (H5Aread(attribute, H5T_NATIVE_DOUBLE, out) < 0)
        rc = h5_err_set(err, ERR_DATA, "%s: attribute %s is not a number", path,
                        name);
    H5Aclose(attribute);
    return rc;
}

/* Arguments of one try, see retry.h. */
typedef struct attribute_try {
    const char *path, *name;
    double *out;
} attribute_try_t;

/* One try of hdf5io_attribute_read. If a system call failed, errno holds the
 * reason. */
static err_code_t attribute_read(const attribute_try_t *try, err_t *err)
{
    uint64_t bytes;
    hid_t access;
    hid_t file;
    err_code_t rc = hdf5io_shard_probe(try->path, &bytes, err);
    int number;

    if (rc != ERR_OK)
        return rc;
    h5_lock();
    access = h5_access_list();
    file = H5Fopen(try->path, H5F_ACC_RDONLY, access);
    if (file < 0)
        rc = h5_err_set(err, ERR_DATA, "%s: cannot be opened as HDF5",
                        try->path);
    else
        rc = number_read(file, try->path, try->name, try->out, err);
    number = errno;
    if (file >= 0)
        H5Fclose(file);
    H5Pclose(access);
    h5_unlock();
    errno = number;
    return rc;
}

static err_code_t attribute_attempt(void *context, int *number, err_t *err)
{
    err_code_t rc;

    errno = 0;
    rc = attribute_read(context, err);
    if (rc == ERR_IO || rc == ERR_UNAVAILABLE ||
        (rc == ERR_DATA && retry_cause(errno) == RETRY_FORBIDDEN))
        *number = errno;
    return rc;
}

err_code_t hdf5io_attribute_read(const char *path, const char *name,
                                 const retry_t *retry, double *out, err_t *err)
{
    attribute_try_t try = {path, name, out};

    return retry_run(retry, path, attribute_attempt, &try, NULL, err);
}
