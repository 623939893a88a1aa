/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The trace of whole runs: valid JSON with the spans of all ranks, nested on
 * each line, also with comm hooks and with ZeRO, and no bit of the run changes.
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

/* 16 layers in about 15 buckets, as BUCKETS has the smallest sizes that are
 * allowed. powersgd compresses each layer except the last one. */
#define LAYER ", {linear: {out: 12}}"
#define DEEP                                                              \
    "model={input: [12], layers: [{name: first, linear: {out: 12}}" LAYER \
        LAYER LAYER LAYER LAYER LAYER LAYER LAYER LAYER LAYER LAYER LAYER \
            LAYER LAYER ", {linear: {out: 2}}]}"
#define BUCKETS                                      \
    "first_bucket_mb: 0.001, bucket_cap_mb: 0.001, " \
    "last_bucket_mb: 0.001"

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

/* The number of buckets of which [rank] has spans. */
static int buckets(json_t *trace, int rank)
{
    json_t *events = json_object_get(trace, "traceEvents"), *event;
    int most = 0;
    size_t i;

    json_array_foreach(events, i, event)
    {
        const int found = number(json_object_get(event, "args"), "number");

        if (has(event, "name", "bucket") && number(event, "pid") == rank &&
            found > most)
            most = found;
    }
    return most;
}

/* A span on its line. */
typedef struct piece {
    int rank, line;
    double begin, end; /* us */
} piece_t;

/* By lines, then by their begins; of two that begin together the longer one
 * comes first. */
static int piece_order(const void *a, const void *b)
{
    const piece_t *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

/* Of two spans of a line, the later one begins after the end of the earlier
 * one, or ends before it. */
static void expect_nested(json_t *trace)
{
    const double grid = 1e-4; /* us; numbers have three digits */
    json_t *events = json_object_get(trace, "traceEvents"), *event;
    piece_t *pieces = calloc(json_array_size(events), sizeof *pieces);
    const piece_t *open[16];
    size_t count = 0, i;
    int depth = 0;

    cr_assert_not_null(pieces);
    json_array_foreach(events, i, event) if (has(event, "ph", "X"))
        pieces[count++] =
            (piece_t){.rank = number(event, "pid"),
                      .line = number(event, "tid"),
                      .begin = real(event, "ts"),
                      .end = real(event, "ts") + real(event, "dur")};
    qsort(pieces, count, sizeof *pieces, piece_order);
    for (i = 0; i < count; i++) {
        const piece_t *piece = &pieces[i];

        while (depth > 0 && (open[depth - 1]->rank != piece->rank ||
                             open[depth - 1]->line != piece->line ||
                             open[depth - 1]->end <= piece->begin + grid))
            depth--;
        cr_assert(depth == 0 || piece->end <= open[depth - 1]->end + grid,
                  "rank %d, line %d: spans overlap at %.3f us", piece->rank,
                  piece->line, piece->begin);
        cr_assert_lt(depth, 16);
        open[depth++] = piece;
    }
    free(pieces);
}

/* Make a run of [model] with the setting [mode], which may be NULL. */
static void run_model(harness_t *harness, const char *model, const char *mode,
                      bool traced)
{
    train_outcome_t out;

    harness_open(harness, 24 * 30);
    harness->settings[0] = model;
    harness->settings[1] = "train.epochs=1";
    harness->settings[2] = "data.valid=[]";
    harness->settings[3] = "obs.trace_steps=3:25";
    harness->settings[4] = traced ? "obs.trace=chrome" : "obs.trace=none";
    harness->settings[5] = mode;
    harness_run_ok(harness, RANKS, &out);
}

static void run_traced(harness_t *harness, const char *mode, bool traced)
{
    run_model(harness, MODEL, mode, traced);
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

/* How many spans a rank has for each bucket in each traced step. */
typedef struct per_bucket {
    const char *hook;                   /* NULL: none */
    int turns, sums, scatters, gathers; /* numbers of spans */
} per_bucket_t;

static void expect_buckets(json_t *trace, int rank, const per_bucket_t *each)
{
    const int all = buckets(trace, rank) * (LAST - FIRST + 1);
    const char *hook = each->hook != NULL ? each->hook : "none";

    cr_expect_geq(buckets(trace, rank), 10);
    cr_expect_eq(spans(trace, rank, hook, "hook"), each->turns * all);
    cr_expect_eq(spans(trace, rank, "bucket", "all-reduce"), each->sums * all);
    cr_expect_eq(spans(trace, rank, "bucket", "reduce-scatter"),
                 each->scatters * all);
    cr_expect_eq(spans(trace, rank, "bucket", "all-gather"),
                 each->gathers * all);
}

static void expect_mode(const char *mode, const per_bucket_t *each)
{
    harness_t plain, traced;
    json_t *trace;

    run_model(&plain, DEEP, mode, false);
    run_model(&traced, DEEP, mode, true);
    harness_compare(&plain, &traced, -1, 0, mode);
    trace = trace_read(&traced);
    for (int r = 0; r < RANKS; r++) {
        expect_steps(trace, r);
        expect_buckets(trace, r, each);
    }
    cr_expect_eq(number(json_object_get(trace, "otherData"), "lost_spans"), 0);
    expect_nested(trace);
    json_decref(trace);
    harness_close(&traced);
    harness_close(&plain);
}

Test(trace, has_what_hooks_do_and_send)
{
    expect_mode("ddp={hook: bf16, " BUCKETS "}",
                &(per_bucket_t){.hook = "bf16", .turns = 2, .sums = 1});
    expect_mode("ddp={hook: {powersgd: {start_step: 0}}, " BUCKETS "}",
                &(per_bucket_t){.hook = "powersgd", .turns = 3, .sums = 2});
}

Test(trace, has_both_halves_of_zero)
{
    expect_mode("ddp={zero: 1, " BUCKETS "}",
                &(per_bucket_t){.scatters = 1, .gathers = 1});
}

/* Local steps send nothing, except those before an average. */
Test(trace, has_the_averages_of_local_sgd)
{
    harness_t harness;
    json_t *trace;

    run_traced(&harness, "ddp.local_sgd={period: 5, start: 0}", true);
    trace = trace_read(&harness);
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(spans(trace, r, "average", "all-reduce"), 5);
        cr_expect_eq(spans(trace, r, "bucket", NULL), 0);
    }
    expect_nested(trace);
    json_decref(trace);
    harness_close(&harness);
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
    harness.settings[2] = "checkpoint.every=2 steps";
    harness_run_ok(&harness, 1, &out);
    trace = trace_read(&harness);
    cr_expect_eq(spans(trace, 0, "step", NULL), 3);
    cr_expect_eq(spans(trace, 0, "evaluation", NULL), 1);
    cr_expect_eq(spans(trace, 0, "checkpoint", NULL), 2);
    /* The thread writes both checkpoints. While it writes that of step 2,
     * training goes on. */
    cr_expect_eq(spans(trace, 0, "save", NULL), 2);
    expect_nested(trace);
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
