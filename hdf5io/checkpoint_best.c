/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_best.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

static char *path_of(const char *directory)
{
    return str_printf("%s/best.json", directory);
}

static bool best_parse(const char *text, hdf5io_best_t *out)
{
    json_t *root = json_loads(text, 0, NULL);
    const char *metric = json_string_value(json_object_get(root, "metric"));
    const json_t *value = json_object_get(root, "value");
    const json_t *step = json_object_get(root, "step");
    const bool whole = metric != NULL && strlen(metric) < sizeof out->metric &&
                       json_is_number(value) && json_is_integer(step);

    if (whole) {
        snprintf(out->metric, sizeof out->metric, "%s", metric);
        out->value = json_number_value(value);
        out->step = json_integer_value(step);
    }
    json_decref(root);
    return whole;
}

bool hdf5io_best_read(const char *directory, hdf5io_best_t *out)
{
    char *path = path_of(directory), *text = NULL;
    const bool whole = file_read_own(path, &text, NULL, NULL) == ERR_OK &&
                       best_parse(text, out);

    free(text);
    free(path);
    return whole;
}

err_code_t hdf5io_best_write(const char *directory, const hdf5io_best_t *best,
                             err_t *err)
{
    char *path = path_of(directory), *text = NULL;
    json_t *root = json_pack("{s:s, s:f, s:I}", "metric", best->metric, "value",
                             best->value, "step", (json_int_t)best->step);
    err_code_t rc;

    if (root != NULL)
        text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    if (text == NULL)
        rc = err_set(err, ERR_MEMORY, "%s: no memory to write it", path);
    else
        rc = file_publish(path, text, strlen(text), err);
    json_decref(root);
    free(text);
    free(path);
    return rc;
}
