/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_find.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "hdf5io/checkpoint_manifest.h"

char *hdf5io_checkpoint_home(const char *path)
{
    char *home = str_printf("%s/checkpoints", path);
    struct stat st;

    if (stat(home, &st) == 0 && S_ISDIR(st.st_mode))
        return home;
    free(home);
    return str_dup(path);
}

err_code_t hdf5io_checkpoint_list_of(const char *run, char ***paths, int *count,
                                     err_t *err)
{
    char *home = hdf5io_checkpoint_home(run);
    err_code_t rc = hdf5io_checkpoint_list(home, paths, count, err);

    if (rc == ERR_OK && *count == 0) {
        free(*paths);
        rc = err_set(err, ERR_DATA,
                     "%s has no checkpoint: expected directories like "
                     "step-0000000100",
                     home);
    }
    free(home);
    return rc;
}

err_code_t hdf5io_checkpoint_find(const char *path, char **out, err_t *err)
{
    char *home = hdf5io_checkpoint_home(path), *manifest;
    struct stat st;
    char **paths;
    int count;
    err_code_t rc;

    manifest = str_printf("%s/%s", path, MANIFEST_NAME);
    if (stat(manifest, &st) == 0) {
        *out = str_dup(path);
        rc = ERR_OK;
    } else if (stat(path, &st) != 0) {
        rc = err_set(err, ERR_DATA, "%s: there is no such directory", path);
    } else if (strcmp(home, path) == 0 && strstr(path, "step-") != NULL) {
        rc = err_set(err, ERR_DATA, "%s: it is missing", manifest);
    } else {
        rc = hdf5io_checkpoint_list_of(path, &paths, &count, err);
        if (rc == ERR_OK) {
            *out = str_dup(paths[0]);
            for (int i = 0; i < count; i++)
                free(paths[i]);
            free(paths);
        }
    }
    free(manifest);
    free(home);
    return rc;
}
