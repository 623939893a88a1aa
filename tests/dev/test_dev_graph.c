/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Capture and launch of graphs on the device "far". */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <string.h>

#include "dev/dev_far.h"
#include "lib/facts.h"

#define COUNT 100
#define BYTES (COUNT * sizeof(float))

/* A far device with three streams, two blocks of COUNT floats and pinned
 * memory for as many. */
typedef struct rig {
    dev_device_t *dev;
    dev_stream_t *main, *side, *third;
    dev_event_t *forked, *joined;
    float *x, *y;     /* the device's */
    float *from, *to; /* the host's */
} rig_t;

static void *device_block(dev_device_t *dev)
{
    void *block;

    cr_assert_eq(dev_alloc(dev, BYTES, "a test", &block, NULL), ERR_OK);
    return block;
}

static void *host_block(dev_device_t *dev)
{
    void *block;

    cr_assert_eq(dev_pinned_alloc(dev, BYTES, "a test", &block, NULL), ERR_OK);
    return block;
}

static rig_t rig_open(int order)
{
    err_t err = ERR_INIT;
    rig_t rig;

    cr_assert_eq(dev_open("far", order, &rig.dev, &err), ERR_OK, "%s",
                 err.text);
    dev_stream_open(rig.dev, DEV_STREAM_COMPUTE, &rig.main, &err);
    dev_stream_open(rig.dev, DEV_STREAM_COMM, &rig.side, &err);
    dev_stream_open(rig.dev, DEV_STREAM_COPY, &rig.third, &err);
    dev_event_open(rig.dev, &rig.forked, &err);
    dev_event_open(rig.dev, &rig.joined, &err);
    cr_assert_eq(err.code, ERR_OK, "%s", err.text);
    rig.x = device_block(rig.dev);
    rig.y = device_block(rig.dev);
    rig.from = host_block(rig.dev);
    rig.to = host_block(rig.dev);
    return rig;
}

