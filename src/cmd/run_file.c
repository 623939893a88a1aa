/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/run_file.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/pick.h"
#include "conf/conf.h"

/* Return the value of run.[key] if it is a text that the run file itself sets.
 * NULL: the run file does not set it, or --pick or --set replace it. */
static const tree_t *own_value(const run_file_t *file, const tree_t *root,
                               const char *key)
{
    const tree_t *run = tree_get(root, "run");
    const tree_t *node = run == NULL ? NULL : tree_get(run, key);

    return node != NULL && tree_text(node) != NULL &&
                   strcmp(tree_place(node).file, file->path) == 0
               ? node
               : NULL;
}

/* Return whether each line of --pick gives its run a name. [root] has the
 * values of the line, but not yet those of --set, which may give all runs one
 * name. */
static bool name_is_picked(const run_file_t *file, const tree_t *root)
{
    static const char key[] = "run.name=";
    const tree_t *run = tree_get(root, "run");

    for (int i = 0; i < file->sets->count; i++)
        if (strncmp(file->sets->items[i], key, sizeof key - 1) == 0)
            return false;
    return run != NULL && tree_get(run, "name") != NULL &&
           own_value(file, root, "name") == NULL;
}

/* Refuse a run.dir of the run file that all tasks of a sweep would share: two
 * runs must not write to one directory. The tasks have different directories if
 * run.dir contains {array} or {job}, or if it contains {name} and the names of
 * the runs come from the lines of --pick: [names]. */
static err_code_t own_dir_check(const run_file_t *file, const tree_t *root,
                                bool names, err_t *err)
{
    const tree_t *dir = own_value(file, root, "dir");
    const char *text = dir == NULL ? "" : tree_text(dir);
    char place[256];

    if (text[0] == '\0' || strstr(text, "{array}") != NULL ||
        strstr(text, "{job}") != NULL ||
        (strstr(text, "{name}") != NULL && names))
        return ERR_OK;
    return err_set(
        err, ERR_CONFIG,
        "%s: run.dir is \"%s\", which all tasks of --pick would share: write "
        "\"%s-{array}\", or leave run.dir out for runs/NAME-TASK",
        tree_place_format(tree_place(dir), place, sizeof place), text, text);
}

err_code_t run_file_read(const run_file_t *file, tree_t **tree,
                         train_config_t *config, err_t *err)
{
    tree_t *root = NULL;
    bool names;
    err_code_t rc;

    rc = conf_read(file->path, &root, err);
    if (rc == ERR_OK && file->pick != NULL)
        rc = pick_apply(file->pick, getenv("SLURM_ARRAY_TASK_ID"), root, err);
    names = rc == ERR_OK && name_is_picked(file, root);
    for (int i = 0; rc == ERR_OK && i < file->sets->count; i++)
        rc = conf_set(root, file->sets->items[i], err);
    if (rc == ERR_OK && file->pick != NULL)
        rc = own_dir_check(file, root, names, err);
    if (rc == ERR_OK)
        rc = train_config_read(root, file->job, config, err);
    if (rc != ERR_OK) {
        tree_free(root);
        return rc;
    }
    *tree = root;
    return ERR_OK;
}
