/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fills a struct from a tree. A default in the table is written as in a run
 * file; it is parsed to a small tree and read like a value from the file, so
 * there is only one reader.
 */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/opt_error.h"
#include "base/opt_value.h"

static void *opt_field(const opt_row_t *row, void *target)
{
    return (char *)target + row->offset;
}

static bool opt_read_choice(const opt_row_t *row, const char *text, int *out)
{
    int i;

    for (i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(row->choices[i], text) != 0)
            continue;
        *out = i;
        return true;
    }
    return false;
}

static err_code_t opt_fill_int(const opt_row_t *row, const tree_t *value,
                               const char *name, int64_t *out, err_t *err)
{
    int64_t number;

    if (tree_kind(value) != TREE_SCALAR ||
        !str_to_int(tree_text(value), &number))
        return opt_error_type(row, value, name, err);
    if (!opt_value_inside(row, (double)number))
        return opt_error_bounds(row, value, name, (double)number, err);
    *out = number;
    return ERR_OK;
}

static err_code_t opt_fill_scalar(const opt_row_t *row, const tree_t *value,
                                  const char *name, void *field, err_t *err)
{
    const char *text = tree_text(value);
    double number;
    bool good = false;

    if (row->type == OPT_INT)
        return opt_fill_int(row, value, name, field, err);
    if (text == NULL)
        return opt_error_type(row, value, name, err);
    switch (row->type) {
    case OPT_BOOL:
        good = opt_value_bool(text, field);
        break;
    case OPT_CHOICE:
        good = opt_read_choice(row, text, field);
        break;
    case OPT_EVERY:
        good = opt_value_every(text, field);
        break;
    case OPT_TEXT:
        *(char **)field = str_dup(text);
        good = true;
        break;
    default: /* OPT_REAL, OPT_SECONDS */
        good = row->type == OPT_REAL ? str_to_real(text, &number)
                                     : opt_value_seconds(text, &number);
        if (good && !opt_value_inside(row, number))
            return opt_error_bounds(row, value, name, number, err);
        if (good)
            *(double *)field = number;
        break;
    }
    return good ? ERR_OK : opt_error_type(row, value, name, err);
}

/* Item [i] of a list, or the value itself, since a single item needs no
 * brackets. */
static const tree_t *opt_item(const tree_t *value, size_t i)
{
    return tree_kind(value) == TREE_LIST ? tree_at(value, i) : value;
}

static size_t opt_items(const tree_t *value)
{
    return tree_kind(value) == TREE_LIST ? tree_count(value) : 1;
}

static err_code_t opt_fill_ints(const opt_row_t *row, const tree_t *value,
                                const char *name, opt_ints_t *out, err_t *err)
{
    opt_ints_t ints = {.count = (int)opt_items(value)};
    const char *word = row->choices == NULL ? NULL : tree_text(value);
    err_code_t rc;
    int i;

    for (i = 0; word != NULL && row->choices[i] != NULL; i++)
        if (strcmp(row->choices[i], word) == 0) {
            out->count = -1 - i;
            return ERR_OK;
        }
    if (opt_items(value) > OPT_LIST_MAX)
        return opt_error(err, value, "%s: expected at most %d items, found %zu",
                         name, OPT_LIST_MAX, opt_items(value));
    for (i = 0; i < ints.count; i++) {
        rc = opt_fill_int(row, opt_item(value, (size_t)i), name, &ints.items[i],
                          err);
        if (rc != ERR_OK)
            return rc;
    }
    *out = ints;
    return ERR_OK;
}

static err_code_t opt_fill_texts(const opt_row_t *row, const tree_t *value,
                                 const char *name, opt_texts_t *out, err_t *err)
{
    size_t count = opt_items(value), i;

    for (i = 0; i < count; i++)
        if (tree_kind(opt_item(value, i)) != TREE_SCALAR)
            return opt_error_type(row, opt_item(value, i), name, err);
    out->items = calloc(count + 1, sizeof *out->items);
    if (out->items == NULL)
        abort();
    for (i = 0; i < count; i++)
        out->items[i] = str_dup(tree_text(opt_item(value, i)));
    out->count = (int)count;
    return ERR_OK;
}

