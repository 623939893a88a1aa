/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_repair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "hdf5io/checkpoint.h"

/* Refuse if there is a checkpoint of the step of [entry]. */
static err_code_t step_check(const char *directory, const hdf5io_entry_t *entry,
                             err_t *err)
{
    char *final = hdf5io_dir_path(directory, "", entry->step, 0);
    struct stat st;
    err_code_t rc = ERR_OK;

    if (lstat(final, &st) == 0)
        rc = err_set(err, ERR_DATA, "there is a checkpoint of its step: %s",
                     strrchr(final, '/') + 1);
    free(final);
    return rc;
}

err_code_t hdf5io_repair_check(const char *directory,
                               const hdf5io_entry_t *entry, err_t *err)
{
    char *path = str_printf("%s/%s", directory, entry->name);
    hdf5io_checkpoint_info_t info = {.path = ""};
    err_code_t rc = step_check(directory, entry, err);

    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_verify(path, &info, err);
    if (rc == ERR_OK && info.progress.step != entry->step)
        rc = err_set(err, ERR_DATA,
                     "its manifest is that of step %" PRId64
                     ", expected step %" PRId64,
                     info.progress.step, entry->step);
    free(path);
    return rc;
}

err_code_t hdf5io_repair_adopt(const char *directory,
                               const hdf5io_entry_t *entry, err_t *err)
{
    const hdf5io_io_t *io = &hdf5io_io_system;
    char *path = str_printf("%s/%s", directory, entry->name);
    char *final = hdf5io_dir_path(directory, "", entry->step, 0);
    err_code_t rc = step_check(directory, entry, err);

    if (rc == ERR_OK)
        rc = hdf5io_dir_sync(io, path, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_rename(io, path, final, err);
    if (rc == ERR_OK)
        rc = hdf5io_io_sync(io, directory, err);
    free(final);
    free(path);
    return rc;
}
