/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "conf/conf.h"
#include "report/history.h"
#include "report/rows.h"

/* The newest version of a manifest. All members that are read here are in
 * version 1, too. */
#define MANIFEST_VERSION 2

static bool has(const char *dir, const char *name)
{
    char *path = str_printf("%s/%s", dir, name);
    const bool here = access(path, F_OK) == 0;

    free(path);
    return here;
}

bool report_run_is(const char *dir)
{
    return has(dir, "metrics.jsonl") || has(dir, "lives.jsonl") ||
           has(dir, "config.yaml");
}

err_code_t report_run_refuse(const char *dir, err_t *err)
{
    struct stat there;

    if (stat(dir, &there) != 0)
        return err_set(err, errno == ENOENT ? ERR_DATA : ERR_IO, "%s: %s", dir,
                       strerror(errno));
    return err_set(err, ERR_DATA,
                   "%s is no run directory: it has neither metrics.jsonl nor "
                   "lives.jsonl nor config.yaml",
                   dir);
}

/* ---- the parts of about -------------------------------------------------- */

/* Out of memory is found at the end: a value that could not be set leaves its
 * mark in [bad]. */
typedef struct about {
    const char *dir;
    json_t *object, *notes;
    int bad;
} about_t;

static void set(about_t *about, const char *key, json_t *value)
{
    about->bad |= json_object_set_new(about->object, key, value);
}

__attribute__((format(printf, 2, 3))) static void note(about_t *about,
                                                       const char *format, ...)
{
    str_buf_t text = {0};
    va_list args;

    va_start(args, format);
    str_buf_vadd(&text, format, args);
    va_end(args);
    about->bad |=
        json_array_append_new(about->notes, report_json_text(text.text));
    str_buf_free(&text);
}

json_t *report_json_read(const char *dir, const char *name, char **note_out)
{
    char *path = str_printf("%s/%s", dir, name), *text = NULL;
    json_t *object = NULL;
    err_t fault = ERR_INIT;

    *note_out = NULL;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        free(path);
        return NULL;
    }
    if (file_read_own(path, &text, NULL, &fault) != ERR_OK) {
        *note_out = str_dup(fault.text);
    } else {
        object = json_loads(text, 0, NULL);
        if (!json_is_object(object)) {
            json_decref(object);
            object = NULL;
            *note_out = str_printf("%s is no JSON object: left out", path);
        }
    }
    free(text);
    free(path);
    return object;
}

static void summary_take(about_t *about)
{
    char *why = NULL;
    json_t *summary = report_json_read(about->dir, "summary.json", &why);

    if (why != NULL)
        note(about, "%s", why);
    if (summary != NULL)
        set(about, "summary", summary);
    free(why);
}

/* Add all scalars of [tree] to the map [out], under their dotted paths. */
static int settings_add(const tree_t *tree, const char *path, json_t *out)
{
    const size_t count = tree_count(tree);
    int bad = 0;

    if (count == 0) {
        const char *text = tree_text(tree);

        return path[0] == '\0'
                   ? 0
                   : json_object_set_new(
                         out, path, report_json_text(text == NULL ? "" : text));
    }
    for (size_t i = 0; i < count; i++) {
        const char *key = tree_key(tree, i);
        char *raw = key != NULL ? str_printf("%s%s%s", path,
                                             path[0] != '\0' ? "." : "", key)
                                : str_printf("%s.%zu", path, i);
        char *below = str_visible_dup(raw);

        bad |= settings_add(tree_at(tree, i), below, out);
        free(below);
        free(raw);
    }
    return bad;
}

static void config_take(about_t *about)
{
    char *path = str_printf("%s/config.yaml", about->dir), *text = NULL;
    json_t *settings = json_object();
    tree_t *tree = NULL;
    err_t fault = ERR_INIT;

    if (!has(about->dir, "config.yaml")) {
        note(about, "there is no config.yaml");
    } else if (file_read_own(path, &text, NULL, &fault) != ERR_OK) {
        note(about, "%s", fault.text);
    } else {
        set(about, "config", report_json_text(text));
        if (conf_parse("config.yaml", text, &tree, &fault) == ERR_OK)
            about->bad |= settings_add(tree, "", settings);
        else
            note(about, "%s", fault.text);
    }
    set(about, "settings", settings);
    tree_free(tree);
    free(text);
    free(path);
}

/* The name of the newest checkpoint of the run; "": there is none. */
static void newest_find(const char *dir, char *out, size_t room)
{
    char *path = str_printf("%s/checkpoints", dir);
    DIR *list = opendir(path);
    const struct dirent *entry;
    int64_t step, newest = -1;

    out[0] = '\0';
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, "step-", 5) != 0 ||
            !str_to_int(entry->d_name + 5, &step) || step <= newest)
            continue;
        newest = step;
        snprintf(out, room, "checkpoints/%.64s/MANIFEST.json", entry->d_name);
    }
    if (list != NULL)
        closedir(list);
    free(path);
}

