/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Only the file that is being read is open, so any number of files will do. All
 * headers are read before the first sample, and once more when the turn of a
 * file comes: it may have been changed. */
#include "import/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

typedef struct column {
    const char **paths; /* [count] files, in their order */
    int64_t *rows;      /* samples of each file */
    int count;
    import_stream_t *stream; /* NULL: none is open */
    int next;                /* file that is opened next */
    int64_t left;            /* samples of the open file not read yet */
    bool swapped;
    size_t row_bytes;
} column_t;

struct import_columns {
    import_source_t source;
    const import_config_t *config;
    const import_columns_how_t *how;
    char **made; /* words that others stood for; owned */
    int made_count;
    column_t columns[IMPORT_FIELDS_MAX];
};

/* Of a file that is not packed, compare the size with the header. */
static err_code_t size_check(const import_stream_t *stream,
                             const import_header_t *header, err_t *err)
{
    const int64_t size = import_stream_size(stream);
    const int64_t begin = import_stream_place(stream);
    int64_t end;

    if (import_stream_packed(stream) ||
        (!__builtin_mul_overflow(
             header->rows, (int64_t)import_field_bytes(&header->field), &end) &&
         !__builtin_add_overflow(end, begin, &end) && end == size))
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "its header, of %lld bytes, says %lld samples of %zu bytes, "
                   "but it has %lld bytes",
                   (long long)begin, (long long)header->rows,
                   import_field_bytes(&header->field), (long long)size);
}

static err_code_t header_get(const import_columns_t *self, const char *path,
                             import_stream_t **stream, import_header_t *out,
                             err_t *err)
{
    const import_columns_how_t *how = self->how;
    err_code_t rc = how->open != NULL
                        ? how->open(path, stream, err)
                        : import_stream_open(path, how->unpack, stream, err);

    if (rc != ERR_OK)
        return rc;
    *out = (import_header_t){0};
    rc = how->header(self->config, *stream, out, err);
    if (rc == ERR_OK) {
        rc = import_field_check(&out->field, err);
        if (rc == ERR_OK)
            rc = size_check(*stream, out, err);
        if (rc != ERR_OK)
            err_prefix(err, "%s", path);
    }
    if (rc != ERR_OK) {
        import_stream_close(*stream);
        *stream = NULL;
    }
    return rc;
}

/* ---- opening ------------------------------------------------------------- */

/* Add the file [path] to column [index]. */
static err_code_t file_add(import_columns_t *self, int index, const char *path,
                           err_t *err)
{
    import_field_t *field = &self->source.fields[index];
    column_t *column = &self->columns[index];
    import_stream_t *stream = NULL;
    import_header_t header;
    err_code_t rc = header_get(self, path, &stream, &header, err);

    if (rc != ERR_OK)
        return rc;
    import_stream_close(stream);
    if (column->count == 0) {
        memcpy(header.field.name, field->name, sizeof field->name);
        *field = header.field;
        column->row_bytes = import_field_bytes(field);
    } else if (!import_field_equal(&header.field, field)) {
        return err_set(err, ERR_DATA,
                       "%s: its samples have another type or shape than those "
                       "of %s, which are part of %s, too",
                       path, column->paths[0], field->name);
    }
    column->paths[column->count] = path;
    column->rows[column->count++] = header.rows;
    return ERR_OK;
}

/* Find the column with the name before '=' in [word], or make it. */
static err_code_t column_find(import_columns_t *self, const char *word,
                              size_t length, int *index, err_t *err)
{
    const size_t most = (size_t)self->config->word_count;
    import_source_t *source = &self->source;
    char name[IMPORT_NAME_MAX + 1];
    column_t *column;
    err_code_t rc;

    snprintf(name, sizeof name, "%.*s", (int)length, word);
    for (*index = 0; *index < source->field_count; ++*index)
        if (strcmp(source->fields[*index].name, name) == 0)
            return ERR_OK;
    if (source->field_count == IMPORT_FIELDS_MAX)
        return err_set(err, ERR_USAGE, "there are more than %d names",
                       IMPORT_FIELDS_MAX);
    rc = import_field_call(&source->fields[*index], name, err);
    if (rc != ERR_OK)
        return rc;
    column = &self->columns[source->field_count++];
    rc = mem_new(const char *, most, "names of files", &column->paths, err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, most, "names of files", &column->rows, err);
    return rc;
}

static err_code_t word_take(import_columns_t *self, const char *word,
                            err_t *err)
{
    const char *equal = strchr(word, '=');
    int index = 0;
    err_code_t rc;

    if (equal == NULL || equal[1] == '\0')
        return err_set(err, ERR_USAGE,
                       "expected NAME=FILE with the name of a dataset, such as "
                       "image=%s, found \"%s\"",
                       equal == NULL ? word : "FILE", word);
    rc = column_find(self, word, (size_t)(equal - word), &index, err);
    return rc == ERR_OK ? file_add(self, index, equal + 1, err) : rc;
}

/* Take a word that another one stands for. */
static err_code_t made_take(void *context, char *word, err_t *err)
{
    import_columns_t *self = context;
    char **made =
        realloc(self->made, (size_t)(self->made_count + 1) * sizeof made[0]);

    if (made == NULL) {
        free(word);
        return err_set(err, ERR_MEMORY, "no memory for names of files");
    }
    self->made = made;
    made[self->made_count++] = word;
    return word_take(self, word, err);
}

