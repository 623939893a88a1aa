/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The files are read twice: for the keys, and for the rows. Rows that are
 * appended meanwhile may have new keys, which are left out. */
#include "report/csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "report/rows.h"
#include "report/run.h"

#define KEYS_MAX 256

typedef struct columns {
    char *keys[KEYS_MAX];
    int count;
    int order[REPORT_FIELDS_MAX]; /* index + 1 of the column of field i in the
                                     row before; 0: not known */
} columns_t;

/* Is the value a list or an object? A key that has only such values gets no
 * column. */
static bool is_nested(const report_field_t *field)
{
    return field->kind == REPORT_OTHER && field->text.length > 0 &&
           (field->text.at[0] == '[' || field->text.at[0] == '{');
}

/* The column of field [at] with [key]; -1: none. Most rows have the keys of the
 * row before. */
static int column_find(columns_t *columns, int at, report_text_t key)
{
    const int known = columns->order[at] - 1;

    if (known >= 0 && report_text_is(key, columns->keys[known]))
        return known;
    for (int i = 0; i < columns->count; i++)
        if (report_text_is(key, columns->keys[i])) {
            columns->order[at] = i + 1;
            return i;
        }
    return -1;
}

/* What is done with each row. */
typedef struct pass {
    columns_t *columns;
    const char *run;
    FILE *out;
} pass_t;

typedef err_code_t row_fn(pass_t *pass, const report_row_t *row, err_t *err);

static err_code_t keys_take(pass_t *pass, const report_row_t *row, err_t *err)
{
    columns_t *columns = pass->columns;

    for (int i = 0; i < row->count; i++) {
        const report_text_t key = row->fields[i].key;

        if (is_nested(&row->fields[i]) || column_find(columns, i, key) >= 0)
            continue;
        if (columns->count == KEYS_MAX)
            return err_set(err, ERR_DATA,
                           "%s/metrics.jsonl has more than %d different keys",
                           pass->run, KEYS_MAX);
        columns->keys[columns->count++] =
            str_printf("%.*s", (int)key.length, key.at);
    }
    return ERR_OK;
}

/* Write [text] in quotes if it needs them. */
static void text_put(FILE *out, const char *text, size_t length)
{
    bool plain = true;

    for (size_t i = 0; i < length; i++)
        plain &= strchr(",\"\r\n", text[i]) == NULL || text[i] == '\0';
    if (plain) {
        fwrite(text, 1, length, out);
        return;
    }
    putc('"', out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            putc('"', out);
        putc(text[i], out);
    }
    putc('"', out);
}

static err_code_t row_put(pass_t *pass, const report_row_t *row, err_t *err)
{
    const report_field_t *fields[KEYS_MAX] = {NULL};

    (void)err;
    for (int i = 0; i < row->count; i++) {
        const int at = column_find(pass->columns, i, row->fields[i].key);

        if (at >= 0 && row->fields[i].kind != REPORT_OTHER)
            fields[at] = &row->fields[i];
    }
    text_put(pass->out, pass->run, strlen(pass->run));
    for (int i = 0; i < pass->columns->count; i++) {
        putc(',', pass->out);
        if (fields[i] != NULL)
            text_put(pass->out, fields[i]->text.at, fields[i]->text.length);
    }
    putc('\n', pass->out);
    return ERR_OK;
}

static err_code_t rows_visit(pass_t *pass, row_fn *visit, err_t *err)
{
    report_rows_t *rows = NULL;
    report_row_t row;
    bool got = true, missing = false;
    err_code_t rc;

    if (!report_run_is(pass->run))
        return report_run_refuse(pass->run, err);
    rc = report_rows_open(pass->run, &rows, &missing, err);
    if (missing)
        return ERR_OK;
    while (rc == ERR_OK && got) {
        rc = report_rows_next(rows, &row, &got, err);
        if (rc == ERR_OK && got)
            rc = visit(pass, &row, err);
    }
    report_rows_close(rows);
    return rc;
}

err_code_t report_csv(char *const *dirs, int count, FILE *out, err_t *err)
{
    columns_t columns = {.count = 0};
    pass_t pass = {.columns = &columns, .out = out};
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < count; i++) {
        pass.run = dirs[i];
        rc = rows_visit(&pass, keys_take, err);
    }
    if (rc == ERR_OK) {
        fputs("run", out);
        for (int i = 0; i < columns.count; i++) {
            putc(',', out);
            text_put(out, columns.keys[i], strlen(columns.keys[i]));
        }
        putc('\n', out);
    }
    for (int i = 0; rc == ERR_OK && i < count; i++) {
        pass.run = dirs[i];
        rc = rows_visit(&pass, row_put, err);
    }
    for (int i = 0; i < columns.count; i++)
        free(columns.keys[i]);
    return rc;
}
