/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_prune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_manifest.h"

/* Bytes of all files in the directory [path]; what cannot be read counts as
 * nothing. */
static uint64_t bytes_of(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    uint64_t bytes = 0;
    struct stat st;

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size;
    closedir(dir);
    return bytes;
}

/* Is [entry] one of [count] checkpoints that may be read? */
static bool is_among(const hdf5io_entry_t *entry, const hdf5io_entry_t *list,
                     int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entry->name, list[i].name) == 0)
            return true;
    return false;
}

/* Keep in [all] what is not among [kept]. Returns its number. */
static int entries_leave_out(hdf5io_entry_t *all, int total,
                             const hdf5io_entry_t *kept, int kept_count)
{
    int n = 0;

    for (int i = 0; i < total; i++)
        if (all[i].kind != HDF5IO_PUBLISHED &&
            !is_among(&all[i], kept, kept_count))
            all[n++] = all[i];
    return n;
}

static err_code_t leftovers_make(const char *directory,
                                 const hdf5io_entry_t *entries, int count,
                                 hdf5io_leftover_t **out, err_t *err)
{
    hdf5io_leftover_t *list = calloc((size_t)count + 1, sizeof *list);

    if (list == NULL)
        return err_set(err, ERR_MEMORY, "%s: no memory to list it", directory);
    for (int i = 0; i < count; i++) {
        snprintf(list[i].path, sizeof list[i].path, "%s/%s", directory,
                 entries[i].name);
        list[i].superseded = entries[i].kind == HDF5IO_SUPERSEDED;
        list[i].bytes = bytes_of(list[i].path);
    }
    *out = list;
    return ERR_OK;
}

err_code_t hdf5io_prune_list(const char *directory, hdf5io_leftover_t **out,
                             int *count, err_t *err)
{
    const hdf5io_io_t *io = &hdf5io_io_system;
    hdf5io_entry_t *all = NULL, *kept = NULL;
    int total = 0, kept_count = 0, n = 0;
    err_code_t rc = hdf5io_dir_list_all(io, directory, &all, &total, err);

    if (rc == ERR_OK)
        rc = hdf5io_dir_candidates(io, directory, &kept, &kept_count, err);
    if (rc == ERR_OK) {
        n = entries_leave_out(all, total, kept, kept_count);
        rc = leftovers_make(directory, all, n, out, err);
    }
    if (rc == ERR_OK)
        *count = n;
    free(kept);
    free(all);
    return rc;
}

err_code_t hdf5io_prune_remove(const hdf5io_leftover_t *leftover, err_t *err)
{
    /* Not through a link: what it leads to is not ours. */
    const int dir =
        open(leftover->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    err_code_t rc = ERR_OK;

    if (dir < 0 ? errno != ENOENT && errno != ENOTDIR && errno != ELOOP
                : unlinkat(dir, MANIFEST_NAME, 0) != 0 && errno != ENOENT)
        rc = err_set(err, ERR_IO, "cannot remove %s/" MANIFEST_NAME ": %s",
                     leftover->path, strerror(errno));
    if (dir >= 0)
        close(dir);
    return rc == ERR_OK ? file_remove_tree(leftover->path, err) : rc;
}
