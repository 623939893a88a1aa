/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

err_code_t report_curves_open(report_curves_t **out, err_t *err)
{
    report_curves_t *curves;
    err_code_t rc;

    rc = mem_new(report_curves_t, 1, "the curves of a run", &curves, err);
    if (rc != ERR_OK)
        return rc;
    curves->step = -1;
    curves->loss = curves->speed = curves->best = NAN;
    curves->events = json_array();
    if (curves->events == NULL) {
        report_curves_close(curves);
        return err_set(err, ERR_MEMORY, "out of memory for the curves");
    }
    *out = curves;
    return ERR_OK;
}

void report_curves_close(report_curves_t *curves)
{
    if (curves == NULL)
        return;
    for (int i = 0; i < curves->count; i++) {
        free(curves->curves[i]->name);
        mem_free(curves->curves[i]);
    }
    report_loads_close(curves->loads);
    json_decref(curves->events);
    mem_free(curves);
}

json_t *report_json_text(const char *text)
{
    char *visible = str_visible_dup(text);
    json_t *out = json_string(visible);

    free(visible);
    return out;
}

/* ---- curves -------------------------------------------------------------- */

/* Is [name] [prefix] and then [key]? */
static bool name_is(const char *name, const char *prefix, report_text_t key)
{
    const size_t length = strlen(prefix);

    return strncmp(name, prefix, length) == 0 &&
           strncmp(name + length, key.at, key.length) == 0 &&
           name[length + key.length] == '\0';
}

const report_curve_t *report_curves_find(const report_curves_t *curves,
                                         const char *name)
{
    for (int i = 0; i < curves->count; i++)
        if (strcmp(curves->curves[i]->name, name) == 0)
            return curves->curves[i];
    return NULL;
}

/* The index of the curve of [key], which is made if there is none. -1: there
 * are too many. */
static err_code_t curve_get(report_curves_t *curves, const char *prefix,
                            report_text_t key, int *index, err_t *err)
{
    report_curve_t *curve;
    err_code_t rc;

    for (int i = 0; i < curves->count; i++)
        if (name_is(curves->curves[i]->name, prefix, key)) {
            *index = i;
            return ERR_OK;
        }
    *index = -1;
    if (curves->count == REPORT_CURVES_MAX)
        return ERR_OK;
    rc = mem_new(report_curve_t, 1, "a curve", &curve, err);
    if (rc != ERR_OK)
        return rc;
    curve->name = str_printf("%s%.*s", prefix, (int)key.length, key.at);
    *index = curves->count++;
    curves->curves[*index] = curve;
    return ERR_OK;
}

/* Is the number called [key] no curve? */
static bool is_counter(report_text_t key)
{
    return report_text_is(key, "step") || report_text_is(key, "epoch") ||
           report_text_is(key, "samples");
}

/* The curve of field [at] of the row of a step. The keys of these rows have the
 * same order, so the row before tells it. */
static err_code_t curve_of_step(report_curves_t *curves, int at,
                                report_text_t key, int *index, err_t *err)
{
    const int known = curves->order[at] - 1;
    err_code_t rc = ERR_OK;

    if (known >= 0 && name_is(curves->curves[known]->name, "", key)) {
        *index = known;
        return ERR_OK;
    }
    rc = curve_get(curves, "", key, index, err);
    if (rc == ERR_OK)
        curves->order[at] = *index + 1;
    return rc;
}

/* Add all numbers of [row] to the curves "[prefix]KEY". */
static err_code_t numbers_add(report_curves_t *curves, const char *prefix,
                              const report_row_t *row, int64_t step, err_t *err)
{
    err_code_t rc = ERR_OK;
    int index;

    for (int i = 0; rc == ERR_OK && i < row->count; i++) {
        const report_field_t *field = &row->fields[i];

        if (field->kind != REPORT_NUMBER || is_counter(field->key))
            continue;
        rc = prefix[0] == '\0'
                 ? curve_of_step(curves, i, field->key, &index, err)
                 : curve_get(curves, prefix, field->key, &index, err);
        if (rc == ERR_OK && index >= 0)
            report_bins_add(&curves->curves[index]->bins, step, field->number);
        else
            curves->left_out++;
    }
    return rc;
}

