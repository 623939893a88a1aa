/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* HDF5 returns zeros, without an error, beyond the end of an external file. So
 * the files are checked before they are read. */
#include "hdf5io/external.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/home.h"

/* One external file, and the range of it that holds part of the data. */
typedef struct external_part {
    const char *file, *path; /* HDF5 file and dataset, for sentences */
    char *raw;               /* path of the external file; owned */
    uint64_t offset, bytes;
} external_part_t;

static err_code_t external_part_check(const external_part_t *part, err_t *err)
{
    struct stat status;
    uint64_t end;

    if (stat(part->raw, &status) != 0)
        return err_set(err, ERR_DATA,
                       "%s: the values of %s are in the external file %s, "
                       "which does not open: %s",
                       part->file, part->path, part->raw, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_DATA,
                       "%s: the values of %s are in %s, which is not a file",
                       part->file, part->path, part->raw);
    if (!__builtin_add_overflow(part->offset, part->bytes, &end) &&
        end <= (uint64_t)status.st_size)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s: the values of %s are in the external file %s, from "
                   "byte %" PRIu64
                   " on, which has %lld bytes: expected %" PRIu64
                   " more from there: copy it again",
                   part->file, part->path, part->raw, part->offset,
                   (long long)status.st_size, part->bytes);
}

err_code_t hdf5io_external_check(const external_data_t *data, char **only,
                                 uint64_t *offset, err_t *err)
{
    const int count = H5Pget_external_count(data->create);
    err_code_t rc = ERR_OK;
    char *first = NULL;
    uint64_t left = data->bytes, first_offset = 0;

    h5_lock_check();
    for (int i = 0; i < count && left > 0 && rc == ERR_OK; i++) {
        external_part_t part = {.file = data->file, .path = data->path};
        char name[PATH_MAX] = "";
        hsize_t size = 0;
        off_t at = 0;

        if (H5Pget_external(data->create, (unsigned)i, sizeof name - 1, name,
                            &at, &size) < 0 ||
            at < 0)
            return err_set(err, ERR_DATA,
                           "%s: the list of external files of %s is damaged",
                           data->file, data->path);
        part.raw = hdf5io_home_raw(data->file, name);
        part.offset = (uint64_t)at;
        part.bytes = size < left ? size : left;
        rc = external_part_check(&part, err);
        left -= part.bytes;
        if (i == 0 && left == 0) {
            first = part.raw;
            first_offset = part.offset;
        } else {
            free(part.raw);
        }
    }
    if (rc == ERR_OK && left > 0)
        rc = err_set(err, ERR_DATA,
                     "%s: the external files of %s hold %" PRIu64
                     " bytes less than it has",
                     data->file, data->path, left);
    if (rc != ERR_OK) {
        free(first);
        return rc;
    }
    *only = first;
    *offset = first_offset;
    return ERR_OK;
}