/* Count the samples, which must be as many in each column. */
static err_code_t rows_count(import_columns_t *self, err_t *err)
{
    import_source_t *source = &self->source;

    for (int i = 0; i < source->field_count; i++) {
        const column_t *column = &self->columns[i];
        int64_t rows = 0;

        for (int f = 0; f < column->count; f++)
            if (__builtin_add_overflow(rows, column->rows[f], &rows))
                return err_set(err, ERR_DATA, "%s: more than 2^63 samples",
                               column->paths[f]);
        if (i == 0)
            source->rows = rows;
        if (rows != source->rows)
            return err_set(err, ERR_DATA,
                           "%s has %lld samples (%s%s), but %s has %lld (%s%s)",
                           source->fields[0].name, (long long)source->rows,
                           self->columns[0].paths[0],
                           self->columns[0].count > 1 ? " and others" : "",
                           source->fields[i].name, (long long)rows,
                           column->paths[0],
                           column->count > 1 ? " and others" : "");
    }
    if (source->rows == 0)
        return err_set(err, ERR_DATA, "%s: there are no samples",
                       self->columns[0].paths[0]);
    return ERR_OK;
}

err_code_t import_columns_open(const import_kind_t *kind,
                               const import_columns_how_t *how,
                               const import_config_t *config,
                               import_source_t **out, err_t *err)
{
    import_columns_t *self;
    err_code_t rc = mem_new(import_columns_t, 1, "a source", &self, err);

    if (rc != ERR_OK)
        return rc;
    self->source.kind = kind;
    self->config = config;
    self->how = how;
    for (int i = 0; i < config->word_count && rc == ERR_OK; i++)
        rc = how->expand != NULL && strchr(config->words[i], '=') == NULL
                 ? how->expand(config->words[i], made_take, self, err)
                 : word_take(self, config->words[i], err);
    if (rc == ERR_OK)
        rc = rows_count(self, err);
    if (rc == ERR_OK)
        *out = &self->source;
    else
        import_columns_close(&self->source);
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

/* Turn around the bytes of each of the [count] numbers. */
static void bytes_swap(void *data, size_t count, size_t size)
{
    uint16_t *two = data;
    uint32_t *four = data;
    uint64_t *eight = data;

    for (size_t i = 0; size == 2 && i < count; i++)
        two[i] = __builtin_bswap16(two[i]);
    for (size_t i = 0; size == 4 && i < count; i++)
        four[i] = __builtin_bswap32(four[i]);
    for (size_t i = 0; size == 8 && i < count; i++)
        eight[i] = __builtin_bswap64(eight[i]);
}

/* Open the next file that has samples. */
static err_code_t file_next(import_columns_t *self, int index, err_t *err)
{
    column_t *column = &self->columns[index];
    const int file = column->next++;
    import_header_t header;
    err_code_t rc =
        header_get(self, column->paths[file], &column->stream, &header, err);

    if (rc != ERR_OK)
        return rc;
    if (header.rows != column->rows[file] ||
        !import_field_equal(&header.field, &self->source.fields[index]))
        return err_set(err, ERR_DATA, "%s: it was changed while it was read",
                       column->paths[file]);
    column->left = header.rows;
    column->swapped = header.swapped;
    return ERR_OK;
}

/* Read the next samples of a field, or pass over them ([out] NULL). */
static err_code_t column_read(import_columns_t *self, int index, int64_t rows,
                              char *out, err_t *err)
{
    const size_t size = import_type_size(self->source.fields[index].type);
    column_t *column = &self->columns[index];
    err_code_t rc = ERR_OK;

    while (rows > 0 && rc == ERR_OK) {
        int64_t take;
        size_t bytes;

        if (column->stream == NULL)
            rc = file_next(self, index, err);
        if (rc != ERR_OK)
            break;
        take = rows < column->left ? rows : column->left;
        bytes = (size_t)take * column->row_bytes;
        rc = out == NULL
                 ? import_stream_skip(column->stream, (int64_t)bytes, err)
                 : import_stream_exact(column->stream, out, bytes, "numbers",
                                       err);
        if (rc == ERR_OK && out != NULL && column->swapped)
            bytes_swap(out, bytes / size, size);
        if (out != NULL)
            out += bytes;
        rows -= take;
        column->left -= take;
        if (rc == ERR_OK && column->left == 0) {
            rc = import_stream_end(column->stream, err);
            import_stream_close(column->stream);
            column->stream = NULL;
        }
    }
    return rc;
}

err_code_t import_columns_read(import_source_t *source, int64_t rows,
                               void *const *out, err_t *err)
{
    import_columns_t *self = (import_columns_t *)source;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < source->field_count && rc == ERR_OK; i++)
        rc = column_read(self, i, rows, out[i], err);
    return rc;
}

err_code_t import_columns_skip(import_source_t *source, int64_t rows,
                               err_t *err)
{
    import_columns_t *self = (import_columns_t *)source;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < source->field_count && rc == ERR_OK; i++)
        rc = column_read(self, i, rows, NULL, err);
    return rc;
}

void import_columns_close(import_source_t *source)
{
    import_columns_t *self = (import_columns_t *)source;

    for (int i = 0; i < source->field_count; i++) {
        import_stream_close(self->columns[i].stream);
        mem_free(self->columns[i].paths);
        mem_free(self->columns[i].rows);
    }
    for (int i = 0; i < self->made_count; i++)
        free(self->made[i]);
    free(self->made);
    mem_free(self);
}
