/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/type.h"

#include <ctype.h>
#include <string.h>

#define SAMPLE_BYTES_MAX (INT64_C(1) << 40)

static const struct {
    const char *name;
    size_t bytes;
} types[IMPORT_TYPES] = {
    [IMPORT_INT8] = {"int8", 1},       [IMPORT_UINT8] = {"uint8", 1},
    [IMPORT_INT16] = {"int16", 2},     [IMPORT_UINT16] = {"uint16", 2},
    [IMPORT_INT32] = {"int32", 4},     [IMPORT_UINT32] = {"uint32", 4},
    [IMPORT_INT64] = {"int64", 8},     [IMPORT_UINT64] = {"uint64", 8},
    [IMPORT_FLOAT16] = {"float16", 2}, [IMPORT_FLOAT32] = {"float32", 4},
    [IMPORT_FLOAT64] = {"float64", 8},
};

const char *import_type_name(import_type_t type)
{
    return types[type].name;
}

bool import_type_parse(const char *name, import_type_t *out)
{
    for (int i = 0; i < IMPORT_TYPES; i++)
        if (strcmp(name, types[i].name) == 0) {
            *out = (import_type_t)i;
            return true;
        }
    return false;
}

size_t import_type_size(import_type_t type)
{
    return types[type].bytes;
}

size_t import_field_item(const import_field_t *field)
{
    return field->type == IMPORT_STORED ? field->item
                                        : import_type_size(field->type);
}

size_t import_field_bytes(const import_field_t *field)
{
    size_t bytes = import_field_item(field);

    for (int i = 0; i < field->ndim; i++)
        bytes *= (size_t)field->dims[i];
    return bytes;
}

err_code_t import_field_check(const import_field_t *field, err_t *err)
{
    int64_t most = SAMPLE_BYTES_MAX / (int64_t)import_field_item(field);

    for (int i = 0; i < field->ndim; i++) {
        if (field->dims[i] <= 0)
            return err_set(err, ERR_DATA,
                           "a sample has a dimension of size %lld",
                           (long long)field->dims[i]);
        if (field->dims[i] > most)
            return err_set(err, ERR_DATA, "a sample has more than 2^40 bytes");
        most /= field->dims[i];
    }
    return ERR_OK;
}

err_code_t import_field_call(import_field_t *field, const char *name,
                             err_t *err)
{
    const size_t length = strlen(name);
    size_t good = 0;

    while (good < length && (isalnum((unsigned char)name[good]) != 0 ||
                             strchr("_-.", name[good]) != NULL))
        good++;
    if (length == 0 || length >= sizeof field->name || good < length ||
        name[0] == '.')
        return err_set(err, ERR_USAGE,
                       "\"%s\" is no name of a dataset: expected 1 to %d "
                       "letters, digits, '_', '-' or '.'",
                       name, IMPORT_NAME_MAX - 1);
    memcpy(field->name, name, length + 1);
    return ERR_OK;
}

bool import_field_equal(const import_field_t *a, const import_field_t *b)
{
    return a->type == b->type && a->ndim == b->ndim &&
           memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}
