/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Choosing a row by what stands in the run file: 'sgd', or {sgd: {lr: 0.1}}. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "optim/optim_priv.h"

#define ROWS_MAX 16

/* The name in [tree], where it stands, and its options (NULL: none). */
static err_code_t choice_read(const tree_t *tree, const char *what,
                              const char **name, tree_place_t *place,
                              const tree_t **options, err_t *err)
{
    char at[OPTIM_PLACE_TEXT];

    *options = NULL;
    if (tree_kind(tree) == TREE_SCALAR) {
        *name = tree_text(tree);
        *place = tree_place(tree);
        return ERR_OK;
    }
    if (tree_kind(tree) == TREE_MAP && tree_count(tree) == 1) {
        *name = tree_key(tree, 0);
        *place = tree_key_place(tree, 0);
        *options = tree_at(tree, 0);
        return ERR_OK;
    }
    tree_place_format(tree_place(tree), at, sizeof at);
    return err_set(err, ERR_CONFIG,
                   "%s: %s is a name or a map with one name as key, and the "
                   "options below that",
                   at, what);
}

/* The sentence for a name that no row has. */
static err_code_t choice_unknown(const char *what, const char *name,
                                 tree_place_t place,
                                 const optim_row_t *const *rows, int count,
                                 err_t *err)
{
    const char *names[ROWS_MAX + 1] = {NULL}, *near;
    char at[OPTIM_PLACE_TEXT];
    str_buf_t known = {0};

    for (int i = 0; i < count && i < ROWS_MAX; i++) {
        names[i] = rows[i]->name;
        str_buf_add(&known, "%s%s", i == 0 ? "" : ", ", rows[i]->name);
    }
    near = str_nearest(name, names);
    tree_place_format(place, at, sizeof at);
    if (near != NULL)
        err_set(err, ERR_CONFIG,
                "%s: unknown %s '%s'; did you mean '%s'? (known: %s)", at, what,
                name, near, known.text);
    else
        err_set(err, ERR_CONFIG, "%s: unknown %s '%s' (known: %s)", at, what,
                name, known.text);
    str_buf_free(&known);
    return ERR_CONFIG;
}

/* Fill the options of [row]; nothing written is an empty map at [place], so
 * that a missing one is reported there. */
static err_code_t options_read(const optim_row_t *row, const char *what,
                               const tree_t *tree, tree_place_t place,
                               void *options, err_t *err)
{
    char *path = str_printf("%s.%s", what, row->name);
    tree_t *empty = NULL;
    err_code_t code;

    if (tree == NULL || tree_kind(tree) == TREE_NULL) {
        empty = tree_new(TREE_MAP, NULL, place);
        tree = empty;
    }
    code = opt_fill(row->options, tree, path, options, err);
    tree_free(empty);
    free(path);
    return code;
}

err_code_t optim_row_read(const tree_t *tree, const char *what,
                          const optim_row_t *const *rows, int count,
                          void *options, int *out, err_t *err)
{
    const tree_t *written;
    tree_place_t place = tree_place(tree);
    const char *name = NULL;
    err_code_t code;

    code = choice_read(tree, what, &name, &place, &written, err);
    if (code != ERR_OK)
        return code;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i]->name, name) != 0)
            continue;
        code = options_read(rows[i], what, written, place, options, err);
        if (code == ERR_OK)
            *out = i;
        return code;
    }
    return choice_unknown(what, name, place, rows, count, err);
}

void optim_rows_document(const optim_row_t *const *rows, int count,
                         const char *what, str_buf_t *out)
{
    char *title;

    for (int i = 0; i < count; i++) {
        str_buf_add(out, "### %s\n\n%s.\n\n", rows[i]->name, rows[i]->help);
        if (rows[i]->options[0].name == NULL) {
            str_buf_add(out, "No options.\n\n");
            continue;
        }
        title = str_printf("%s.%s", what, rows[i]->name);
        opt_document(rows[i]->options, title, out);
        str_buf_add(out, "\n");
        free(title);
    }
}
