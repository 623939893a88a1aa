/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Captures and graphs. A graph keeps a queue of its own with a line for each
 * stream that takes part, and executes it again at each launch.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_cudart.h"

typedef struct kept_line {
    struct kept_line *next;
    cudaStream_t stream;
    far_line_t line;
} kept_line_t;

typedef struct kept_mark {
    struct kept_mark *next;
    far_mark_t mark;
} kept_mark_t;

typedef struct target {
    struct target *next;
    void *to;
    size_t bytes;
} target_t;

typedef struct held {
    struct held *next;
    int64_t *count;
} held_t;

struct fake_graph {
    far_queue_t queue;
    fake_device_t *dev;
    cudaStream_t origin;
    int64_t number;
    int owners; /* cudaGraph_t, cudaGraphExec_t, launches that are pending */
    bool capturing, failed;
    kept_line_t *lines;
    kept_mark_t *marks;
    target_t *targets;
    held_t *held;
};

/* Both handles are the same graph here. */
struct CUgraph_st {
    fake_graph_t graph;
};

/* Of this thread; not NULL at first, simt.h says why. */
static fake_graph_t none;
static _Thread_local fake_graph_t *mine = &none;
static int64_t last_number;

bool fake_capturing(void)
{
    return mine != &none;
}

void fake_capture_fail(fake_graph_t *graph)
{
    graph->failed = true;
}

void fake_capture_fail_mine(void)
{
    mine->failed = true;
}

far_queue_t *fake_graph_queue(fake_graph_t *graph)
{
    return &graph->queue;
}

/* ---- graphs -------------------------------------------------------------- */

static void graph_drop(fake_graph_t *graph)
{
    if (--graph->owners > 0)
        return;
    for (kept_line_t *line = graph->lines, *next; line != NULL; line = next) {
        next = line->next;
        free(line);
    }
    for (kept_mark_t *mark = graph->marks, *next; mark != NULL; mark = next) {
        next = mark->next;
        free(mark);
    }
    for (target_t *target = graph->targets, *next; target != NULL;
         target = next) {
        next = target->next;
        free(target);
    }
    for (held_t *held = graph->held, *next; held != NULL; held = next) {
        next = held->next;
        --*held->count;
        free(held);
    }
    far_queue_free(&graph->queue);
    free(graph);
}

/* Let [stream] take part in the capture. */
static cudaError_t graph_join(fake_graph_t *graph, cudaStream_t stream)
{
    kept_line_t *line = calloc(1, sizeof *line);

    if (line == NULL)
        return cudaErrorMemoryAllocation;
    line->next = graph->lines;
    line->stream = stream;
    graph->lines = line;
    far_queue_add(&graph->queue, &line->line);
    stream->capture = graph;
    stream->kept = &line->line;
    return cudaSuccess;
}

cudaError_t fake_capture_record(cudaEvent_t event, cudaStream_t stream)
{
    fake_graph_t *graph = stream->capture;
    kept_mark_t *mark = calloc(1, sizeof *mark);

    if (mark == NULL)
        return cudaErrorMemoryAllocation;
    mark->next = graph->marks;
    graph->marks = mark;
    event->kept = &mark->mark;
    event->kept_number = graph->number;
    return far_queue_record(&graph->queue, stream->kept, event->kept, NULL) ==
                   ERR_OK
               ? cudaSuccess
               : cudaErrorMemoryAllocation;
}

cudaError_t fake_capture_await(cudaEvent_t event, cudaStream_t stream)
{
    fake_graph_t *graph = stream->capture != NULL ? stream->capture : mine;
    cudaError_t error = cudaSuccess;

    /* An event from outside, in a capture. */
    if (event->kept == NULL) {
        fake_capture_fail(graph);
        return cudaErrorStreamCaptureIsolation;
    }
    /* An event of a capture that has ended, or of another one. */
    if (!graph->capturing || event->kept_number != graph->number)
        return cudaErrorCapturedEvent;
    if (stream->capture == NULL)
        error = graph_join(graph, stream);
    if (error == cudaSuccess && far_queue_await(&graph->queue, stream->kept,
                                                event->kept, NULL) != ERR_OK)
        error = cudaErrorMemoryAllocation;
    return error;
}

cudaError_t fake_capture_target(fake_graph_t *graph, void *to, size_t bytes)
{
    target_t *target = calloc(1, sizeof *target);

    if (target == NULL)
        return cudaErrorMemoryAllocation;
    *target = (target_t){graph->targets, to, bytes};
    graph->targets = target;
    return cudaSuccess;
}

