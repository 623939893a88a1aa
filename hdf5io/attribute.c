/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/attribute.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/shard.h"

/* A question, and where the answer goes. */
typedef struct question {
    /* Ask the open [file]. Lock held. */
    err_code_t (*ask)(hid_t file, const struct question *question, err_t *err);
    const char *path, *name;
    double *number;
    bool *there;
} question_t;

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

/* Read the attribute. */
static err_code_t number_ask(hid_t file, const question_t *question, err_t *err)
{
    const char *path = question->path, *name = question->name;
    double *out = question->number;
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

/* Look for the link. H5Lexists needs the groups that lead to it, so they are
 * looked for first. */
static err_code_t link_ask(hid_t file, const question_t *question, err_t *err)
{
    char *part = str_dup(question->name);
    htri_t there = 1;

    (void)err;
    for (char *end = part; part[0] != '\0' && end != NULL && there > 0;) {
        end = strchr(end + 1, '/');
        if (end != NULL)
            *end = '\0';
        if (strcmp(part, "/") != 0)
            there = H5Lexists(file, part, H5P_DEFAULT);
        if (end != NULL)
            *end = '/';
    }
    free(part);
    *question->there = there != 0;
    return ERR_OK;
}

/* One try. If a system call failed, errno holds the reason. */
static err_code_t question_try(const question_t *question, err_t *err)
{
    uint64_t bytes;
    hid_t access;
    hid_t file;
    err_code_t rc = hdf5io_shard_probe(question->path, &bytes, err);
    int number;

    if (rc != ERR_OK)
        return rc;
    h5_lock();
    access = h5_access_list();
    file = H5Fopen(question->path, H5F_ACC_RDONLY, access);
    if (file < 0)
        rc = h5_err_set(err, ERR_DATA, "%s: cannot be opened as HDF5",
                        question->path);
    else
        rc = question->ask(file, question, err);
    number = errno;
    if (file >= 0)
        H5Fclose(file);
    H5Pclose(access);
    h5_unlock();
    errno = number;
    return rc;
}

static err_code_t question_attempt(void *context, int *number, err_t *err)
{
    err_code_t rc;

    errno = 0;
    rc = question_try(context, err);
    if (rc == ERR_IO || rc == ERR_UNAVAILABLE ||
        (rc == ERR_DATA && retry_cause(errno) == RETRY_FORBIDDEN))
        *number = errno;
    return rc;
}

err_code_t hdf5io_attribute_read(const char *path, const char *name,
                                 const retry_t *retry, double *out, err_t *err)
{
    question_t question = {
        .ask = number_ask, .path = path, .name = name, .number = out};

    return retry_run(retry, path, question_attempt, &question, NULL, err);
}

err_code_t hdf5io_attribute_link(const char *path, const char *name,
                                 const retry_t *retry, bool *out, err_t *err)
{
    question_t question = {
        .ask = link_ask, .path = path, .name = name, .there = out};

    return retry_run(retry, path, question_attempt, &question, NULL, err);
}
