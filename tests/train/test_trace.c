/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The trace of whole runs: valid JSON with the spans of all ranks, nested on
 * each line, and no bit of the run changes.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "train/harness.h"

#define RANKS 4
#define FIRST 3
#define LAST 25

#define MODEL                                                              \
    "model={input: [12], layers: [{name: first, linear: {out: 8}}, relu, " \
    "{linear: {out: 2}}]}"

/* The trace that a run wrote, which must be valid. */
static json_t *trace_read(const harness_t *harness)
{
    char *path = str_printf("%s/run/trace.json", harness->dir);
    json_error_t error;
    json_t *trace = json_load_file(path, 0, &error);

    cr_assert_not_null(trace, "%s: %s, line %d", path, error.text, error.line);
    free(path);
    return trace;
}

static int number(const json_t *event, const char *key)
{
    return (int)json_integer_value(json_object_get(event, key));
}

static double real(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static bool has(const json_t *event, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(event, key));

    return found != NULL && strcmp(found, text) == 0;
}

/* Count the spans of [rank] with this name, and, unless it is NULL, this kind.
 */
static int spans(json_t *trace, int rank, const char *name, const char *what)
{
    json_t *events = json_object_get(trace, "traceEvents"), *event;
    int count = 0;
    size_t i;

    json_array_foreach(events, i, event) if (has(event, "ph", "X") &&
                                             number(event, "pid") == rank &&
                                             has(event, "name", name) &&
                                             (what == NULL ||
                                              has(event, "cat", what))) count++;
    return count;
}

/* A span overlaps another one of its line if one of its ends is inside of that,
 * and the other is not. */
static bool overlap(const json_t *a, const json_t *b)
{
    const double begin_a = real(a, "ts"), end_a = begin_a + real(a, "dur");
    const double begin_b = real(b, "ts"), end_b = begin_b + real(b, "dur");
    const double grid = 1e-4; /* us; numbers have three digits */

    return begin_a + grid < begin_b && begin_b + grid < end_a &&
           end_a + grid < end_b;
}

static void expect_nested(json_t *trace)
{
    json_t *events = json_object_get(trace, "traceEvents"), *a, *b;
    size_t i, k;

    json_array_foreach(events, i, a)
    {
        json_array_foreach(events, k,
                           b) if (has(a, "ph", "X") && has(b, "ph", "X") &&
                                  number(a, "pid") == number(b, "pid") &&
                                  number(a, "tid") == number(b, "tid") &&
                                  overlap(a, b))
            cr_assert_fail("spans %zu and %zu overlap", i, k);
    }
}

static void run_traced(harness_t *harness, const char *mode, bool traced)
{
    train_outcome_t out;

    harness_open(harness, 24 * 30);
    harness->settings[0] = MODEL;
    harness->settings[1] = "train.epochs=1";
    harness->settings[2] = "data.valid=[]";
    harness->settings[3] = "obs.trace_steps=3:25";
    harness->settings[4] = traced ? "obs.trace=chrome" : "obs.trace=none";
    harness->settings[5] = mode;
    harness_run_ok(harness, RANKS, &out);
}

/* The spans that all modes have. */
static void expect_steps(json_t *trace, int rank)
{
    const int steps = LAST - FIRST + 1;

    cr_expect_eq(spans(trace, rank, "step", NULL), steps, "rank %d", rank);
    cr_expect_eq(spans(trace, rank, "data", NULL), steps);
    cr_expect_eq(spans(trace, rank, "update", NULL), steps);
    cr_expect_eq(spans(trace, rank, "first", "backward"),
                 spans(trace, rank, "first", "forward"));
    cr_expect_geq(spans(trace, rank, "first", "forward"), steps);
    /* The loader reads some batches before their step, perhaps all but one
     * before the trace begins. */
    cr_expect_geq(spans(trace, rank, "batch", "data"), 1);
    cr_expect_geq(spans(trace, rank, "read", "data"), 1);
    cr_expect_geq(spans(trace, rank, "convert", "data"), 1);
}

Test(trace, has_all_ranks_and_changes_no_bit)
{
    const int steps = LAST - FIRST + 1;
    harness_t plain, traced;
    json_t *trace;

    run_traced(&plain, NULL, false);
    run_traced(&traced, NULL, true);
    harness_compare(&plain, &traced, -1, 0, "a traced run");
    trace = trace_read(&traced);
    for (int r = 0; r < RANKS; r++) {
        expect_steps(trace, r);
        cr_expect_eq(spans(trace, r, "forward", NULL), steps);
        cr_expect_eq(spans(trace, r, "backward", NULL), steps);
        cr_expect_eq(spans(trace, r, "wait", "all-reduce"), steps);
        cr_expect_geq(spans(trace, r, "bucket", "all-reduce"), steps);
        cr_expect_eq(spans(trace, r, "tail", "all-reduce"), steps);
    }
    cr_expect_eq(number(json_object_get(trace, "otherData"), "lost_spans"), 0);
    expect_nested(trace);
    json_decref(trace);
    harness_close(&traced);
    harness_close(&plain);
}

Test(trace, of_leaves_side_by_side_nests_on_each_thread)
{
    static const char mode[] = "train={epochs: 1, batch: 24, reproducible: "
                               "true, microbatch: 2, threads: 2}";
    harness_t plain, traced;
    json_t *trace;

    run_traced(&plain, mode, false);
    run_traced(&traced, mode, true);
    harness_compare(&plain, &traced, -1, 0, "a traced run of leaves");
    trace = trace_read(&traced);
    for (int r = 0; r < RANKS; r++)
        expect_steps(trace, r);
    expect_nested(trace);
    json_decref(trace);
    harness_close(&traced);
    harness_close(&plain);
}

/* A run that ends before the last step writes what it has. */
Test(trace, of_a_short_run_has_its_end)
{
    harness_t harness;
    train_outcome_t out;
    json_t *trace;

    harness_open(&harness, 24 * 4);
    harness.settings[0] = "train.epochs=1";
    harness.settings[1] = "obs={trace: chrome, trace_steps: \"2:1000\"}";
    harness_run_ok(&harness, 1, &out);
    trace = trace_read(&harness);
    cr_expect_eq(spans(trace, 0, "step", NULL), 3);
    cr_expect_eq(spans(trace, 0, "evaluation", NULL), 1);
    cr_expect_eq(spans(trace, 0, "checkpoint", NULL), 1);
    json_decref(trace);
    harness_close(&harness);
}

Test(trace, steps_are_first_and_last)
{
    static const char *const bad[] = {
        "obs.trace_steps=5",  "obs.trace_steps=0:3", "obs.trace_steps=7:6",
        "obs.trace_steps=:3", "obs.trace_steps=2:",  "obs.trace_steps=a:b"};
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, 24);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        train_config_t config;
        tree_t *tree = NULL;

        harness.settings[0] = bad[i];
        err = (err_t)ERR_INIT;
        cr_expect_eq(harness_config(&harness, &tree, &config, &err), ERR_CONFIG,
                     "%s", bad[i]);
        cr_expect_not_null(strstr(err.text, "trace_steps"), "%s", err.text);
        tree_free(tree);
    }
    harness_close(&harness);
}
