/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Prints the values of a struct as YAML, and its table as documentation. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/opt.h"
#include "base/opt_value.h"

static const void *opt_print_field(const opt_row_t *row, const void *target)
{
    return (const char *)target + row->offset;
}

static void opt_print_list(const opt_row_t *row, const void *field,
                           str_buf_t *out)
{
    const opt_texts_t *texts = field;
    const opt_reals_t *reals = field;
    const opt_ints_t *ints = field;
    int i;

    if (row->type == OPT_INTS && ints->count < 0) {
        tree_print_text(row->choices[-1 - ints->count], out);
        return;
    }
    str_buf_add(out, "[");
    for (i = 0; row->type == OPT_INTS && i < ints->count; i++)
        str_buf_add(out, "%s%" PRId64, i == 0 ? "" : ", ", ints->items[i]);
    for (i = 0; row->type == OPT_REALS && i < reals->count; i++) {
        str_buf_add(out, "%s", i == 0 ? "" : ", ");
        opt_value_print_real(reals->items[i], out);
    }
    for (i = 0; row->type == OPT_TEXTS && i < texts->count; i++) {
        str_buf_add(out, "%s", i == 0 ? "" : ", ");
        tree_print_text(texts->items[i], out);
    }
    str_buf_add(out, "]");
}

/* Print a value that is neither a tree nor a section. */
static void opt_print_value(const opt_row_t *row, const void *field,
                            str_buf_t *out)
{
    switch (row->type) {
    case OPT_BOOL:
        str_buf_add(out, *(const bool *)field ? "true" : "false");
        break;
    case OPT_INT:
        str_buf_add(out, "%" PRId64, *(const int64_t *)field);
        break;
    case OPT_REAL:
        opt_value_print_real(*(const double *)field, out);
        break;
    case OPT_SECONDS:
        opt_value_print_real(*(const double *)field, out);
        str_buf_add(out, " s");
        break;
    case OPT_TEXT:
        tree_print_text(*(char *const *)field, out);
        break;
    case OPT_CHOICE:
        for (int i = 0; i <= *(const int *)field; i++)
            check(row->choices[i] != NULL, "%s is choice %d of %d", row->name,
                  *(const int *)field, i);
        tree_print_text(row->choices[*(const int *)field], out);
        break;
    case OPT_EVERY:
        opt_value_print_every(*(const opt_every_t *)field, out);
        break;
    case OPT_INTS:
    case OPT_REALS:
    case OPT_TEXTS:
        opt_print_list(row, field, out);
        break;
    case OPT_TREE:
    case OPT_SECTION:
    case OPT_MAP:
        break;
    }
}

static void opt_print_tree(const tree_t *tree, int indent, str_buf_t *out)
{
    bool nested = tree_kind(tree) > TREE_SCALAR && tree_count(tree) > 0;

    str_buf_add(out, nested ? "\n" : " ");
    tree_print(tree, nested ? indent + 2 : 0, out);
}

static void opt_print_map(const opt_row_t *row, const opt_map_t *map,
                          int indent, str_buf_t *out)
{
    for (int i = 0; i < map->count; i++) {
        const void *item = (const char *)map->items + (size_t)i * row->size;

        if (map->names[i] != NULL) {
            str_buf_add(out, "%*s", indent, "");
            tree_print_text(map->names[i], out);
            str_buf_add(out, ":\n");
        }
        opt_print(row->rows, item, map->names[i] != NULL ? indent + 2 : indent,
                  out);
    }
}

void opt_print(const opt_row_t *rows, const void *target, int indent,
               str_buf_t *out)
{
    const void *field;

    for (; rows->name != NULL; rows++) {
        field = opt_print_field(rows, target);
        if (rows->type == OPT_TREE && *(tree_t *const *)field == NULL)
            continue;
        str_buf_add(out, "%*s%s:", indent, "", rows->name);
        if (rows->type == OPT_TREE) {
            opt_print_tree(*(tree_t *const *)field, indent, out);
        } else if (rows->type == OPT_SECTION) {
            /* A section without rows prints as null, which means all
             * defaults. */
            str_buf_add(out, "\n");
            opt_print(rows->rows, field, indent + 2, out);
        } else if (rows->type == OPT_MAP) {
            str_buf_add(out, "\n");
            opt_print_map(rows, field, indent + 2, out);
        } else {
            str_buf_add(out, " ");
            opt_print_value(rows, field, out);
            str_buf_add(out, "\n");
        }
    }
}

bool opt_is_default(const opt_row_t *row, const void *target)
{
    union {
        opt_ints_t ints;
        opt_reals_t reals;
        opt_texts_t texts;
        opt_every_t every;
        double real;
        char *text;
    } value = {.real = 0};
    opt_row_t one[] = {*row, {.name = NULL}};
    str_buf_t have = {0}, standard = {0};
    bool same;

    if (row->type == OPT_SECTION || row->type == OPT_MAP ||
        row->fallback == NULL)
        return false;
    if (row->type == OPT_TREE)
        return *(tree_t *const *)opt_print_field(row, target) == NULL;
    opt_print(one, target, 0, &have);
    one[0].offset = 0;
    if (opt_fill(one, NULL, "", &value, NULL) != ERR_OK)
        abort(); /* a default must be valid */
    opt_print(one, &value, 0, &standard);
    opt_free(one, &value);
    same = have.text != NULL && standard.text != NULL &&
           strcmp(have.text, standard.text) == 0;
    str_buf_free(&have);
    str_buf_free(&standard);
    return same;
}

/* Print text in a Markdown table, where a bar would end the cell. */
static void opt_document_cell(const char *text, str_buf_t *out)
{
    for (; *text != '\0'; text++)
        str_buf_add(out, *text == '|' ? "\\|" : "%c", *text);
}

static void opt_document_default(const opt_row_t *row, str_buf_t *out)
{
    if (row->rows != NULL)
        str_buf_add(out, "see below");
    else if (row->fallback == NULL)
        str_buf_add(out, "**required**");
    else if (row->fallback[0] == '\0')
        str_buf_add(out, row->type == OPT_TEXT ? "empty" : "none");
    else
        str_buf_add(out, "`%s`", row->fallback);
}

static void opt_document_row(const opt_row_t *row, str_buf_t *out)
{
    str_buf_add(out, "| `%s`%s | ", row->name, row->free ? " +" : "");
    opt_value_describe(row, out);
    if (opt_value_bounded(row)) {
        str_buf_add(out, ", ");
        opt_value_describe_bounds(row, NAN, out);
    } else if (row->unit != NULL) {
        str_buf_add(out, " (%s)", row->unit);
    }
    str_buf_add(out, " | ");
    opt_document_default(row, out);
    str_buf_add(out, " | ");
    opt_document_cell(row->help == NULL ? "" : row->help, out);
    str_buf_add(out, " |\n");
}

void opt_document(const opt_row_t *rows, const char *title, str_buf_t *out)
{
    const opt_row_t *row;
    char *name;

    str_buf_add(out, "### %s\n\n", title[0] != '\0' ? title : "top level");
    str_buf_add(out, "| key | value | default | meaning |\n");
    str_buf_add(out, "|---|---|---|---|\n");
    for (row = rows; row->name != NULL; row++)
        opt_document_row(row, out);
    str_buf_add(out, "\n");
    for (row = rows; row->name != NULL; row++) {
        if (row->rows == NULL)
            continue;
        name =
            str_printf("%s%s%s", title, title[0] != '\0' ? "." : "", row->name);
        opt_document(row->rows, name, out);
        free(name);
    }
}