/* The versions of program and libraries, which the newest checkpoint has. */
static void versions_take(about_t *about)
{
    char name[128], *why = NULL;
    json_t *manifest = NULL, *value;
    json_int_t version = 0;

    newest_find(about->dir, name, sizeof name);
    if (name[0] != '\0')
        manifest = report_json_read(about->dir, name, &why);
    if (why != NULL)
        note(about, "%s", why);
    version = json_integer_value(json_object_get(manifest, "version"));
    if (manifest != NULL && (version < 1 || version > MANIFEST_VERSION))
        note(about,
             "the checkpoint of %s is of another version of cddp: only what is "
             "known is shown",
             name);
    value = json_object_get(manifest, "versions");
    if (json_is_string(value))
        set(about, "versions", report_json_text(json_string_value(value)));
    value = json_object_get(manifest, "world_size");
    if (json_is_integer(value))
        set(about, "world_size", json_incref(value));
    json_decref(manifest);
    free(why);
}

static err_code_t history_take(about_t *about, err_t *err)
{
    report_history_t history;
    report_state_t state;
    char text[128];
    err_code_t rc = report_history_read(about->dir, &history, err);

    if (rc == ERR_OK) {
        state = report_state(about->dir, &history);
        set(about, "state",
            json_string(
                report_state_text(state, history.status, text, sizeof text)));
        if (history.status > 0)
            set(about, "why",
                json_string(err_code_text((err_code_t)history.status)));
        set(about, "lives", json_incref(history.events));
        set(about, "saves", json_incref(history.saves));
        if (history.spent != NULL)
            set(about, "spent", json_incref(history.spent));
        if (history.skipped > 0)
            note(about, "lines of lives.jsonl that cannot be read: %d",
                 history.skipped);
        if (!history.begun)
            note(about, "lives.jsonl has no start of the run");
    }
    report_history_free(&history);
    return rc;
}

/* ---- metrics ------------------------------------------------------------- */

static err_code_t rows_take(report_rows_t *rows, report_curves_t *curves,
                            err_t *err)
{
    report_row_t row;
    bool got = true;
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && got) {
        rc = report_rows_next(rows, &row, &got, err);
        if (rc == ERR_OK && got)
            rc = report_curves_add(curves, &row, err);
    }
    return rc;
}

static void loads_note(about_t *about, const report_loads_t *loads)
{
    if (report_loads_bad(loads) > 0)
        note(about, "rows about ranks that cannot be read: %" PRId64,
             report_loads_bad(loads));
    if (report_loads_left_out(loads) > 0)
        note(about, "ranks beyond the first %d are left out of their table",
             REPORT_LOADS_MAX);
}

static err_code_t metrics_take(about_t *about, report_curves_t *curves,
                               err_t *err)
{
    report_rows_t *rows = NULL;
    bool missing = false;
    err_code_t rc = report_rows_open(about->dir, &rows, &missing, err);

    if (missing) {
        note(about, "there is no metrics.jsonl: no step is done yet");
        return ERR_OK;
    }
    if (rc == ERR_OK)
        rc = rows_take(rows, curves, err);
    if (rc == ERR_OK && report_rows_bad(rows) > 0)
        note(about, "lines of metrics.jsonl that cannot be read: %" PRId64,
             report_rows_bad(rows));
    if (rc == ERR_OK && report_rows_torn(rows))
        note(about, "the last line of metrics.jsonl is not complete: it is "
                    "being written, or its write was cut off");
    if (rc == ERR_OK && curves->left_out > 0)
        note(about,
             "numbers and events beyond %d curves and %d events: %" PRId64,
             REPORT_CURVES_MAX, REPORT_EVENTS_MAX, curves->left_out);
    if (rc == ERR_OK)
        loads_note(about, curves->loads);
    report_rows_close(rows);
    return rc;
}

static void curves_describe(about_t *about, const report_curves_t *curves)
{
    set(about, "rows", json_integer(curves->rows));
    set(about, "step", json_integer(curves->step));
    set(about, "begun", report_json_text(curves->begun));
    set(about, "time", report_json_text(curves->time));
    set(about, "events", json_incref(curves->events));
    set(about, "loads", report_loads_json(curves->loads));
    if (isfinite(curves->best))
        set(about, "best",
            json_pack("{s:s, s:f, s:I}", "name",
                      curves->best_is_accuracy ? "accuracy" : "loss", "value",
                      curves->best, "step", (json_int_t)curves->best_step));
}

err_code_t report_run_read(const char *dir, report_run_t *out, err_t *err)
{
    about_t about = {.dir = dir};
    err_code_t rc = ERR_OK;

    *out = (report_run_t){0};
    if (!report_run_is(dir))
        return report_run_refuse(dir, err);
    about.object = out->about = json_object();
    about.notes = json_array();
    set(&about, "notes", about.notes);
    set(&about, "dir", report_json_text(dir));
    rc = report_curves_open(&out->curves, err);
    if (rc == ERR_OK)
        rc = metrics_take(&about, out->curves, err);
    if (rc == ERR_OK)
        rc = history_take(&about, err);
    if (rc != ERR_OK)
        return rc;
    curves_describe(&about, out->curves);
    summary_take(&about);
    config_take(&about);
    versions_take(&about);
    if (about.bad)
        rc =
            err_set(err, ERR_MEMORY, "out of memory for the report on %s", dir);
    return rc;
}

void report_run_free(report_run_t *run)
{
    report_curves_close(run->curves);
    json_decref(run->about);
    *run = (report_run_t){0};
}