static void rig_close(rig_t *rig)
{
    err_t err = ERR_INIT;

    cr_expect_eq(dev_stream_wait(rig->main, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(dev_stream_wait(rig->side, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(dev_stream_wait(rig->third, &err), ERR_OK, "%s", err.text);
    dev_event_close(rig->forked);
    dev_event_close(rig->joined);
    dev_stream_close(rig->main);
    dev_stream_close(rig->side);
    dev_stream_close(rig->third);
    dev_pinned_free(rig->dev, rig->from);
    dev_pinned_free(rig->dev, rig->to);
    dev_free(rig->dev, rig->x);
    dev_free(rig->dev, rig->y);
    dev_close(rig->dev);
}

/* A kernel: y[i] = slope x[i] + y[i]. */
typedef struct line {
    float *y;
    const float *x;
    float slope;
} line_t;

static err_code_t line_run(void *arg, err_t *err)
{
    const line_t *line = arg;

    (void)err;
    for (int i = 0; i < COUNT; i++)
        line->y[i] += line->slope * line->x[i];
    return ERR_OK;
}

static err_code_t enqueue_line(dev_stream_t *stream, float *y, const float *x,
                               float slope)
{
    const line_t line = {y, x, slope};

    return dev_far_enqueue(stream, line_run, &line, sizeof line, NULL);
}

/* A step: x = from; on another stream y = 2 y; then y += x and to = y. */
static void work(rig_t *rig)
{
    dev_copy(rig->main, rig->x, rig->from, BYTES, DEV_HOST_TO_DEV, NULL);
    dev_event_record(rig->forked, rig->main, NULL);
    dev_event_wait_on(rig->forked, rig->side, NULL);
    enqueue_line(rig->side, rig->y, rig->y, 1);
    dev_event_record(rig->joined, rig->side, NULL);
    dev_event_wait_on(rig->joined, rig->main, NULL);
    enqueue_line(rig->main, rig->y, rig->x, 1);
    dev_copy(rig->main, rig->to, rig->y, BYTES, DEV_DEV_TO_HOST, NULL);
}

/* from[i] for step [step]. */
static void batch(rig_t *rig, int step)
{
    for (int i = 0; i < COUNT; i++)
        rig->from[i] = (float)(i + 7 * step);
}

static void expect_step(const rig_t *rig, int step)
{
    for (int i = 0; i < COUNT; i++) {
        float y = 0;

        for (int s = 0; s <= step; s++)
            y = 2 * y + (float)(i + 7 * s);
        cr_assert_eq(rig->to[i], y, "step %d, element %d: %g", step, i,
                     (double)rig->to[i]);
    }
}

ParameterizedTestParameters(graph, replay_equals_running)
{
    static int orders[] = {DEV_FAR_LAST_FIRST, DEV_FAR_NEEDED_ONLY};

    return cr_make_param_array(int, orders, DEV_FAR_ORDERS);
}

/* Steps 0 and 1 run plainly, the others by a graph. */
ParameterizedTest(const int *order, graph, replay_equals_running)
{
    rig_t rig = rig_open(*order);
    dev_graph_t *graph = NULL;
    dev_far_counts_t counts;
    err_t err = ERR_INIT;

    cr_expect(dev_can_capture(rig.dev));
    for (int step = 0; step < 2; step++) {
        batch(&rig, step);
        work(&rig);
        cr_assert_eq(dev_stream_wait(rig.main, NULL), ERR_OK);
        expect_step(&rig, step);
    }
    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    work(&rig);
    cr_assert_eq(dev_capture_end(rig.main, &graph, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(dev_stream_wait(rig.main, NULL), ERR_OK);
    expect_step(&rig, 1); /* A capture executes nothing. */
    counts = dev_far_counts(rig.dev);
    for (int step = 2; step < 5; step++) {
        batch(&rig, step);
        cr_assert_eq(dev_graph_launch(graph, rig.main, NULL), ERR_OK);
        cr_expect(isnan(rig.to[0]), "read before the wait");
        cr_assert_eq(dev_stream_wait(rig.main, NULL), ERR_OK);
        expect_step(&rig, step);
    }
    cr_expect_eq(dev_far_counts(rig.dev).launches, counts.launches + 3);
    cr_expect_eq(dev_far_counts(rig.dev).waits, counts.waits + 3);
    cr_expect_eq(dev_far_counts(rig.dev).allocs, counts.allocs);
    cr_expect_eq(dev_far_counts(rig.dev).unpinned, 0);
    dev_graph_close(graph);
    dev_graph_close(NULL);
    rig_close(&rig);
}

/* Streams of a graph run in the device's order: without the second event the
 * result is wrong. */
Test(graph, forgotten_event)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    dev_graph_t *graph = NULL;

    batch(&rig, 0);
    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    dev_copy(rig.main, rig.x, rig.from, BYTES, DEV_HOST_TO_DEV, NULL);
    dev_event_record(rig.forked, rig.main, NULL);
    dev_copy(rig.main, rig.y, rig.from, BYTES, DEV_HOST_TO_DEV, NULL);
    dev_event_wait_on(rig.forked, rig.side, NULL);
    enqueue_line(rig.side, rig.x, rig.y, 1); /* needs y */
    dev_event_record(rig.joined, rig.side, NULL);
    dev_event_wait_on(rig.joined, rig.main, NULL);
    dev_copy(rig.main, rig.to, rig.x, BYTES, DEV_DEV_TO_HOST, NULL);
    cr_assert_eq(dev_capture_end(rig.main, &graph, NULL), ERR_OK);
    dev_graph_launch(graph, rig.main, NULL);
    cr_assert_eq(dev_stream_wait(rig.main, NULL), ERR_OK);
    cr_expect_eq(rig.to[9], 9, "y was not there yet");
    dev_graph_close(graph);
    rig_close(&rig);
}

/* A stream outside the capture waits and computes as ever. */
Test(graph, other_streams_go_on)
{
    rig_t rig = rig_open(DEV_FAR_NEEDED_ONLY);
    dev_graph_t *graph = NULL;

    batch(&rig, 0);
    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    enqueue_line(rig.main, rig.y, rig.x, 1);
    cr_expect_eq(
        dev_copy(rig.third, rig.x, rig.from, BYTES, DEV_HOST_TO_DEV, NULL),
        ERR_OK);
    cr_assert_eq(dev_capture_end(rig.main, &graph, NULL), ERR_OK);
    cr_expect_eq(dev_event_record(rig.forked, rig.third, NULL), ERR_OK);
    cr_expect_eq(dev_event_wait_on(rig.forked, rig.main, NULL), ERR_OK);
    dev_graph_launch(graph, rig.main, NULL);
    dev_graph_launch(graph, rig.main, NULL);
    dev_copy(rig.main, rig.to, rig.y, BYTES, DEV_DEV_TO_HOST, NULL);
    cr_assert_eq(dev_stream_wait(rig.main, NULL), ERR_OK);
    cr_expect_eq(rig.to[9], 18);
    dev_graph_close(graph);
    rig_close(&rig);
}

/* What must not be called in a capture. */
typedef err_code_t forbidden_fn(rig_t *rig, err_t *err);

static err_code_t wait_stream(rig_t *rig, err_t *err)
{
    return dev_stream_wait(rig->main, err);
}

static err_code_t wait_other(rig_t *rig, err_t *err)
{
    return dev_stream_wait(rig->third, err);
}

static err_code_t wait_event(rig_t *rig, err_t *err)
{
    return dev_event_wait(rig->joined, err);
}

static err_code_t allocate(rig_t *rig, err_t *err)
{
    void *block = NULL;

    return dev_alloc(rig->dev, 64, "a test", &block, err);
}

static err_code_t allocate_pinned(rig_t *rig, err_t *err)
{
    void *block = NULL;

    return dev_pinned_alloc(rig->dev, 64, "a test", &block, err);
}

static err_code_t pin(rig_t *rig, err_t *err)
{
    return dev_pin(rig->dev, rig, sizeof *rig, err);
}

static err_code_t await_outside(rig_t *rig, err_t *err)
{
    return dev_event_wait_on(rig->joined, rig->main, err);
}

static err_code_t injected(rig_t *rig, err_t *err)
{
    dev_far_fail(rig->dev, 1);
    return dev_fill(rig->main, rig->x, 0, BYTES, err);
}

static forbidden_fn *const forbidden[] = {
    wait_stream,     wait_other, wait_event, allocate,
    allocate_pinned, pin,        injected,   await_outside,
};

Test(graph, what_waits_or_allocates_is_an_error)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);

    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        dev_graph_t *graph = NULL;
        err_t err = ERR_INIT;

        cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
        cr_expect_eq(enqueue_line(rig.main, rig.y, rig.x, 1), ERR_OK);
        cr_expect_eq(forbidden[i](&rig, &err), ERR_UNAVAILABLE, "call %zu", i);
        FACTS(err.text, "far");
        err = (err_t)ERR_INIT;
        cr_expect_eq(dev_capture_end(rig.main, &graph, &err), ERR_UNAVAILABLE);
        FACTS(err.text, "capture");
        cr_expect_null(graph);
        /* The device goes on. */
        cr_expect_eq(enqueue_line(rig.main, rig.y, rig.x, 1), ERR_OK);
        cr_expect_eq(dev_stream_wait(rig.main, NULL), ERR_OK);
    }
    rig_close(&rig);
}

Test(graph, free_is_an_error)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    void *block = device_block(rig.dev);
    dev_graph_t *graph = NULL;

    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    dev_free(rig.dev, block);
    cr_expect_eq(dev_capture_end(rig.main, &graph, NULL), ERR_UNAVAILABLE);
    rig_close(&rig);
}

Test(graph, stream_not_joined)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    dev_graph_t *graph = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    dev_event_record(rig.forked, rig.main, NULL);
    dev_event_wait_on(rig.forked, rig.side, NULL);
    enqueue_line(rig.side, rig.y, rig.x, 1);
    dev_event_record(rig.joined, rig.side, NULL);
    dev_event_wait_on(rig.joined, rig.main, NULL);
    enqueue_line(rig.side, rig.y, rig.x, 1); /* after the join */
    cr_expect_eq(dev_capture_end(rig.main, &graph, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "capture", "all others");
    rig_close(&rig);
}

/* An event of a capture means nothing outside, until it is recorded again. */
Test(graph, event_outside)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    dev_graph_t *graph = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    dev_event_record(rig.forked, rig.main, NULL);
    cr_assert_eq(dev_capture_end(rig.main, &graph, NULL), ERR_OK);
    cr_expect_eq(dev_event_wait(rig.forked, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "capture");
    cr_expect_eq(dev_event_wait_on(rig.forked, rig.side, &err),
                 ERR_UNAVAILABLE);
    cr_expect_eq(dev_event_record(rig.forked, rig.main, NULL), ERR_OK);
    cr_expect_eq(dev_event_wait(rig.forked, NULL), ERR_OK);
    dev_graph_close(graph);
    rig_close(&rig);
}

static err_code_t fails(void *arg, err_t *err)
{
    return err_set(err, ERR_UNAVAILABLE, "kernel %d failed", *(int *)arg);
}

Test(graph, kernel_fails)
{
    const int number = 7;
    dev_graph_t *graph = NULL;
    err_t err = ERR_INIT;
    rig_t rig = rig_open(DEV_FAR_NEEDED_ONLY);

    cr_assert_eq(dev_capture_begin(rig.main, NULL), ERR_OK);
    dev_far_enqueue(rig.main, fails, &number, sizeof number, NULL);
    cr_assert_eq(dev_capture_end(rig.main, &graph, NULL), ERR_OK);
    cr_expect_eq(dev_graph_launch(graph, rig.main, NULL), ERR_OK);
    cr_expect_eq(dev_stream_wait(rig.main, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "kernel 7");
    cr_expect_eq(dev_graph_launch(graph, rig.main, NULL), ERR_UNAVAILABLE);
    dev_graph_close(graph);
    dev_event_close(rig.forked);
    dev_event_close(rig.joined);
    dev_stream_close(rig.main);
    dev_stream_close(rig.side);
    dev_stream_close(rig.third);
    dev_pinned_free(rig.dev, rig.from);
    dev_pinned_free(rig.dev, rig.to);
    dev_free(rig.dev, rig.x);
    dev_free(rig.dev, rig.y);
    dev_close(rig.dev);
}
