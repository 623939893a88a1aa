/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_rollback.h"

#include <inttypes.h>
#include <math.h>

#include "base/numeric.h"

void hdf5io_rollback_print(const hdf5io_progress_t *progress, str_buf_t *out)
{
    if (progress->skip_count > 0)
        str_buf_add(out, " \"skipped\": [");
    for (int64_t i = 0; i < progress->skip_count; i++)
        str_buf_add(out, "%s[%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                    i == 0 ? "" : ", ", progress->skips[i].epoch,
                    progress->skips[i].first, progress->skips[i].count);
    if (progress->skip_count > 0)
        str_buf_add(out, "],\n");
    if (progress->loss_recent > 0)
        str_buf_add(out, " \"losses\": [");
    for (int64_t i = 0; i < progress->loss_recent; i++)
        str_buf_add(out, "%s\"%.17g\"", i == 0 ? "" : ", ",
                    progress->losses[i]);
    if (progress->loss_recent > 0)
        str_buf_add(out, "],\n");
}

/* Check that the member [key] is absent, or a list of at most [most] items. */
static err_code_t list_check(const json_t *list, const char *key, size_t most,
                             err_t *err)
{
    if (list == NULL || (json_is_array(list) && json_array_size(list) <= most))
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "its member \"%s\" is no list of at most %zu items", key,
                   most);
}

static bool skip_parse(json_t *item, hdf5io_skip_t *out)
{
    json_int_t epoch, first, count;

    if (json_unpack(item, "[I, I, I!]", &epoch, &first, &count) != 0 ||
        epoch < 0 || first < 0 || count < 1 || first > INT64_MAX - count)
        return false;
    *out = (hdf5io_skip_t){.epoch = epoch, .first = first, .count = count};
    return true;
}

static bool loss_parse(const json_t *item, double *out)
{
    const char *text = json_string_value(item);
    char *end;

    if (text == NULL)
        return false;
    *out = numeric_parse(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}

err_code_t hdf5io_rollback_parse(json_t *root, hdf5io_progress_t *progress,
                                 err_t *err)
{
    json_t *skips = json_object_get(root, "skipped");
    json_t *losses = json_object_get(root, "losses");
    err_code_t rc = list_check(skips, "skipped", HDF5IO_SKIPS_MAX, err);

    if (rc == ERR_OK)
        rc = list_check(losses, "losses", HDF5IO_LOSSES_MAX, err);
    if (rc != ERR_OK)
        return rc;
    progress->skip_count = (int64_t)json_array_size(skips);
    for (int64_t i = 0; i < progress->skip_count; i++)
        if (!skip_parse(json_array_get(skips, (size_t)i), &progress->skips[i]))
            return err_set(err, ERR_DATA,
                           "item %" PRId64 " of its member \"skipped\" is no "
                           "epoch, first sample and number of samples",
                           i);
    progress->loss_recent = (int64_t)json_array_size(losses);
    for (int64_t i = 0; i < progress->loss_recent; i++)
        if (!loss_parse(json_array_get(losses, (size_t)i),
                        &progress->losses[i]))
            return err_set(err, ERR_DATA,
                           "item %" PRId64 " of its member \"losses\" is no "
                           "finite number",
                           i);
    return ERR_OK;
}