static err_code_t opt_fill_reals(const opt_row_t *row, const tree_t *value,
                                 const char *name, opt_reals_t *out, err_t *err)
{
    const opt_row_t one = {
        .type = OPT_REAL, .min = row->min, .max = row->max, .unit = row->unit};
    const size_t count = opt_items(value);
    err_code_t rc = ERR_OK;

    out->items = calloc(count + 1, sizeof *out->items);
    if (out->items == NULL)
        abort();
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = opt_fill_scalar(&one, opt_item(value, i), name, &out->items[i],
                             err);
    out->count = (int)count;
    return rc;
}

bool opt_map_is_named(const tree_t *value)
{
    if (value == NULL || tree_kind(value) != TREE_MAP || tree_count(value) == 0)
        return false;
    for (size_t i = 0; i < tree_count(value); i++)
        if (tree_kind(tree_at(value, i)) != TREE_MAP)
            return false;
    return true;
}

static err_code_t opt_fill_map(const opt_row_t *row, const tree_t *value,
                               const char *name, opt_map_t *out, err_t *err)
{
    const bool named = opt_map_is_named(value);
    const size_t count = named ? tree_count(value) : 1;
    err_code_t rc = ERR_OK;
    char *path;

    if (count > OPT_MAP_MAX)
        return opt_error(err, value, "%s: expected at most %d names, found %zu",
                         name, OPT_MAP_MAX, count);
    out->items = calloc(count, row->size);
    if (out->items == NULL)
        abort();
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        void *item = (char *)out->items + i * row->size;

        path = named ? str_printf("%s.%s", name, tree_key(value, i))
                     : str_dup(name);
        rc = opt_fill(row->rows, named ? tree_at(value, i) : value, path, item,
                      err);
        free(path);
        if (rc != ERR_OK)
            break;
        out->names[i] = named ? str_dup(tree_key(value, i)) : NULL;
        if (value != NULL)
            out->places[i] =
                named ? tree_key_place(value, i) : tree_place(value);
        out->count = (int)i + 1;
    }
    return rc;
}

static err_code_t opt_fill_value(const opt_row_t *row, const tree_t *value,
                                 const char *name, void *field, err_t *err)
{
    switch (row->type) {
    case OPT_INTS:
        return opt_fill_ints(row, value, name, field, err);
    case OPT_REALS:
        return opt_fill_reals(row, value, name, field, err);
    case OPT_TEXTS:
        return opt_fill_texts(row, value, name, field, err);
    case OPT_SECTION:
        return opt_fill(row->rows, value, name, field, err);
    case OPT_MAP:
        return opt_fill_map(row, value, name, field, err);
    case OPT_TREE:
        *(const tree_t **)field = value;
        return ERR_OK;
    default:
        return opt_fill_scalar(row, value, name, field, err);
    }
}

/* Parse a default to a tree: a scalar, or a flow list of scalars. */
static tree_t *opt_fallback_tree(const char *text)
{
    tree_place_t place = {.file = "default"};
    size_t length = strlen(text);
    char *copy, *item, *rest = NULL;
    tree_t *tree;

    if (length < 2 || text[0] != '[' || text[length - 1] != ']')
        return tree_new(TREE_SCALAR, text, place);
    tree = tree_new(TREE_LIST, NULL, place);
    copy = str_dup(text + 1);
    copy[length - 2] = '\0';
    for (item = strtok_r(copy, ", ", &rest); item != NULL;
         item = strtok_r(NULL, ", ", &rest))
        tree_add(tree, tree_new(TREE_SCALAR, item, place));
    free(copy);
    return tree;
}

/* Fill an absent section with its defaults. A missing required option is
 * reported at the place of the enclosing map. */
static err_code_t opt_fill_absent(const opt_row_t *row, const tree_t *map,
                                  const char *name, void *field, err_t *err)
{
    tree_t *none =
        map == NULL ? NULL : tree_new(TREE_MAP, NULL, tree_place(map));
    err_code_t rc;

    if (row->type == OPT_SECTION) {
        rc = opt_fill(row->rows, none, name, field, err);
    } else {
        rc = opt_fill_map(row, none, name, field, err);
        ((opt_map_t *)field)->places[0] = (tree_place_t){NULL, 0, 0};
    }
    tree_free(none);
    return rc;
}

