/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Columns of CSV files, whose first line has their names. A single process
 * parses every cell twice: before anything is written, to find mistakes and
 * count the samples, and when it is converted. Each of several processes first
 * counts all rows, without parsing their numbers, and then parses the numbers
 * of its own part. So a wrong number is found when its part is converted.
 */
#include "import/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/csv_cells.h"

enum { COLUMNS_MAX = 65536, UNUSED = -1 };

typedef struct names {
    char **items;
    int count;
} names_t;

/* There is a mark before each row whose number is a multiple of this, but for
 * row 0. */
#define MARK_ROWS 65536

/* A place between two rows, where reading can go on without earlier rows. */
typedef struct mark {
    int file;
    csv_place_t place;
} mark_t;

typedef struct csv {
    import_source_t source;
    const import_config_t *config;
    names_t wanted;     /* columns of the input, then those of the target */
    int inputs;         /* how many of them are of the input */
    double *values;     /* of one line, in the order of [wanted] */
    csv_cells_t *cells; /* open file; NULL: none */
    int next;           /* file that is opened next */
    int *places; /* for each column of the open file its index in [wanted] */
    int columns;
    bool counting; /* numbers are not parsed */
    int64_t row;   /* number of the next row */
    mark_t *marks; /* [mark_count]; mark i is before row (i + 1) MARK_ROWS */
    size_t mark_count, mark_room;
} csv_t;

/* ---- names --------------------------------------------------------------- */

static err_code_t name_add(names_t *names, const char *text, err_t *err)
{
    if (names->count == COLUMNS_MAX)
        return err_set(err, ERR_DATA, "more than %d columns", COLUMNS_MAX);
    if (names->items == NULL) {
        err_code_t rc = mem_new(char *, COLUMNS_MAX, "names of columns",
                                &names->items, err);

        if (rc != ERR_OK)
            return rc;
    }
    names->items[names->count++] = str_dup(text);
    return ERR_OK;
}

static void names_free(names_t *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->items[i]);
    mem_free(names->items);
    *names = (names_t){0};
}

static int name_find(const names_t *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return i;
    return UNUSED;
}

/* Add the names in "a,b,c". */
static err_code_t list_add(names_t *names, const char *option, const char *list,
                           err_t *err)
{
    char *copy = str_dup(list), *rest = copy, *name;
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && (name = strsep(&rest, ",")) != NULL) {
        if (*name == '\0')
            rc = err_set(err, ERR_USAGE,
                         "%s: expected names of columns, such as a,b, found "
                         "\"%s\"",
                         option, list);
        else if (name_find(names, name) != UNUSED)
            rc = err_set(err, ERR_USAGE, "%s: column %s is named twice", option,
                         name);
        else
            rc = name_add(names, name, err);
    }
    free(copy);
    return rc;
}

/* ---- lines --------------------------------------------------------------- */

/* Read the first line of the open file. */
static err_code_t title_read(csv_t *self, names_t *out, err_t *err)
{
    bool more = true;
    err_code_t rc;

    do {
        rc = csv_cells_next(self->cells, &more, err);
        if (rc == ERR_OK && !more)
            rc = err_set(err, ERR_DATA,
                         "%s: it is empty: expected names of columns in its "
                         "first line",
                         import_stream_path(self->cells->stream));
        if (rc == ERR_OK)
            rc = name_add(out, self->cells->cell, err);
    } while (rc == ERR_OK && !self->cells->last);
    return rc;
}

/* Find the wanted columns among the names of the open file's [title]. */
static err_code_t places_find(csv_t *self, const names_t *title, err_t *err)
{
    const char *path = import_stream_path(self->cells->stream);
    err_code_t rc;

    mem_free(self->places);
    self->places = NULL;
    self->columns = title->count;
    rc = mem_new(int, (size_t)title->count, "columns", &self->places, err);
    for (int i = 0; i < title->count && rc == ERR_OK; i++)
        self->places[i] = name_find(&self->wanted, title->items[i]);
    for (int i = 0; i < self->wanted.count && rc == ERR_OK; i++) {
        const char *name = self->wanted.items[i];
        int found = 0;

        for (int c = 0; c < title->count; c++)
            found += self->places[c] == i;
        if (found != 1)
            rc = err_set(err, ERR_DATA, "%s: %s column is called %s", path,
                         found == 0 ? "no" : "more than one", name);
    }
    return rc;
}

