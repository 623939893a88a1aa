/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint_manifest.h"

err_code_t hdf5io_sweep_leave(const char *path, err_t *err)
{
    char *manifest = str_printf("%s/" MANIFEST_NAME, path);
    err_code_t rc = file_remove(manifest, err);

    free(manifest);
    return rc;
}

bool hdf5io_sweep_takes(const char *directory, const hdf5io_entry_t *entry)
{
    char *path = str_printf("%s/%s", directory, entry->name);
    char *manifest = str_printf("%s/" MANIFEST_NAME, path);
    struct stat st;
    const bool takes = entry->kind == HDF5IO_TRASH && lstat(path, &st) == 0 &&
                       S_ISDIR(st.st_mode) && lstat(manifest, &st) != 0 &&
                       errno == ENOENT;

    free(manifest);
    free(path);
    return takes;
}

/* Delete the files in [path], then [path]. */
static err_code_t remainder_remove(const hdf5io_sweep_t *sweep,
                                   const char *path, err_t *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool stopped = false;
    err_code_t rc = ERR_OK;

    if (dir == NULL && fd >= 0)
        close(fd);
    while (dir != NULL && rc == ERR_OK && (entry = readdir(dir)) != NULL) {
        char *file;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        stopped = sweep->stop(sweep->context);
        if (stopped)
            break;
        file = str_printf("%s/%s", path, entry->d_name);
        rc = file_remove_tree(file, err);
        free(file);
    }
    if (dir != NULL)
        closedir(dir);
    return rc == ERR_OK && !stopped ? file_remove_tree(path, err) : rc;
}

void hdf5io_sweep(const hdf5io_io_t *io, const hdf5io_sweep_t *sweep)
{
    hdf5io_entry_t *entries = NULL;
    int count = 0;
    err_t err = ERR_INIT;
    err_code_t rc =
        hdf5io_dir_list(io, sweep->directory, &entries, &count, &err);

    for (int i = 0; i < count; i++) {
        err_t why = ERR_INIT;
        char *path;

        if (sweep->stop(sweep->context))
            break;
        if (!hdf5io_sweep_takes(sweep->directory, &entries[i]))
            continue;
        path = str_printf("%s/%s", sweep->directory, entries[i].name);
        if (remainder_remove(sweep, path, &why) != ERR_OK && rc == ERR_OK)
            rc = err_copy(&err, &why);
        free(path);
    }
    free(entries);
    if (rc != ERR_OK)
        log_warn("hdf5io",
                 "cannot delete an old checkpoint: %s; the next save or the "
                 "next start tries again, and cddp-ckpt prune deletes it, too",
                 err.text);
}