cudaError_t fake_capture_hold(fake_graph_t *graph, int64_t *count)
{
    held_t *held = calloc(1, sizeof *held);

    if (held == NULL)
        return cudaErrorMemoryAllocation;
    *held = (held_t){graph->held, count};
    graph->held = held;
    ++*count;
    return cudaSuccess;
}

/* ---- captures ------------------------------------------------------------ */

/* Only the mode in which other threads go on freely is played. */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode)
{
    cudaError_t error = fake_begin("cudaStreamBeginCapture");
    fake_graph_t *graph = NULL;

    if (error == cudaSuccess &&
        (stream == NULL || mode != cudaStreamCaptureModeThreadLocal))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && (stream->capture != NULL || fake_capturing()))
        error = cudaErrorIllegalState;
    if (error == cudaSuccess && fake.settings.no_capture != 0)
        error = cudaErrorMemoryAllocation;
    if (error == cudaSuccess && (graph = calloc(1, sizeof *graph)) == NULL)
        error = cudaErrorMemoryAllocation;
    if (error == cudaSuccess) {
        graph->queue.order = stream->dev->queue.order;
        graph->dev = stream->dev;
        graph->origin = stream;
        graph->number = ++last_number;
        graph->owners = 1;
        graph->capturing = true;
        error = graph_join(graph, stream);
        if (error == cudaSuccess)
            mine = graph;
        else
            graph_drop(graph);
    }
    return fake_end(error);
}

static cudaError_t capture_result(fake_graph_t *graph, cudaStream_t stream)
{
    if (graph->failed)
        return cudaErrorStreamCaptureInvalidated;
    if (!far_queue_joined(&graph->queue, stream->kept))
        return cudaErrorStreamCaptureUnjoined;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    cudaError_t error = fake_begin("cudaStreamEndCapture");
    fake_graph_t *graph = stream == NULL ? NULL : stream->capture;

    *out = NULL;
    if (graph == NULL || graph != mine || graph->origin != stream)
        return fake_end(cudaErrorIllegalState);
    if (error == cudaSuccess)
        error = capture_result(graph, stream);
    for (kept_line_t *line = graph->lines; line != NULL; line = line->next)
        line->stream->capture = NULL;
    graph->capturing = false;
    mine = &none;
    if (error == cudaSuccess) {
        fake.counts.objects++;
        *out = (cudaGraph_t)graph;
    } else {
        graph_drop(graph);
    }
    return fake_end(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = fake_begin("cudaStreamIsCapturing");

    if (error == cudaSuccess)
        *status = stream->capture == NULL   ? cudaStreamCaptureStatusNone
                  : stream->capture->failed ? cudaStreamCaptureStatusInvalidated
                                            : cudaStreamCaptureStatusActive;
    return fake_end(error);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags)
{
    cudaError_t error = fake_begin("cudaGraphInstantiate");

    if (error == cudaSuccess && flags != 0)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        ((fake_graph_t *)graph)->owners++;
        fake.counts.objects++;
        *out = (cudaGraphExec_t)graph;
    }
    return fake_end(error);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out,
                                          cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = fake_begin("cudaGraphDestroy");

    fake.counts.objects--;
    graph_drop((fake_graph_t *)graph);
    return fake_end(error);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t error = fake_begin("cudaGraphExecDestroy");
    fake_graph_t *graph = (fake_graph_t *)exec;

    fake_run(graph->dev, NULL, NULL);
    fake.counts.objects--;
    graph_drop(graph);
    return fake_end(error);
}

/* ---- launches ------------------------------------------------------------ */

static cudaError_t graph_run(const void *args)
{
    fake_graph_t *graph = *(fake_graph_t *const *)args;

    return far_queue_replay(&graph->queue, NULL) == ERR_OK ? cudaSuccess
                                                           : fake.sticky;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error = fake_begin("cudaGraphLaunch");
    fake_graph_t *graph = (fake_graph_t *)exec;

    if (error == cudaSuccess && (stream == NULL || stream->capture != NULL))
        error = cudaErrorStreamCaptureUnsupported;
    if (error == cudaSuccess)
        error = fake_push(stream, graph_run, &graph, sizeof graph);
    if (error != cudaSuccess)
        return fake_end(error);
    fake.counts.graphs++;
    fake_engine_launched(stream->dev);
    for (const target_t *t = graph->targets; t != NULL; t = t->next)
        memset(t->to, 0xff, t->bytes);
    return fake_end(cudaSuccess);
}