static err_code_t cell_parse(csv_t *self, int column, err_t *err)
{
    const csv_cells_t *cells = self->cells;
    char shown[64];

    if (self->places[column] == UNUSED || self->counting ||
        str_to_real(cells->cell, &self->values[self->places[column]]))
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s:%lld: column %s: expected a number, found \"%s\"",
                   import_stream_path(cells->stream), (long long)cells->line,
                   self->wanted.items[self->places[column]],
                   str_visible(cells->cell, shown, sizeof shown, false));
}

/* Read the next line of the open file into self->values; *more is false at its
 * end. */
static err_code_t line_read(csv_t *self, bool *more, err_t *err)
{
    csv_cells_t *cells = self->cells;
    int column = 0;
    err_code_t rc;

    do {
        rc = csv_cells_next(cells, more, err);
        if (rc != ERR_OK || !*more)
            return rc;
        if (column < self->columns)
            rc = cell_parse(self, column, err);
        column++;
    } while (rc == ERR_OK && !cells->last);
    if (rc == ERR_OK && column != self->columns)
        rc =
            err_set(err, ERR_DATA,
                    "%s:%lld: expected %d cells as in its first line, found %d",
                    import_stream_path(cells->stream), (long long)cells->line,
                    self->columns, column);
    return rc;
}

/* ---- files --------------------------------------------------------------- */

/* Without --input: all columns that are not of the target, in their order. The
 * names of the input must stand before those of the target. */
static err_code_t inputs_default(csv_t *self, const names_t *title, err_t *err)
{
    const names_t targets = self->wanted;
    names_t all = {0};
    err_code_t rc = ERR_OK;

    for (int i = 0; i < title->count && rc == ERR_OK; i++)
        if (name_find(&targets, title->items[i]) == UNUSED)
            rc = name_add(&all, title->items[i], err);
    self->inputs = all.count;
    for (int i = 0; i < targets.count && rc == ERR_OK; i++)
        rc = name_add(&all, targets.items[i], err);
    names_free(&self->wanted);
    self->wanted = all;
    return rc;
}

/* Open the next file and read its first line. */
static err_code_t file_next(csv_t *self, err_t *err)
{
    const bool choose = self->config->input == NULL && self->values == NULL;
    names_t title = {0};
    err_code_t rc;

    csv_cells_close(self->cells);
    self->cells = NULL;
    rc = csv_cells_open(self->config->words[self->next++], &self->cells, err);
    if (rc == ERR_OK)
        rc = title_read(self, &title, err);
    if (rc == ERR_OK && choose)
        rc = inputs_default(self, &title, err);
    if (rc == ERR_OK && self->values == NULL)
        rc = mem_new(double, (size_t)self->wanted.count, "numbers",
                     &self->values, err);
    if (rc == ERR_OK)
        rc = places_find(self, &title, err);
    names_free(&title);
    return rc;
}

/* Read the next line of all files; *more is false behind the last one. */
static err_code_t row_read(csv_t *self, bool *more, err_t *err)
{
    err_code_t rc = ERR_OK;

    *more = false;
    while (rc == ERR_OK && !*more) {
        if (self->cells != NULL)
            rc = line_read(self, more, err);
        if (rc != ERR_OK || *more)
            break;
        if (self->next == self->config->word_count)
            break;
        rc = file_next(self, err);
    }
    self->row += rc == ERR_OK && *more;
    return rc;
}

/* Add a mark before the next row. */
static err_code_t mark_add(csv_t *self, err_t *err)
{
    if (self->mark_count == self->mark_room) {
        const size_t room = 2 * self->mark_room + 16;
        mark_t *larger = NULL;
        err_code_t rc = mem_new(mark_t, room, "a table", &larger, err);

        if (rc != ERR_OK)
            return rc;
        if (self->mark_count > 0)
            memcpy(larger, self->marks, self->mark_count * sizeof *larger);
        mem_free(self->marks);
        self->marks = larger;
        self->mark_room = room;
    }
    self->marks[self->mark_count++] =
        (mark_t){.file = self->next - 1, .place = csv_cells_place(self->cells)};
    return ERR_OK;
}

/* Read everything, and begin again. */
static err_code_t rows_count(csv_t *self, err_t *err)
{
    err_code_t rc = ERR_OK;
    bool more = true;

    self->counting = self->config->share != NULL;
    while (rc == ERR_OK && more) {
        if (self->row > 0 && self->row % MARK_ROWS == 0)
            rc = mark_add(self, err);
        if (rc == ERR_OK)
            rc = row_read(self, &more, err);
    }
    self->source.rows = self->row;
    self->counting = false;
    csv_cells_close(self->cells);
    self->cells = NULL;
    self->next = 0;
    self->row = 0;
    if (rc == ERR_OK && self->source.rows == 0)
        rc = err_set(err, ERR_DATA, "%s: there is no line behind the first one",
                     self->config->words[0]);
    return rc;
}

