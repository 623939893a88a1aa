/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_best.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_io.h"

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
                       json_is_number(value) && json_is_integer(step) &&
                       json_integer_value(step) >= 0;

    if (whole) {
        snprintf(out->metric, sizeof out->metric, "%s", metric);
        out->value = json_number_value(value);
        out->step = json_integer_value(step);
    }
    json_decref(root);
    return whole;
}

err_code_t hdf5io_best_named(const hdf5io_io_t *io, const char *directory,
                             hdf5io_best_t *out, err_t *err)
{
    char *path = path_of(directory), *text = NULL;
    retry_cause_t cause = RETRY_ABSENT;
    err_t why = ERR_INIT;
    size_t bytes;
    err_code_t rc = hdf5io_io_load(io, path, &text, &bytes, &cause, &why);

    if (rc != ERR_OK || !best_parse(text, out))
        *out = (hdf5io_best_t){.step = -1};
    free(text);
    free(path);
    if (rc == ERR_OK || (rc == ERR_DATA && cause == RETRY_ABSENT))
        return ERR_OK;
    return err_copy(err, &why);
}

/* Is the checkpoint of [step] gone? */
static bool is_gone(const char *directory, int64_t step)
{
    char *path = hdf5io_dir_path(directory, "", step, 0);
    const bool gone = access(path, F_OK) != 0 && errno == ENOENT;

    free(path);
    return gone;
}

err_code_t hdf5io_best_read(const hdf5io_io_t *io, const char *directory,
                            hdf5io_best_t *out, err_t *err)
{
    const err_code_t rc = hdf5io_best_named(io, directory, out, err);

    if (out->step >= 0 && is_gone(directory, out->step))
        *out = (hdf5io_best_t){.step = -1};
    return rc;
}

void hdf5io_best_tidy(const hdf5io_io_t *io, const char *directory,
                      int64_t step)
{
    hdf5io_best_t best;
    err_t err = ERR_INIT;
    bool dropped;

    if (hdf5io_best_named(io, directory, &best, NULL) != ERR_OK ||
        best.step < 0 || (best.step <= step && !is_gone(directory, best.step)))
        return;
    if (hdf5io_best_drop(directory, &dropped, &err) != ERR_OK)
        log_warn("hdf5io", "%s", err.text);
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

err_code_t hdf5io_best_drop(const char *directory, bool *dropped, err_t *err)
{
    char *path = path_of(directory);
    err_code_t rc = ERR_OK;

    *dropped = unlink(path) == 0;
    if (!*dropped && errno != ENOENT)
        rc =
            err_set(err, ERR_IO, "cannot remove %s: %s", path, strerror(errno));
    free(path);
    return rc;
}
