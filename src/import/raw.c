/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Raw numbers, whose type and shape only the user knows. */
#include "import/columns.h"

#include <stdlib.h>
#include <string.h>

/* Parse "3,32,32", or "" for one number a sample. */
static err_code_t shape_parse(const char *text, import_field_t *field,
                              err_t *err)
{
    const char *at = text;
    char *end;

    field->ndim = 0;
    while (*at != '\0') {
        const long long size = strtoll(at, &end, 10);

        if (end == at || size < 1 || size > INT32_MAX ||
            field->ndim == IMPORT_DIMS_MAX ||
            (*end != '\0' && (*end != ',' || end[1] == '\0')))
            return err_set(err, ERR_USAGE,
                           "--shape: expected at most %d sizes of a sample, "
                           "such as 3,32,32, found \"%s\"",
                           IMPORT_DIMS_MAX, text);
        field->dims[field->ndim++] = size;
        at = *end == ',' ? end + 1 : end;
    }
    return ERR_OK;
}

/* Parse "float32" or "big:float32". */
static err_code_t type_parse(const char *text, import_header_t *out, err_t *err)
{
    const bool big = strncmp(text, "big:", 4) == 0;

    if (!import_type_parse(big ? text + 4 : text, &out->field.type))
        return err_set(err, ERR_USAGE,
                       "--type: expected int8, uint8, int16, ... uint64, "
                       "float16, float32 or float64, with big: before it if it "
                       "is big-endian, found \"%s\"",
                       text);
    out->swapped = big == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return ERR_OK;
}

err_code_t import_raw_header(const import_config_t *config,
                             import_stream_t *stream, import_header_t *out,
                             err_t *err)
{
    const int64_t size = import_stream_size(stream);
    const char *path = import_stream_path(stream);
    int64_t bytes;
    err_code_t rc;

    if (config->type == NULL || config->shape == NULL)
        return err_set(err, ERR_USAGE,
                       "raw: --type and --shape are needed, such as --type "
                       "float32 --shape 3,32,32");
    rc = type_parse(config->type, out, err);
    if (rc == ERR_OK)
        rc = shape_parse(config->shape, &out->field, err);
    if (rc == ERR_OK)
        rc = import_field_check(&out->field, err);
    if (rc != ERR_OK)
        return rc;
    bytes = (int64_t)import_field_bytes(&out->field);
    if (size < config->skip || (size - config->skip) % bytes != 0)
        return err_set(err, ERR_DATA,
                       "%s: its %lld bytes are not %lld bytes and a whole "
                       "number of samples of %lld bytes",
                       path, (long long)size, (long long)config->skip,
                       (long long)bytes);
    out->rows = (size - config->skip) / bytes;
    return import_stream_skip(stream, config->skip, err);
}
