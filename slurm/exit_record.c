/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Writes RUNDIR/exit.json. srun returns the highest status of its tasks, so the
 * 137 of a killed rank hides the 76 of the other ranks. The record tells which
 * rank failed, where and when. A shell script reads the record line by line, so
 * keep one key per line. Reads it back, too.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "slurm/job.h"

/* [text] as a JSON string; null if it is NULL, empty or not UTF-8. */
static json_t *text_or_null(const char *text)
{
    json_t *value = NULL;

    if (text != NULL && text[0] != '\0')
        value = json_string(text);
    return value != NULL ? value : json_null();
}

static json_t *record_json(const slurm_exit_t *record)
{
    const slurm_job_t *job = record->job;
    char time[32];

    clock_format(clock_wall(), time, sizeof time);
    return json_pack(
        "{s:o, s:o, s:i, s:i, s:i, s:s, s:b, s:i, s:o, s:i, s:o, s:o, s:I, "
        "s:o, s:o, "
        "s:s}",
        "job", text_or_null(job->id), "step_id", text_or_null(job->step_id),
        "restarts", job->restarts, "attempt", job->attempt, "status",
        (int)record->status, "name", err_code_name(record->status), "requeue",
        (int)err_code_requeue(record->status), "rank", record->rank, "host",
        text_or_null(job->host), "culprit", record->culprit, "culprit_host",
        text_or_null(record->culprit_host), "phase",
        text_or_null(record->phase), "step", (json_int_t)record->step, "text",
        text_or_null(record->text), "cause", text_or_null(record->cause),
        "time", time);
}

/* Write [json]; NULL (memory ran out) gives ERR_MEMORY. */
static err_code_t json_publish(const char *run_dir, const json_t *json,
                               err_t *err)
{
    char *text = NULL, *path = NULL, *whole = NULL;
    err_code_t rc;

    if (json != NULL)
        text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text == NULL) {
        rc =
            err_set(err, ERR_MEMORY, "out of memory for %s/exit.json", run_dir);
        goto out;
    }
    path = str_printf("%s/exit.json", run_dir);
    whole = str_printf("%s\n", text);
    rc = file_publish(path, whole, strlen(whole), err);
out:
    free(whole);
    free(path);
    free(text);
    return rc;
}

err_code_t slurm_exit_write(const char *run_dir, const slurm_exit_t *record,
                            err_t *err)
{
    json_t *json = record_json(record);
    const err_code_t rc = json_publish(run_dir, json, err);

    json_decref(json);
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

static void text_get(const json_t *json, const char *key, char *out,
                     size_t room)
{
    const char *text = json_string_value(json_object_get(json, key));

    snprintf(out, room, "%s", text == NULL ? "" : text);
}

static bool int_get(const json_t *json, const char *key, int *out)
{
    const json_t *value = json_object_get(json, key);

    *out = (int)json_integer_value(value);
    return json_is_integer(value);
}

/* Return whether [json] has the numbers that every record has. Records of
 * earlier versions have no attempt. */
static bool record_get(const json_t *json, slurm_exit_found_t *out)
{
    text_get(json, "job", out->job, sizeof out->job);
    text_get(json, "step_id", out->step_id, sizeof out->step_id);
    text_get(json, "culprit_host", out->culprit_host, sizeof out->culprit_host);
    text_get(json, "text", out->text, sizeof out->text);
    text_get(json, "cause", out->cause, sizeof out->cause);
    text_get(json, "time", out->time, sizeof out->time);
    out->step = json_integer_value(json_object_get(json, "step"));
    if (!int_get(json, "attempt", &out->attempt))
        out->attempt = 1;
    if (!int_get(json, "culprit", &out->culprit))
        out->culprit = -1;
    return int_get(json, "restarts", &out->restarts) &&
           int_get(json, "status", &out->status);
}

/* Read the record as JSON; json_decref frees it. */
static err_code_t json_read(const char *run_dir, json_t **out, err_t *err)
{
    char *path = str_printf("%s/exit.json", run_dir), *text = NULL;
    slurm_exit_found_t found;
    json_t *json = NULL;
    err_code_t rc = file_read_own(path, &text, NULL, err);

    if (rc == ERR_OK) {
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (!record_get(json, &found))
            rc =
                err_set(err, ERR_DATA, "%s is no record of a step's end", path);
    }
    if (rc == ERR_OK)
        *out = json;
    else
        json_decref(json);
    free(text);
    free(path);
    return rc;
}

err_code_t slurm_exit_read(const char *run_dir, slurm_exit_found_t *out,
                           err_t *err)
{
    json_t *json = NULL;
    err_code_t rc = json_read(run_dir, &json, err);

    if (rc == ERR_OK)
        (void)record_get(json, out);
    json_decref(json);
    return rc;
}

err_code_t slurm_exit_cause(const char *run_dir, const char *cause, err_t *err)
{
    json_t *json = NULL;
    err_code_t rc = json_read(run_dir, &json, err);

    if (rc == ERR_OK && !json_is_string(json_object_get(json, "cause"))) {
        if (json_object_set_new(json, "cause", text_or_null(cause)) == 0)
            rc = json_publish(run_dir, json, err);
        else
            rc = err_set(err, ERR_MEMORY, "out of memory for %s/exit.json",
                         run_dir);
    }
    json_decref(json);
    return rc;
}
