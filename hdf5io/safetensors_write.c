/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "hdf5io/safetensors.h"

#define ALIGN 8 /* of the first tensor, in bytes */

/* Bytes of a tensor that is to be written. */
static uint64_t bytes_of(const hdf5io_safe_tensor_t *tensor)
{
    uint64_t bytes = (uint64_t)hdf5io_safe_type_bytes(tensor->type);

    for (int d = 0; d < tensor->ndim; d++)
        bytes *= (uint64_t)tensor->dims[d];
    return bytes;
}

/* Add a tensor, whose bytes begin at [at], to the map. */
static err_code_t member_add(json_t *map, const hdf5io_safe_tensor_t *tensor,
                             uint64_t at, err_t *err)
{
    json_t *shape = json_array();
    int failed = 0;

    if (json_object_get(map, tensor->name) != NULL) {
        json_decref(shape);
        return err_set(err, ERR_CONFIG, "two tensors have the name %s",
                       tensor->name);
    }
    for (int d = 0; d < tensor->ndim; d++)
        failed |= json_array_append_new(shape, json_integer(tensor->dims[d]));
    failed |= json_object_set_new(
        map, tensor->name,
        json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                  hdf5io_safe_type_name(tensor->type), "shape", shape,
                  "data_offsets", (json_int_t)at,
                  (json_int_t)(at + bytes_of(tensor))));
    return failed == 0 ? ERR_OK
                       : err_set(err, ERR_CONFIG,
                                 "the name of tensor %s is no UTF-8, or out of "
                                 "memory",
                                 tensor->name);
}

/* Make the file's begin: the map, padded with spaces, after its length. */
static err_code_t begin_make(const hdf5io_safe_plan_t *plan, str_buf_t *out,
                             err_t *err)
{
    json_t *map = json_object();
    char *text = NULL;
    uint64_t at = 0;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < plan->count && rc == ERR_OK; i++) {
        rc = member_add(map, &plan->tensors[i], at, err);
        at += bytes_of(&plan->tensors[i]);
    }
    if (rc == ERR_OK)
        text = json_dumps(map, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (rc == ERR_OK && text == NULL)
        rc = err_set(err, ERR_MEMORY, "out of memory for the map of a file");
    if (text != NULL)
        str_buf_add(out, "%s", text);
    while (out->length % ALIGN != 0)
        str_buf_add(out, " ");
    free(text);
    json_decref(map);
    return rc;
}

typedef struct filling {
    const char *path;
    const hdf5io_safe_plan_t *plan;
    const str_buf_t *map;
} filling_t;

static err_code_t fill(void *context, int fd, err_t *err)
{
    const filling_t *filling = context;
    const hdf5io_safe_plan_t *plan = filling->plan;
    const uint64_t length = filling->map->length;
    bool good = file_write_all(fd, &length, sizeof length) &&
                file_write_all(fd, filling->map->text, length);
    err_code_t rc = ERR_OK;

    for (int i = 0; good && i < plan->count; i++) {
        const void *data;

        rc = plan->fetch(plan->context, i, &data, err);
        if (rc != ERR_OK)
            return rc;
        good = file_write_all(fd, data, bytes_of(&plan->tensors[i]));
    }
    return good ? ERR_OK
                : err_set(err, ERR_IO, "cannot write %s: %s", filling->path,
                          strerror(errno));
}

err_code_t hdf5io_safe_write(const char *path, file_replace_t replace,
                             const hdf5io_safe_plan_t *plan, err_t *err)
{
    str_buf_t map = {0};
    filling_t filling = {path, plan, &map};
    err_code_t rc = begin_make(plan, &map, err);

    if (rc == ERR_OK)
        rc = file_publish_fill(path, replace, fill, &filling, err);
    str_buf_free(&map);
    return rc;
}
