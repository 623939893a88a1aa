/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/opt_error.h"

#include <stdlib.h>
#include <string.h>

#include "base/opt_value.h"

err_code_t opt_error(err_t *err, const tree_t *tree, const char *format, ...)
{
    char place[512];
    str_buf_t buf = {0};
    va_list args;

    if (tree != NULL)
        str_buf_add(&buf, "%s: ",
                    tree_place_format(tree_place(tree), place, sizeof place));
    va_start(args, format);
    str_buf_vadd(&buf, format, args);
    va_end(args);
    err_set(err, ERR_CONFIG, "%s", buf.text);
    str_buf_free(&buf);
    return ERR_CONFIG;
}

err_code_t opt_error_type(const opt_row_t *row, const tree_t *value,
                          const char *name, err_t *err)
{
    static const char *const kinds[] = {
        [TREE_NULL] = "nothing", [TREE_LIST] = "a list", [TREE_MAP] = "a map"};
    str_buf_t wish = {0};
    const char *near = NULL;

    opt_value_describe(row, &wish);
    if (tree_kind(value) == TREE_SCALAR && row->type == OPT_CHOICE)
        near = str_nearest(tree_text(value), row->choices);
    if (tree_kind(value) != TREE_SCALAR)
        opt_error(err, value, "%s: expected %s, found %s", name, wish.text,
                  kinds[tree_kind(value)]);
    else if (near != NULL)
        opt_error(err, value, "%s: expected %s, found '%s'; did you mean '%s'?",
                  name, wish.text, tree_text(value), near);
    else
        opt_error(err, value, "%s: expected %s, found '%s'", name, wish.text,
                  tree_text(value));
    str_buf_free(&wish);
    return ERR_CONFIG;
}

err_code_t opt_error_bounds(const opt_row_t *row, const tree_t *value,
                            const char *name, double number, err_t *err)
{
    str_buf_t bounds = {0};

    opt_value_describe_bounds(row, number, &bounds);
    opt_error(err, value, "%s: expected %s, found %s", name, bounds.text,
              tree_text(value));
    str_buf_free(&bounds);
    return ERR_CONFIG;
}

/* Dotted path of the section in [rows], or below, that has a row called [key];
 * NULL: there is none. The caller frees it. */
static char *opt_error_home(const opt_row_t *rows, const char *key)
{
    const opt_row_t *row, *inner;
    char *below, *home = NULL;

    for (row = rows; home == NULL && row->name != NULL; row++) {
        if (row->rows == NULL)
            continue;
        for (inner = row->rows; inner->name != NULL; inner++)
            if (strcmp(inner->name, key) == 0)
                return str_dup(row->name);
        below = opt_error_home(row->rows, key);
        if (below != NULL)
            home = str_printf("%s.%s", row->name, below);
        free(below);
    }
    return home;
}

/* The name in [rows] nearest to [key], or NULL. */
static const char *opt_error_near(const opt_row_t *rows, const char *key)
{
    const opt_row_t *row;
    const char **names, *near;
    size_t count = 0;

    for (row = rows; row->name != NULL; row++)
        count++;
    names = calloc(count + 1, sizeof *names);
    if (names == NULL)
        abort();
    for (row = rows; row->name != NULL; row++)
        names[row - rows] = row->name;
    near = str_nearest(key, names);
    free(names);
    return near;
}

/* Append how to mend it: the right section, the right spelling, or all known
 * keys. */
static void opt_error_hint(const opt_row_t *rows, const char *key,
                           str_buf_t *out)
{
    const char *near = opt_error_near(rows, key);
    char *home = opt_error_home(rows, key);
    const opt_row_t *row;

    if (home != NULL) {
        str_buf_add(out, "it belongs in %s", home);
    } else if (near != NULL) {
        str_buf_add(out, "did you mean '%s'?", near);
    } else {
        str_buf_add(out, "known keys are");
        for (row = rows; row->name != NULL; row++)
            str_buf_add(out, "%s %s", row == rows ? "" : ",", row->name);
    }
    free(home);
}

err_code_t opt_error_unknown(const opt_row_t *rows, const tree_t *map,
                             size_t index, const char *path, err_t *err)
{
    const char *key = tree_key(map, index);
    str_buf_t hint = {0};
    char place[512];

    opt_error_hint(rows, key, &hint);
    tree_place_format(tree_key_place(map, index), place, sizeof place);
    err_set(err, ERR_CONFIG, "%s: unknown key '%s' %s%s; %s", place, key,
            path[0] == '\0' ? "at the top level" : "in ", path, hint.text);
    str_buf_free(&hint);
    return ERR_CONFIG;
}
