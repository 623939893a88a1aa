/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A run file is read as a whole and parsed to a tree by yaml.c. The value of
 * --set is parsed in the same way. */
#include "conf/conf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "conf/yaml.h"

/* Maximum size of a run file in bytes: 20 times the size of a file that
 * describes a model with 10,000 layers. */
#define CONF_BYTES_MAX (16 << 20)

static err_code_t conf_parse_bytes(const char *name, const char *text,
                                   size_t bytes, tree_t **out, err_t *err)
{
    static const char *const kinds[] = {[TREE_NULL] = "nothing",
                                        [TREE_SCALAR] = "a text",
                                        [TREE_LIST] = "a list"};
    yaml_source_t source = {
        .name = name, .text = text, .bytes = bytes, .code = ERR_CONFIG};
    err_code_t rc;
    char place[512];
    tree_t *tree;

    rc = yaml_parse(&source, &tree, err);
    if (rc != ERR_OK)
        return rc;
    if (tree_kind(tree) != TREE_MAP) {
        rc = err_set(
            err, ERR_CONFIG,
            "%s: expected sections such as 'data:' and 'model:', found %s",
            tree_place_format(tree_place(tree), place, sizeof place),
            kinds[tree_kind(tree)]);
        tree_free(tree);
        return rc;
    }
    *out = tree;
    return ERR_OK;
}

err_code_t conf_parse(const char *name, const char *text, tree_t **out,
                      err_t *err)
{
    return conf_parse_bytes(name, text, strlen(text), out, err);
}

err_code_t conf_read(const char *path, tree_t **out, err_t *err)
{
    struct stat info;
    err_code_t rc;
    size_t bytes;
    char *text;

    if (stat(path, &info) != 0)
        return err_set(err, ERR_CONFIG,
                       "there is no run file %s; it is looked for on the "
                       "command line, then in $CDDP_RUN, then as ./run.yaml",
                       path);
    if (!S_ISREG(info.st_mode))
        return err_set(err, ERR_CONFIG,
                       "run file %s is %s; expected a YAML file", path,
                       S_ISDIR(info.st_mode)    ? "a directory"
                       : S_ISFIFO(info.st_mode) ? "a fifo"
                                                : "a device");
    if (info.st_size > CONF_BYTES_MAX)
        return err_set(err, ERR_CONFIG,
                       "run file %s has %lld bytes; expected a YAML file of at "
                       "most %d MiB: is it data?",
                       path, (long long)info.st_size, CONF_BYTES_MAX >> 20);
    if (file_read(path, &text, &bytes, err) != ERR_OK) {
        if (err != NULL)
            err->code = ERR_CONFIG;
        err_prefix(err, "run file");
        return ERR_CONFIG;
    }
    rc = conf_parse_bytes(path, text, bytes, out, err);
    free(text);
    return rc;
}

/* Describe why no value can be set at the dotted [path] below [root]: the first
 * step of the path that is empty, or is not a map. The caller frees the text.
 */
static char *conf_obstacle(const tree_t *root, const char *path)
{
    const tree_t *at = root;
    const char *step = path;
    char *part;
    size_t length;

    for (;; step += length + 1) {
        length = strcspn(step, ".");
        if (length == 0)
            return str_dup("a step of the path is empty");
        if (at != NULL && tree_kind(at) != TREE_MAP &&
            tree_kind(at) != TREE_NULL)
            break;
        part = str_printf("%.*s", (int)length, step);
        at = at == NULL ? NULL : tree_get(at, part);
        free(part);
        if (step[length] == '\0')
            return str_dup("the path does not fit");
    }
    return str_printf("'%.*s' is not a map", (int)(step - path - 1), path);
}

err_code_t conf_set(tree_t *root, const char *assignment, err_t *err)
{
    const char *equals = strchr(assignment, '=');
    yaml_source_t source = {.bare = true, .code = ERR_USAGE};
    char *name = str_printf("--set %s", assignment);
    char *path = NULL, *obstacle;
    err_code_t rc;
    tree_t *value;

    if (equals == NULL || equals == assignment) {
        rc = err_set(err, ERR_USAGE,
                     "%s: expected KEY=VALUE, such as train.epochs=1", name);
        goto out;
    }
    source.name = name;
    source.text = equals + 1;
    source.bytes = strlen(source.text);
    rc = yaml_parse(&source, &value, err);
    if (rc != ERR_OK)
        goto out;
    path = str_printf("%.*s", (int)(equals - assignment), assignment);
    if (!tree_set(root, path, value)) {
        obstacle = conf_obstacle(root, path);
        rc = err_set(err, ERR_USAGE, "%s: %s", name, obstacle);
        free(obstacle);
    }
out:
    free(path);
    free(name);
    return rc;
}
