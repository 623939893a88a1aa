/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Expands glob patterns to a list of files. The order decides the global
 * numbers of samples, so it must not depend on locale or directory order: names
 * are compared by strverscmp, over all patterns together.
 */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/shard.h"

typedef struct shard_list {
    char **paths;
    int count;
} shard_list_t;

static int shard_compare(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    int order = strverscmp(*left, *right);

    return order != 0 ? order : strcmp(*left, *right);
}

static err_code_t shard_no_match(const char *pattern, int status, err_t *err)
{
    char *here = getcwd(NULL, 0);
    err_code_t rc;

    if (status == GLOB_NOSPACE)
        rc = err_set(err, ERR_MEMORY, "no memory to list %s", pattern);
    else if (status == GLOB_ABORTED)
        rc = err_set(err, ERR_DATA, "cannot list the directories of %s: %s",
                     pattern, strerror(errno));
    else if (pattern[0] == '/' || here == NULL)
        rc = err_set(err, ERR_DATA, "no shard matches %s", pattern);
    else
        rc = err_set(err, ERR_DATA, "no shard matches %s in directory %s",
                     pattern, here);
    free(here);
    return rc;
}

static int shard_glob_error(const char *path, int error)
{
    (void)path;
    return error != ENOENT && error != ENOTDIR;
}

/* Append copies of [count] names to the list. */
static err_code_t shard_add(shard_list_t *list, const char *const *names,
                            size_t count, err_t *err)
{
    char **larger =
        realloc(list->paths, ((size_t)list->count + count) * sizeof *larger);

    if (larger == NULL)
        return err_set(err, ERR_MEMORY, "no memory for %zu file names", count);
    list->paths = larger;
    for (size_t i = 0; i < count; i++)
        list->paths[list->count++] = str_dup(names[i]);
    return ERR_OK;
}

static err_code_t shard_expand(const char *pattern, shard_list_t *list,
                               err_t *err)
{
    glob_t found = {0};
    err_code_t rc;
    int status;

    /* An existing file of exactly this name takes precedence, even if it
     * contains brackets. */
    if (access(pattern, F_OK) == 0)
        return shard_add(list, &pattern, 1, err);
    status = glob(pattern, GLOB_NOSORT, shard_glob_error, &found);
    if (status != 0)
        rc = shard_no_match(pattern, status, err);
    else
        rc = shard_add(list, (const char *const *)found.gl_pathv,
                       found.gl_pathc, err);
    globfree(&found);
    return rc;
}

/* Sort the list and remove duplicates. */
static void shard_unique(shard_list_t *list)
{
    int kept = 0;

    qsort(list->paths, (size_t)list->count, sizeof *list->paths, shard_compare);
    for (int i = 0; i < list->count; i++) {
        if (kept > 0 && strcmp(list->paths[i], list->paths[kept - 1]) == 0)
            free(list->paths[i]);
        else
            list->paths[kept++] = list->paths[i];
    }
    list->count = kept;
}

err_code_t hdf5io_shard_paths(const opt_texts_t *texts, char ***paths,
                              int *count, err_t *err)
{
    shard_list_t list = {0};
    err_code_t rc = ERR_OK;

    for (int i = 0; i < texts->count && rc == ERR_OK; i++)
        rc = shard_expand(texts->items[i], &list, err);
    if (rc == ERR_OK && list.count == 0)
        rc = err_set(err, ERR_DATA, "the list of shards is empty");
    if (rc != ERR_OK) {
        hdf5io_shard_paths_free(list.paths, list.count);
        return rc;
    }
    shard_unique(&list);
    *paths = list.paths;
    *count = list.count;
    return ERR_OK;
}

void hdf5io_shard_paths_free(char **paths, int count)
{
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}
