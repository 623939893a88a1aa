/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * .npy files of NumPy: "\x93NUMPY", a version of two bytes, the length of the
 * header (2 bytes; from version 2 on 4 bytes, little-endian), and the header, a
 * dictionary in Python's notation:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60, 3), }
 *
 * Its keys may have any order. Only what numpy.save writes for arrays of
 * numbers is accepted.
 */
#include "import/columns.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { HEADER_MOST = 65536, WORD_MOST = 32 };

/* A position in the text of the header. */
typedef struct reader {
    const char *at;
    const char *path;
} reader_t;

static err_code_t header_fail(const reader_t *reader, const char *expected,
                              err_t *err)
{
    char shown[64];

    return err_set(err, ERR_DATA,
                   "%s: its header cannot be understood: expected %s before "
                   "\"%s\"",
                   reader->path, expected,
                   str_visible(reader->at, shown, sizeof shown, false));
}

/* Skip blanks, then [sign] if it is there. */
static bool sign_take(reader_t *reader, char sign)
{
    while (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t')
        reader->at++;
    if (*reader->at != sign)
        return false;
    reader->at++;
    return true;
}

/* Read a text in single or double quotes. */
static err_code_t text_take(reader_t *reader, char out[WORD_MOST], err_t *err)
{
    const char quote = sign_take(reader, '\'') ? '\'' : '"';
    size_t length;

    if (quote == '"' && !sign_take(reader, '"'))
        return header_fail(reader, "a text in quotes", err);
    length = strcspn(reader->at, quote == '"' ? "\"" : "'");
    if (reader->at[length] != quote || length >= WORD_MOST)
        return header_fail(reader, "a short text in quotes", err);
    memcpy(out, reader->at, length);
    out[length] = '\0';
    reader->at += length + 1;
    return ERR_OK;
}

/* ---- values -------------------------------------------------------------- */

static err_code_t descr_take(reader_t *reader, import_header_t *out, err_t *err)
{
    static const struct {
        const char *name;
        import_type_t type;
    } types[] = {
        {"b1", IMPORT_UINT8},   {"i1", IMPORT_INT8},    {"u1", IMPORT_UINT8},
        {"i2", IMPORT_INT16},   {"u2", IMPORT_UINT16},  {"i4", IMPORT_INT32},
        {"u4", IMPORT_UINT32},  {"i8", IMPORT_INT64},   {"u8", IMPORT_UINT64},
        {"f2", IMPORT_FLOAT16}, {"f4", IMPORT_FLOAT32}, {"f8", IMPORT_FLOAT64}};
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    char word[WORD_MOST];
    err_code_t rc = text_take(reader, word, err);

    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (word[0] != '\0' && strchr("<>|=", word[0]) != NULL &&
            strcmp(word + 1, types[i].name) == 0) {
            out->field.type = types[i].type;
            out->swapped =
                (word[0] == '>' && little) || (word[0] == '<' && !little);
            return ERR_OK;
        }
    return err_set(err, ERR_DATA,
                   "%s: its numbers have the type \"%s\": expected bool, int8 "
                   "to int64, uint8 to uint64, or float16 to float64; convert "
                   "it by numpy.ndarray.astype",
                   reader->path, word);
}

static err_code_t order_take(reader_t *reader, bool *fortran, err_t *err)
{
    sign_take(reader, ' ');
    *fortran = strncmp(reader->at, "True", 4) == 0;
    if (!*fortran && strncmp(reader->at, "False", 5) != 0)
        return header_fail(reader, "True or False", err);
    reader->at += *fortran ? 4 : 5;
    return ERR_OK;
}

/* Read "(60, 3)": samples, and the shape of one. */
static err_code_t shape_take(reader_t *reader, import_header_t *out, err_t *err)
{
    int count = 0;
    char *end;

    if (!sign_take(reader, '('))
        return header_fail(reader, "(", err);
    while (!sign_take(reader, ')')) {
        const bool digit = isdigit((unsigned char)*reader->at) != 0;
        const long long size = digit ? strtoll(reader->at, &end, 10) : 0;

        if (!digit || size == INT64_MAX)
            return header_fail(reader, "a size", err);
        if (count > IMPORT_DIMS_MAX)
            return err_set(err, ERR_DATA, "%s: more than %d dimensions",
                           reader->path, IMPORT_DIMS_MAX + 1);
        if (count == 0)
            out->rows = size;
        else
            out->field.dims[count - 1] = size;
        count++;
        reader->at = end;
        if (!sign_take(reader, ',') && *reader->at != ')')
            return header_fail(reader, ", or )", err);
    }
    if (count == 0)
        return err_set(err, ERR_DATA,
                       "%s: this is a single number: expected an array, whose "
                       "first dimension counts samples",
                       reader->path);
    out->field.ndim = count - 1;
    return ERR_OK;
}

static err_code_t dictionary_take(reader_t *reader, import_header_t *out,
                                  err_t *err)
{
    bool fortran = false;
    int found = 0; /* bits: descr, fortran_order, shape */
    char key[WORD_MOST];
    err_code_t rc = ERR_OK;

    if (!sign_take(reader, '{'))
        return header_fail(reader, "{", err);
    while (rc == ERR_OK && !sign_take(reader, '}')) {
        rc = text_take(reader, key, err);
        if (rc == ERR_OK && !sign_take(reader, ':'))
            rc = header_fail(reader, ":", err);
        if (rc != ERR_OK)
            break;
        if (strcmp(key, "descr") == 0) {
            found |= 1;
            rc = descr_take(reader, out, err);
        } else if (strcmp(key, "fortran_order") == 0) {
            found |= 2;
            rc = order_take(reader, &fortran, err);
        } else if (strcmp(key, "shape") == 0) {
            found |= 4;
            rc = shape_take(reader, out, err);
        } else {
            rc = header_fail(reader, "descr, fortran_order or shape", err);
        }
        if (rc == ERR_OK && !sign_take(reader, ',') && *reader->at != '}')
            rc = header_fail(reader, ", or }", err);
    }
    if (rc == ERR_OK && found != 7)
        rc = header_fail(reader, "descr, fortran_order and shape", err);
    if (rc == ERR_OK && fortran && out->field.ndim > 0)
        rc = err_set(err, ERR_DATA,
                     "%s: the array is stored in Fortran's order, so no sample "
                     "is in one piece; save numpy.ascontiguousarray of it",
                     reader->path);
    return rc;
}

/* ---- the file ------------------------------------------------------------ */

/* Read the first bytes, and set *length to the length of the header. */
static err_code_t magic_read(import_stream_t *stream, size_t *length,
                             err_t *err)
{
    const char *path = import_stream_path(stream);
    unsigned char begin[8], count[4] = {0};
    err_code_t rc =
        import_stream_exact(stream, begin, sizeof begin, "header", err);

    if (rc != ERR_OK)
        return rc;
    if (memcmp(begin, "\x93NUMPY", 6) != 0)
        return err_set(err, ERR_DATA,
                       "%s: this is no .npy file: it does not begin with "
                       "\\x93NUMPY",
                       path);
    if (begin[6] < 1 || begin[6] > 3)
        return err_set(err, ERR_DATA,
                       "%s: expected version 1 to 3 of .npy, found %d", path,
                       begin[6]);
    rc = import_stream_exact(stream, count, begin[6] == 1 ? 2 : 4, "header",
                             err);
    if (rc != ERR_OK)
        return rc;
    *length = (size_t)count[0] | (size_t)count[1] << 8 |
              (size_t)count[2] << 16 | (size_t)count[3] << 24;
    if (*length > HEADER_MOST)
        return err_set(err, ERR_DATA,
                       "%s: its header has %zu bytes: expected at most %d",
                       path, *length, HEADER_MOST);
    return ERR_OK;
}

err_code_t import_npy_header(const import_config_t *config,
                             import_stream_t *stream, import_header_t *out,
                             err_t *err)
{
    size_t length = 0;
    reader_t reader = {.path = import_stream_path(stream)};
    char *text;
    err_code_t rc = magic_read(stream, &length, err);

    (void)config;
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(char, length + 1, "a header", &text, err);
    if (rc != ERR_OK)
        return rc;
    rc = import_stream_exact(stream, text, length, "header", err);
    reader.at = text;
    if (rc == ERR_OK)
        rc = dictionary_take(&reader, out, err);
    mem_free(text);
    return rc;
}
