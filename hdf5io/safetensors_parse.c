/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The map of a safetensors file: checked against what the format allows. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/safetensors.h"

#define METADATA "__metadata__"

const char *hdf5io_safe_type_name(hdf5io_safe_type_t type)
{
#define NAME(type, name, bytes) name,
    static const char *const names[] = {HDF5IO_SAFE_MAP(NAME)};
#undef NAME

    return names[type];
}

int hdf5io_safe_type_bytes(hdf5io_safe_type_t type)
{
#define BYTES(type, name, bytes) bytes,
    static const int sizes[] = {HDF5IO_SAFE_MAP(BYTES)};
#undef BYTES

    return sizes[type];
}

void hdf5io_safe_close(hdf5io_safe_t *file)
{
    for (int i = 0; i < file->count; i++)
        free((void *)file->tensors[i].name);
    mem_free(file->tensors);
    if (file->path != NULL)
        close(file->fd);
    free(file->path);
    *file = (hdf5io_safe_t){0};
}

int hdf5io_safe_find(const hdf5io_safe_t *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return i;
    return -1;
}

err_code_t hdf5io_safe_length(const void *head, uint64_t bytes,
                              uint64_t *length, err_t *err)
{
    uint64_t found;

    if (bytes < sizeof found)
        return err_set(err, ERR_DATA,
                       "it has %" PRIu64 " bytes: expected at least 8", bytes);
    memcpy(&found, head, sizeof found);
    if (found > HDF5IO_SAFE_MAP_MAX)
        return err_set(err, ERR_DATA,
                       "its first 8 bytes say that %" PRIu64
                       " bytes of JSON follow: expected at most %d",
                       found, HDF5IO_SAFE_MAP_MAX);
    if (found > bytes - sizeof found)
        return err_set(err, ERR_DATA,
                       "its first 8 bytes say that %" PRIu64
                       " bytes of JSON follow, but it has only %" PRIu64
                       ": it is cut off",
                       found, bytes - sizeof found);
    *length = found;
    return ERR_OK;
}

/* Refuse the tensor [name]. */
#define REFUSE(name, format, ...) \
    err_set(err, ERR_DATA, "its tensor %s " format, (name), __VA_ARGS__)

static err_code_t type_parse(json_t *value, hdf5io_safe_tensor_t *tensor,
                             err_t *err)
{
    const char *name = json_string_value(value);

    for (int t = 0; name != NULL && t < HDF5IO_SAFE_TYPES; t++)
        if (strcmp(name, hdf5io_safe_type_name((hdf5io_safe_type_t)t)) == 0) {
            tensor->type = (hdf5io_safe_type_t)t;
            return ERR_OK;
        }
    return REFUSE(tensor->name, "has the type \"%s\", which cddp does not know",
                  name == NULL ? "" : name);
}

/* Read the shape, and compute elements and bytes. */
static err_code_t shape_parse(json_t *value, hdf5io_safe_tensor_t *tensor,
                              err_t *err)
{
    const size_t ndim = json_array_size(value);
    int64_t elems = 1, bytes;

    if (!json_is_array(value) || ndim > HDF5IO_SAFE_DIMS_MAX)
        return REFUSE(tensor->name,
                      "has %zu dimensions, or no shape: expected at most %d",
                      ndim, HDF5IO_SAFE_DIMS_MAX);
    tensor->ndim = (int)ndim;
    for (size_t d = 0; d < ndim; d++) {
        json_t *dim = json_array_get(value, d);

        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return REFUSE(tensor->name,
                          "has no count in dimension %zu of its shape", d);
        tensor->dims[d] = json_integer_value(dim);
        if (__builtin_mul_overflow(elems, tensor->dims[d], &elems))
            return REFUSE(tensor->name, "has more than %" PRId64 " elements",
                          INT64_MAX);
    }
    if (__builtin_mul_overflow(elems, hdf5io_safe_type_bytes(tensor->type),
                               &bytes))
        return REFUSE(tensor->name, "has more than %" PRId64 " bytes",
                      INT64_MAX);
    tensor->elems = elems;
    tensor->bytes = (uint64_t)bytes;
    return ERR_OK;
}

static err_code_t offsets_parse(json_t *value, hdf5io_safe_tensor_t *tensor,
                                err_t *err)
{
    json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    int64_t first, last;

    if (json_array_size(value) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end))
        return REFUSE(tensor->name, "has no %s", "two data_offsets");
    first = json_integer_value(begin);
    last = json_integer_value(end);
    if (first < 0 || last < first)
        return REFUSE(tensor->name,
                      "has data_offsets from %" PRId64 " to %" PRId64, first,
                      last);
    if ((uint64_t)(last - first) != tensor->bytes)
        return REFUSE(tensor->name,
                      "has data_offsets for %" PRId64
                      " bytes: expected %" PRIu64 " by its type and shape",
                      last - first, tensor->bytes);
    tensor->offset = (uint64_t)first;
    return ERR_OK;
}