/* ---- events -------------------------------------------------------------- */

/* A copy of [text] as JSON. */
static json_t *text_json(report_text_t text)
{
    char *copy = str_printf("%.*s", (int)text.length, text.at);
    json_t *out = report_json_text(copy);

    free(copy);
    return out;
}

static err_code_t event_add(report_curves_t *curves, const report_row_t *row,
                            err_t *err)
{
    json_t *object;
    int bad;

    if (json_array_size(curves->events) >= REPORT_EVENTS_MAX) {
        curves->left_out++;
        return ERR_OK;
    }
    object = json_object();
    bad = json_array_append_new(curves->events, object);
    for (int i = 0; i < row->count && bad == 0; i++) {
        const report_field_t *field = &row->fields[i];
        char *key = str_printf("%.*s", (int)field->key.length, field->key.at);
        char *visible = str_visible_dup(key);

        if (field->kind != REPORT_OTHER)
            bad = json_object_set_new(object, visible,
                                      field->kind == REPORT_NUMBER
                                          ? json_real(field->number)
                                          : text_json(field->text));
        free(visible);
        free(key);
    }
    return bad == 0 ? ERR_OK
                    : err_set(err, ERR_MEMORY,
                              "out of memory for the events "
                              "of metrics.jsonl");
}

static err_code_t ranks_add(report_curves_t *curves, const report_row_t *row,
                            err_t *err)
{
    err_code_t rc =
        curves->loads == NULL ? report_loads_open(&curves->loads, err) : ERR_OK;

    return rc == ERR_OK ? report_loads_add(curves->loads, row, err) : rc;
}

static void best_take(report_curves_t *curves, const report_row_t *row)
{
    const double accuracy = report_row_number(row, "accuracy", NAN);
    const double loss = report_row_number(row, "loss", NAN);
    const bool scores = isfinite(accuracy);
    const double value = scores ? accuracy : loss;

    if (!isfinite(value) || (curves->best_is_accuracy && !scores))
        return;
    if (isfinite(curves->best) && curves->best_is_accuracy == scores &&
        !(scores ? value > curves->best : value < curves->best))
        return;
    curves->best = value;
    curves->best_step = report_row_step(row);
    curves->best_is_accuracy = scores;
}

/* ---- rows ---------------------------------------------------------------- */

static void time_take(report_curves_t *curves, const report_row_t *row)
{
    const report_field_t *time = report_row_find(row, "time");

    if (time == NULL || time->kind != REPORT_TEXT)
        return;
    const size_t most = sizeof curves->time - 1;
    const size_t length = time->text.length < most ? time->text.length : most;

    memcpy(curves->time, time->text.at, length);
    curves->time[length] = '\0';
    if (curves->begun[0] == '\0')
        memcpy(curves->begun, curves->time, sizeof curves->begun);
}

err_code_t report_curves_add(report_curves_t *curves, const report_row_t *row,
                             err_t *err)
{
    const report_field_t *event = report_row_find(row, "event");
    const int64_t step = report_row_step(row);

    curves->rows++;
    time_take(curves, row);
    if (step > curves->step)
        curves->step = step;
    if (event == NULL) {
        if (step < 0)
            return ERR_OK;
        curves->loss = report_row_number(row, "loss", NAN);
        curves->speed = report_row_number(row, "samples_per_s", NAN);
        return numbers_add(curves, "", row, step, err);
    }
    if (step >= 0 && report_text_is(event->text, "eval")) {
        best_take(curves, row);
        return numbers_add(curves, "valid/", row, step, err);
    }
    if (step >= 0 && report_text_is(event->text, "checkpoint"))
        return numbers_add(curves, "checkpoint/", row, step, err);
    if (report_text_is(event->text, "ranks"))
        return ranks_add(curves, row, err);
    return event_add(curves, row, err);
}