static err_code_t opt_fill_fallback(const opt_row_t *row, const tree_t *map,
                                    const char *name, void *field, err_t *err)
{
    err_code_t rc;
    tree_t *tree;

    if (row->type == OPT_SECTION || row->type == OPT_MAP)
        return opt_fill_absent(row, map, name, field, err);
    if (row->fallback == NULL)
        return opt_error(err, map, "%s is missing%s%s", name,
                         row->help == NULL ? "" : ": ",
                         row->help == NULL ? "" : row->help);
    if (row->type == OPT_TREE)
        return ERR_OK; /* opt_clear has set the field to NULL */
    tree = opt_fallback_tree(row->fallback);
    rc = opt_fill_value(row, tree, name, field, err);
    tree_free(tree);
    return rc;
}

/* Is every key of [map] in [rows]? */
static err_code_t opt_check_keys(const opt_row_t *rows, const tree_t *map,
                                 const char *path, err_t *err)
{
    const opt_row_t *row;
    size_t i;

    for (i = 0; i < tree_count(map); i++) {
        for (row = rows; row->name != NULL; row++)
            if (strcmp(row->name, tree_key(map, i)) == 0)
                break;
        if (row->name == NULL)
            return opt_error_unknown(rows, map, i, path, err);
    }
    return ERR_OK;
}

/* Set every field that opt_free frees to an empty value. */
static void opt_clear(const opt_row_t *rows, void *target)
{
    for (; rows->name != NULL; rows++) {
        void *field = opt_field(rows, target);

        if (rows->type == OPT_TEXT)
            *(char **)field = NULL;
        else if (rows->type == OPT_TREE)
            *(const tree_t **)field = NULL;
        else if (rows->type == OPT_REALS)
            *(opt_reals_t *)field = (opt_reals_t){0};
        else if (rows->type == OPT_TEXTS)
            *(opt_texts_t *)field = (opt_texts_t){0};
        else if (rows->type == OPT_MAP)
            *(opt_map_t *)field = (opt_map_t){0};
        else if (rows->type == OPT_SECTION)
            opt_clear(rows->rows, field);
    }
}

err_code_t opt_fill(const opt_row_t *rows, const tree_t *tree, const char *path,
                    void *target, err_t *err)
{
    err_code_t rc = ERR_OK;
    const opt_row_t *row;
    const tree_t *value;
    char *name;

    opt_clear(rows, target);
    if (tree != NULL && tree_kind(tree) == TREE_NULL)
        tree = NULL;
    if (tree != NULL && tree_kind(tree) != TREE_MAP)
        return opt_error_type(&(opt_row_t){.type = OPT_SECTION}, tree,
                              path[0] == '\0' ? "the top level" : path, err);
    if (tree != NULL)
        rc = opt_check_keys(rows, tree, path, err);
    for (row = rows; rc == ERR_OK && row->name != NULL; row++) {
        name =
            str_printf("%s%s%s", path, path[0] == '\0' ? "" : ".", row->name);
        value = tree == NULL ? NULL : tree_get(tree, row->name);
        if (value == NULL || tree_kind(value) == TREE_NULL)
            rc =
                opt_fill_fallback(row, tree, name, opt_field(row, target), err);
        else
            rc = opt_fill_value(row, value, name, opt_field(row, target), err);
        free(name);
    }
    if (rc != ERR_OK)
        opt_free(rows, target);
    return rc;
}

static void opt_free_map(const opt_row_t *row, opt_map_t *map)
{
    for (int i = 0; i < map->count; i++) {
        free(map->names[i]);
        opt_free(row->rows, (char *)map->items + (size_t)i * row->size);
    }
    free(map->items);
}

void opt_free(const opt_row_t *rows, void *target)
{
    const opt_row_t *row;
    opt_texts_t *texts;
    int i;

    for (row = rows; row->name != NULL; row++) {
        void *field = opt_field(row, target);

        if (row->type == OPT_TEXT)
            free(*(char **)field);
        if (row->type == OPT_REALS)
            free(((opt_reals_t *)field)->items);
        if (row->type == OPT_SECTION)
            opt_free(row->rows, field);
        if (row->type == OPT_MAP)
            opt_free_map(row, field);
        if (row->type != OPT_TEXTS)
            continue;
        texts = field;
        for (i = 0; i < texts->count; i++)
            free(texts->items[i]);
        free(texts->items);
    }
    opt_clear(rows, target);
}
