/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Names and directories of node sets. */
#include "hdf5io/nodeset.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

void hdf5io_nodeset_print(hdf5io_nodeset_name_t name,
                          char out[HDF5IO_NODESET_NAME])
{
    snprintf(out, HDF5IO_NODESET_NAME, "step-%010" PRId64 "-%016" PRIx64,
             name.step, name.nonce);
}

bool hdf5io_nodeset_parse(const char *text, hdf5io_nodeset_name_t *out)
{
    char again[HDF5IO_NODESET_NAME];
    hdf5io_nodeset_name_t name;

    if (sscanf(text, "step-%" SCNd64 "-%" SCNx64, &name.step, &name.nonce) != 2)
        return false;
    hdf5io_nodeset_print(name, again);
    if (strcmp(text, again) != 0)
        return false;
    *out = name;
    return true;
}

bool hdf5io_nodeset_own(const char *home)
{
    struct stat st;

    return lstat(home, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid();
}

int hdf5io_nodeset_place(const hdf5io_nodeset_t *set, int rank, int *count)
{
    int place = 0;

    *count = 0;
    for (int r = 0; r < set->checkpoint->votes->size; r++) {
        if (set->nodes[r] != set->nodes[rank])
            continue;
        place += r < rank;
        ++*count;
    }
    return place;
}

char *hdf5io_nodeset_part(int rank)
{
    return str_printf("rank-%d.f32", rank);
}

/* Is [entry] of a directory neither the set [keep] nor "." or ".."? */
static bool is_old(const char *entry, uint64_t keep)
{
    hdf5io_nodeset_name_t name;

    if (strcmp(entry, ".") == 0 || strcmp(entry, "..") == 0)
        return false;
    return !hdf5io_nodeset_parse(entry, &name) || name.nonce != keep;
}

void hdf5io_nodeset_clean(const char *home, uint64_t keep)
{
    DIR *dir = hdf5io_nodeset_own(home) ? opendir(home) : NULL;
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char *path = str_printf("%s/%s", home, entry->d_name);
        err_t err = ERR_INIT;

        if (is_old(entry->d_name, keep) &&
            file_remove_tree(path, &err) != ERR_OK)
            log_warn("hdf5io", "cannot remove an old local checkpoint: %s",
                     err.text);
        free(path);
    }
    if (dir != NULL)
        closedir(dir);
}
