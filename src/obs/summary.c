/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Writes summary.json: one JSON object, written to a temporary file that is
 * then renamed. */
#include "obs/summary.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

static json_t *summary_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Make the JSON object "metrics"; NULL: out of memory. */
static json_t *summary_values(const obs_summary_t *summary)
{
    json_t *object = json_object();

    for (int i = 0; i < summary->value_count; i++)
        if (json_object_set_new(object, summary->values[i].name,
                                summary_real(summary->values[i].value)) != 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

/* Make the JSON object "spent"; NULL: out of memory. */
static json_t *summary_spent(const obs_spent_t *spent)
{
    json_t *object = json_object();
    int bad = json_object_set_new(object, "wall",
                                  summary_real(obs_spent_total(spent)));

    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++)
        bad |=
            json_object_set_new(object, obs_spent_key((obs_spent_kind_t)kind),
                                summary_real(spent->seconds[kind]));
    if (bad == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* Make a JSON object of all fields of [summary]; NULL: out of memory. */
static json_t *summary_build(const obs_summary_t *summary)
{
    json_t *object = json_object();
    int bad = 0;

    /* json_object_set_new fails on a NULL object or value. */
#define SUMMARY_SET(key, value) bad |= json_object_set_new(object, key, value)
    SUMMARY_SET("status", json_integer(summary->status));
    SUMMARY_SET("status_text", json_string(err_code_text(summary->status)));
    SUMMARY_SET("step", json_integer(summary->step));
    SUMMARY_SET("epoch", json_integer(summary->epoch));
    SUMMARY_SET("loss", summary_real(summary->loss));
    SUMMARY_SET("accuracy", summary_real(summary->accuracy));
    SUMMARY_SET("metrics", summary_values(summary));
    SUMMARY_SET("bound", summary_real(summary->bound));
    SUMMARY_SET("seconds", summary_real(summary->seconds));
    SUMMARY_SET("first_step_s", summary_real(summary->first_step_s));
    SUMMARY_SET("main_to_step_s", summary_real(summary->main_to_step_s));
    SUMMARY_SET("first_step_at", summary_real(summary->first_step_at));
    SUMMARY_SET("data_share", summary_real(summary->data_share));
    SUMMARY_SET("peak_rss_mb", summary_real(summary->peak_rss_mb));
    SUMMARY_SET("world_size", json_integer(summary->world_size));
    SUMMARY_SET("spent", summary_spent(summary->spent));
    SUMMARY_SET("cpu_efficiency", summary_real(summary->cpu_efficiency));
    SUMMARY_SET("memory_limit_mb", summary_real(summary->memory_limit_mb));
#undef SUMMARY_SET
    if (bad == 0)
        return object;
    json_decref(object);
    return NULL;
}

err_code_t obs_summary_write(const char *directory,
                             const obs_summary_t *summary, err_t *err)
{
    char *path = str_printf("%s/summary.json", directory);
    json_t *object = summary_build(summary);
    err_code_t rc;
    char *body = NULL, *text;

    if (object != NULL)
        body = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER |
                                      JSON_REAL_PRECISION(17));
    if (body == NULL) {
        rc = err_set(err, ERR_IO, "cannot write %s: no memory left", path);
    } else {
        text = str_printf("%s\n", body);
        rc = file_publish(path, text, strlen(text), err);
        free(text);
    }
    free(body);
    json_decref(object);
    free(path);
    return rc;
}
