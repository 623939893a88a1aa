/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Selects a row by its name in the run file: 'sgd', or {sgd: {lr: 0.1}}. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/opt_pick.h"

#define ROWS_MAX 16

/* Does the map [tree] have exactly one key other than [beside]? *at is its
 * index. */
static bool choice_is_map(const tree_t *tree, const char *beside, size_t *at)
{
    const size_t count = tree_kind(tree) == TREE_MAP ? tree_count(tree) : 0;
    size_t names = 0;

    for (size_t i = 0; i < count; i++) {
        if (beside != NULL && strcmp(tree_key(tree, i), beside) == 0)
            continue;
        *at = i;
        names++;
    }
    return names == 1;
}

/* Get the name in [tree], its place, and its options (NULL: none). */
static err_code_t choice_read(const tree_t *tree, const opt_pick_table_t *table,
                              const char **name, opt_pick_t *out, err_t *err)
{
    const char *beside = table->beside;
    char at[OPT_PLACE_TEXT];
    size_t index = 0;

    out->options = NULL;
    if (tree_kind(tree) == TREE_SCALAR) {
        *name = tree_text(tree);
        out->place = tree_place(tree);
        return ERR_OK;
    }
    if (choice_is_map(tree, beside, &index)) {
        *name = tree_key(tree, index);
        out->place = tree_key_place(tree, index);
        out->options = tree_at(tree, index);
        return ERR_OK;
    }
    tree_place_format(tree_place(tree), at, sizeof at);
    return err_set(err, ERR_CONFIG,
                   "%s: %s is a name or a map with one name as key%s%s%s, and "
                   "the options below that",
                   at, table->what, beside != NULL ? " (and '" : "",
                   beside != NULL ? beside : "",
                   beside != NULL ? "' beside it)" : "");
}

/* Set the error for a name that no row has. */
static err_code_t choice_unknown(const opt_pick_table_t *table,
                                 const char *name, tree_place_t place,
                                 err_t *err)
{
    const char *names[ROWS_MAX + 1] = {NULL}, *near;
    char at[OPT_PLACE_TEXT];
    str_buf_t known = {0};

    check(table->count <= ROWS_MAX, "%d rows of %s", table->count, table->what);
    for (int i = 0; i < table->count && i < ROWS_MAX; i++) {
        names[i] = table->rows[i]->name;
        str_buf_add(&known, "%s%s", i == 0 ? "" : ", ", table->rows[i]->name);
    }
    near = str_nearest(name, names);
    tree_place_format(place, at, sizeof at);
    if (near != NULL)
        err_set(err, ERR_CONFIG,
                "%s: unknown %s '%s'; did you mean '%s'? (known: %s)", at,
                table->what, name, near, known.text);
    else
        err_set(err, ERR_CONFIG, "%s: unknown %s '%s' (known: %s)", at,
                table->what, name, known.text);
    str_buf_free(&known);
    return ERR_CONFIG;
}

/* Fill the options of the row that [choice] has found. Absent options are an
 * empty map at its place, so that a missing required option is reported there.
 */
static err_code_t options_read(const opt_pick_table_t *table,
                               const opt_pick_t *choice, void *options,
                               err_t *err)
{
    const opt_pick_row_t *row = table->rows[choice->index];
    char *path = str_printf("%s.%s", table->what, row->name);
    const tree_t *tree = choice->options;
    tree_t *empty = NULL;
    err_code_t rc;

    if (tree == NULL || tree_kind(tree) == TREE_NULL) {
        empty = tree_new(TREE_MAP, NULL, choice->place);
        tree = empty;
    }
    rc = opt_fill(row->options, tree, path, options, err);
    tree_free(empty);
    free(path);
    return rc;
}

err_code_t opt_pick_read(const tree_t *tree, const opt_pick_table_t *table,
                         void *options, opt_pick_t *out, err_t *err)
{
    opt_pick_t choice = {0};
    const char *name = NULL;
    err_code_t rc;

    rc = choice_read(tree, table, &name, &choice, err);
    if (rc != ERR_OK)
        return rc;
    for (; choice.index < table->count; choice.index++) {
        if (strcmp(table->rows[choice.index]->name, name) != 0)
            continue;
        rc = options_read(table, &choice, options, err);
        if (rc == ERR_OK)
            *out = choice;
        return rc;
    }
    return choice_unknown(table, name, choice.place, err);
}

const opt_row_t *opt_pick_rows(const opt_pick_row_t *const *rows, int count,
                               const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i]->options;
    return NULL;
}

void opt_pick_document(const opt_pick_row_t *const *rows, int count,
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