static void field_add(csv_t *self, const char *name, import_type_t type,
                      int count)
{
    import_field_t *field;

    if (count == 0)
        return;
    field = &self->source.fields[self->source.field_count++];
    snprintf(field->name, sizeof field->name, "%s", name);
    field->type = type;
    field->ndim = count > 1 ? 1 : 0;
    field->dims[0] = count;
}

/* ---- the source ---------------------------------------------------------- */

static void csv_close(import_source_t *source)
{
    csv_t *self = (csv_t *)source;

    csv_cells_close(self->cells);
    names_free(&self->wanted);
    mem_free(self->values);
    mem_free(self->places);
    mem_free(self->marks);
    mem_free(self);
}

static err_code_t csv_open(const import_config_t *config, import_source_t **out,
                           err_t *err)
{
    csv_t *self;
    err_code_t rc = mem_new(csv_t, 1, "a source", &self, err);

    if (rc != ERR_OK)
        return rc;
    self->source.kind = &import_csv;
    self->config = config;
    if (config->input != NULL)
        rc = list_add(&self->wanted, "--input", config->input, err);
    self->inputs = self->wanted.count;
    if (rc == ERR_OK && config->target != NULL)
        rc = list_add(&self->wanted, "--target", config->target, err);
    if (rc == ERR_OK)
        rc = rows_count(self, err);
    if (rc == ERR_OK) {
        field_add(self, "input", IMPORT_FLOAT32, self->inputs);
        field_add(self, "target", IMPORT_FLOAT64,
                  self->wanted.count - self->inputs);
        *out = &self->source;
    } else {
        csv_close(&self->source);
    }
    return rc;
}

/* Read the next row. It must exist, since the rows were counted before. */
static err_code_t row_again(csv_t *self, err_t *err)
{
    bool more = true;
    err_code_t rc = row_read(self, &more, err);

    if (rc == ERR_OK && !more)
        rc = csv_cells_changed(self->cells, err);
    return rc;
}

static err_code_t csv_read(import_source_t *source, int64_t rows,
                           void *const *out, err_t *err)
{
    csv_t *self = (csv_t *)source;
    const int targets = self->wanted.count - self->inputs;
    float *input = out[0];
    double *target = self->inputs > 0 ? out[1] : out[0];
    err_code_t rc = ERR_OK;

    for (int64_t row = 0; row < rows && rc == ERR_OK; row++) {
        rc = row_again(self, err);
        for (int i = 0; i < self->inputs && rc == ERR_OK; i++)
            *input++ = (float)self->values[i];
        for (int i = 0; i < targets && rc == ERR_OK; i++)
            *target++ = self->values[self->inputs + i];
    }
    return rc;
}

/* Go to the last mark that is not behind row [row]. Stay here if the next row
 * is at or behind this mark. */
static err_code_t mark_reach(csv_t *self, int64_t row, err_t *err)
{
    const size_t number = (size_t)(row / MARK_ROWS);
    const mark_t *mark;
    err_code_t rc = ERR_OK;

    if (number == 0 || (int64_t)number * MARK_ROWS <= self->row)
        return ERR_OK;
    check(number <= self->mark_count, "mark %zu of %zu", number,
          self->mark_count);
    mark = &self->marks[number - 1];
    if (self->cells == NULL || self->next - 1 != mark->file) {
        self->next = mark->file;
        rc = file_next(self, err);
    }
    if (rc == ERR_OK)
        rc = csv_cells_seek(self->cells, &mark->place, err);
    self->row = (int64_t)number * MARK_ROWS;
    return rc;
}

static err_code_t csv_skip(import_source_t *source, int64_t rows, err_t *err)
{
    csv_t *self = (csv_t *)source;
    const int64_t last = self->row + rows;
    err_code_t rc = mark_reach(self, last, err);

    self->counting = true;
    while (rc == ERR_OK && self->row < last)
        rc = row_again(self, err);
    self->counting = false;
    return rc;
}

const import_kind_t import_csv = {.name = "csv",
                                  .takes = IMPORT_TAKES_COLUMNS,
                                  .open = csv_open,
                                  .read = csv_read,
                                  .skip = csv_skip,
                                  .close = csv_close};