static err_code_t tensor_parse(json_t *value, hdf5io_safe_tensor_t *tensor,
                               err_t *err)
{
    err_code_t rc;

    if (json_object_size(value) != 3)
        return REFUSE(tensor->name, "has %zu members: expected %s",
                      json_object_size(value), "dtype, shape and data_offsets");
    rc = type_parse(json_object_get(value, "dtype"), tensor, err);
    if (rc == ERR_OK)
        rc = shape_parse(json_object_get(value, "shape"), tensor, err);
    if (rc == ERR_OK)
        rc = offsets_parse(json_object_get(value, "data_offsets"), tensor, err);
    return rc;
}

/* The map's metadata must be texts; nothing else is done with them. */
static err_code_t metadata_check(json_t *value, err_t *err)
{
    const char *key;
    json_t *text;

    if (!json_is_object(value))
        return err_set(err, ERR_DATA, "its " METADATA " is no object");
    json_object_foreach(
        value, key,
        text) if (!json_is_string(text)) return err_set(err, ERR_DATA,
                                                        "its " METADATA
                                                        " has no text for %s",
                                                        key);
    return ERR_OK;
}

static int before(const void *a, const void *b)
{
    const hdf5io_safe_tensor_t *x = a, *y = b;
    const uint64_t x_end = x->offset + x->bytes, y_end = y->offset + y->bytes;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x_end != y_end)
        return x_end < y_end ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sort the tensors by their bytes, which must be those of the file, each of
 * them once. */
static err_code_t cover_check(hdf5io_safe_t *file, uint64_t bytes, err_t *err)
{
    uint64_t at = 0;

    if (file->count > 0)
        qsort(file->tensors, (size_t)file->count, sizeof *file->tensors,
              before);
    for (int i = 0; i < file->count; i++) {
        const hdf5io_safe_tensor_t *tensor = &file->tensors[i];

        if (tensor->offset != at)
            return REFUSE(tensor->name,
                          "begins at byte %" PRIu64
                          " of the tensors: expected %" PRIu64
                          ", where the one before it ends",
                          tensor->offset, at);
        at += tensor->bytes;
    }
    if (at != bytes)
        return err_set(err, ERR_DATA,
                       "its tensors have %" PRIu64 " bytes, but %" PRIu64
                       " bytes follow its map",
                       at, bytes);
    return ERR_OK;
}

static err_code_t members_parse(json_t *map, hdf5io_safe_t *file, err_t *err)
{
    err_code_t rc = ERR_OK;
    const char *name;
    json_t *value;

    json_object_foreach(map, name, value)
    {
        if (strcmp(name, METADATA) == 0) {
            rc = metadata_check(value, err);
        } else {
            hdf5io_safe_tensor_t *tensor = &file->tensors[file->count++];

            tensor->name = str_dup(name);
            rc = tensor_parse(value, tensor, err);
        }
        if (rc != ERR_OK)
            break;
    }
    return rc;
}

err_code_t hdf5io_safe_parse(const char *text, size_t length, uint64_t bytes,
                             hdf5io_safe_t *out, err_t *err)
{
    hdf5io_safe_t file = {.fd = -1};
    json_error_t trouble;
    json_t *map = NULL;
    err_code_t rc = ERR_OK;

    if (length == 0 || text[0] != '{')
        return err_set(err, ERR_DATA, "its map does not begin with {");
    map = json_loadb(text, length, JSON_REJECT_DUPLICATES, &trouble);
    if (!json_is_object(map))
        rc = err_set(err, ERR_DATA, "its map is no JSON object: %s",
                     trouble.text);
    if (rc == ERR_OK && json_object_size(map) > INT_MAX)
        rc = err_set(err, ERR_DATA, "it has more than %d tensors", INT_MAX);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_safe_tensor_t, json_object_size(map),
                     "the tensors of a file", &file.tensors, err);
    if (rc == ERR_OK)
        rc = members_parse(map, &file, err);
    if (rc == ERR_OK)
        rc = cover_check(&file, bytes, err);
    json_decref(map);
    if (rc != ERR_OK) {
        hdf5io_safe_close(&file);
        return rc;
    }
    out->tensors = file.tensors;
    out->count = file.count;
    return ERR_OK;
}
