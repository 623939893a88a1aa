/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/folders.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/str.h"

enum { DEPTH_MAX = 32 };

typedef struct walk {
    const char *root;
    const char *const *endings;
    import_folders_t *out;
    size_t room; /* of out->files */
} walk_t;

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By bytes: an order by the language of the user would give other labels
 * elsewhere. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool wanted(const walk_t *walk, const char *name)
{
    const size_t length = strlen(name);

    for (int i = 0; walk->endings[i] != NULL; i++) {
        const size_t end = strlen(walk->endings[i]);

        if (length > end &&
            strcasecmp(name + length - end, walk->endings[i]) == 0)
            return true;
    }
    return false;
}

/* Make room for more files. */
static err_code_t room_make(walk_t *walk, err_t *err)
{
    import_folders_t *out = walk->out;
    const size_t room = walk->room == 0 ? 1024 : 2 * walk->room;
    char **files = realloc(out->files, room * sizeof *files);
    int32_t *labels = NULL;

    if (files != NULL) {
        out->files = files;
        labels = realloc(out->labels, room * sizeof *labels);
    }
    if (labels == NULL)
        return err_set(err, ERR_MEMORY, "no memory for the names of %s",
                       walk->root);
    out->labels = labels;
    walk->room = room;
    return ERR_OK;
}

/* Add the file [path], which becomes the list's. */
static err_code_t file_add(walk_t *walk, char *path, err_t *err)
{
    import_folders_t *out = walk->out;

    if ((size_t)out->count == walk->room) {
        err_code_t rc = room_make(walk, err);

        if (rc != ERR_OK) {
            free(path);
            return rc;
        }
    }
    out->labels[out->count] = out->class_count - 1;
    out->files[out->count++] = path;
    return ERR_OK;
}

/* List [below] (a path below the root; "": the root itself), sorted. The caller
 * frees each of *list and *list itself. */
static err_code_t names_list(const walk_t *walk, const char *below,
                             struct dirent ***list, int *count, err_t *err)
{
    char *path = str_printf("%s/%s", walk->root, below);
    const int found = scandir(path, list, visible, by_bytes);
    err_code_t rc = ERR_OK;

    if (found < 0)
        rc = err_set(err, errno == ENOTDIR ? ERR_DATA : ERR_IO,
                     "cannot list the folder %s: %s", path, strerror(errno));
    *count = found < 0 ? 0 : found;
    free(path);
    return rc;
}

static void names_free(struct dirent **list, int count)
{
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

/* Set *folder: is [below] a folder? Else it is a file. */
static err_code_t kind_find(const walk_t *walk, const char *below, bool *folder,
                            err_t *err)
{
    char *path = str_printf("%s/%s", walk->root, below);
    struct stat status;
    err_code_t rc = ERR_OK;

    if (stat(path, &status) != 0)
        rc = err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    else
        *folder = S_ISDIR(status.st_mode);
    free(path);
    return rc;
}

/* Add the files in the folder [below]. */
/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX limits it */
static err_code_t files_add(walk_t *walk, const char *below, int depth,
                            err_t *err)
{
    struct dirent **list = NULL;
    int count = 0;
    err_code_t rc;

    if (depth > DEPTH_MAX)
        return err_set(err, ERR_DATA,
                       "%s/%s: folders are nested more than %d deep, or a link "
                       "leads back to a folder above it",
                       walk->root, below, DEPTH_MAX);
    rc = names_list(walk, below, &list, &count, err);
    for (int i = 0; i < count && rc == ERR_OK; i++) {
        char *path = str_printf("%s/%s", below, list[i]->d_name);
        bool folder = false;

        rc = kind_find(walk, path, &folder, err);
        if (rc == ERR_OK && folder)
            rc = files_add(walk, path, depth + 1, err);
        else if (rc == ERR_OK && wanted(walk, path)) {
            rc = file_add(walk, path, err);
            path = NULL;
        } else if (rc == ERR_OK)
            walk->out->other++;
        free(path);
    }
    names_free(list, count);
    return rc;
}

static err_code_t class_add(walk_t *walk, const char *name, err_t *err)
{
    import_folders_t *out = walk->out;
    const int64_t before = out->count;
    err_code_t rc;

    out->classes[out->class_count++] = str_dup(name);
    rc = files_add(walk, name, 1, err);
    if (rc == ERR_OK && out->count == before)
        rc = err_set(err, ERR_DATA,
                     "%s/%s: there is no file in it whose name ends with %s or "
                     "the like: each class needs one",
                     walk->root, name, walk->endings[0]);
    return rc;
}

err_code_t import_folders_list(const char *root, const char *const *endings,
                               import_folders_t *out, err_t *err)
{
    walk_t walk = {.root = root, .endings = endings, .out = out};
    struct dirent **list = NULL;
    int count = 0;
    err_code_t rc;

    *out = (import_folders_t){0};
    rc = names_list(&walk, "", &list, &count, err);
    out->classes = calloc((size_t)count + 1, sizeof out->classes[0]);
    if (out->classes == NULL && rc == ERR_OK)
        rc = err_set(err, ERR_MEMORY, "no memory for the names of %s", root);
    for (int i = 0; i < count && rc == ERR_OK; i++) {
        bool folder = false;

        rc = kind_find(&walk, list[i]->d_name, &folder, err);
        if (rc == ERR_OK && folder)
            rc = class_add(&walk, list[i]->d_name, err);
        else
            out->other++;
    }
    if (rc == ERR_OK && out->class_count == 0)
        rc = err_set(err, ERR_DATA,
                     "%s: there is no folder in it: expected one for each "
                     "class, with its files",
                     root);
    names_free(list, count);
    if (rc != ERR_OK)
        import_folders_free(out);
    return rc;
}

void import_folders_free(import_folders_t *folders)
{
    for (int i = 0; i < folders->class_count; i++)
        free(folders->classes[i]);
    for (int64_t i = 0; i < folders->count; i++)
        free(folders->files[i]);
    free(folders->classes);
    free(folders->files);
    free(folders->labels);
    *folders = (import_folders_t){0};
}
