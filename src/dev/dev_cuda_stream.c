/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Streams, events and graphs of the device "cuda". */
#include <pthread.h>
#include <stdint.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "dev/dev_cuda_priv.h"

typedef struct cuda_stream {
    dev_stream_t base;
    cuda_device_t *dev;
    cudaStream_t cuda;
    /* For dev_cuda_stream_wait_or: it has asked CUDA for [asked] calls of
     * stream_ended, and [done] of these were made. The lock guards [done]. */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int64_t asked, done;
} cuda_stream_t;

typedef struct cuda_event {
    dev_event_t base;
    cuda_device_t *dev;
    cudaEvent_t cuda;
} cuda_event_t;

typedef struct cuda_graph {
    dev_graph_t base;
    cuda_device_t *dev;
    cudaGraphExec_t cuda;
} cuda_graph_t;

static const cuda_stream_t *stream_of(const dev_stream_t *base)
{
    return (const cuda_stream_t *)base;
}

cudaStream_t dev_cuda_stream(const dev_stream_t *base)
{
    const cuda_stream_t *stream = stream_of(base);
    const err_code_t rc = dev_cuda_enter(stream->dev, NULL);

    /* If it has failed, so will the call that the stream is for. */
    (void)rc;
    return stream->cuda;
}

void *dev_cuda_stream_handle(const dev_stream_t *base)
{
    return dev_cuda_stream(base);
}

cudaEvent_t dev_cuda_event(const dev_event_t *base)
{
    return ((const cuda_event_t *)base)->cuda;
}

/* ---- streams ------------------------------------------------------------- */

/* Streams do not wait for CUDA's default stream, which nobody uses. */
static err_code_t stream_create(cuda_stream_t *stream, dev_stream_kind_t kind,
                                err_t *err)
{
    const char *name = stream->dev->name;
    int lowest, highest;

    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest), name, err);
    CUDA_CHECK(cudaStreamCreateWithPriority(
                   &stream->cuda, cudaStreamNonBlocking,
                   kind == DEV_STREAM_COMM ? highest : lowest),
               name, err);
    return ERR_OK;
}

err_code_t dev_cuda_stream_open(dev_device_t *base, dev_stream_kind_t kind,
                                dev_stream_t **out, err_t *err)
{
    cuda_device_t *dev = (cuda_device_t *)base;
    cuda_stream_t *stream = NULL;
    err_code_t rc = dev_cuda_enter(dev, err);

    if (rc == ERR_OK)
        rc = mem_new(cuda_stream_t, 1, "a stream of a GPU", &stream, err);
    if (rc != ERR_OK)
        return rc;
    stream->dev = dev;
    rc = stream_create(stream, kind, err);
    if (rc != ERR_OK) {
        mem_free(stream);
        return rc;
    }
    pthread_mutex_init(&stream->lock, NULL);
    thread_cond_init(&stream->ended);
    *out = &stream->base;
    return ERR_OK;
}

void dev_cuda_stream_close(dev_stream_t *base)
{
    cuda_stream_t *stream = (cuda_stream_t *)base;

    cudaStreamDestroy(stream->cuda);
    pthread_cond_destroy(&stream->ended);
    pthread_mutex_destroy(&stream->lock);
    mem_free(stream);
}

err_code_t dev_cuda_stream_wait(dev_stream_t *base, err_t *err)
{
    const cuda_stream_t *stream = stream_of(base);

    CUDA_CHECK(cudaStreamSynchronize(stream->cuda), stream->dev->name, err);
    return ERR_OK;
}

/* A thread of CUDA calls this when all earlier work of the stream is done. */
static void stream_ended(void *argument)
{
    cuda_stream_t *stream = argument;

    pthread_mutex_lock(&stream->lock);
    stream->done++;
    pthread_cond_signal(&stream->ended);
    pthread_mutex_unlock(&stream->lock);
}

/* Wait until all calls of stream_ended were made, at most DEV_CUDA_LOOK
 * seconds. Returns whether they were. */
static bool end_await(cuda_stream_t *stream)
{
    const double instant = clock_now() + DEV_CUDA_LOOK;
    bool ended;

    pthread_mutex_lock(&stream->lock);
    while (stream->done < stream->asked &&
           thread_cond_wait(&stream->ended, &stream->lock, instant))
        continue;
    ended = stream->done >= stream->asked;
    pthread_mutex_unlock(&stream->lock);
    return ended;
}

/* After an error of the GPU, CUDA does not call stream_ended, but
 * cudaStreamQuery returns the error. So both are needed. */
err_code_t dev_cuda_stream_wait_or(dev_stream_t *base, dev_look_fn *look,
                                   void *context, err_t *err)
{
    cuda_stream_t *stream = (cuda_stream_t *)base;
    const char *name = stream->dev->name;
    const double begin = clock_now();
    err_code_t rc = ERR_OK;
    bool ended = false;

    CUDA_CHECK(cudaLaunchHostFunc(stream->cuda, stream_ended, stream), name,
               err);
    stream->asked++;
    while (rc == ERR_OK && !ended) {
        ended = end_await(stream);
        if (!ended)
            rc = look(context, clock_now() - begin, err);
        if (rc == ERR_OK && !ended) {
            const cudaError_t state = cudaStreamQuery(stream->cuda);

            if (state != cudaErrorNotReady)
                rc = dev_cuda_check(state, "cudaStreamQuery", name, err);
        }
    }
    return rc;
}

err_code_t dev_cuda_copy(dev_stream_t *base, void *to, const void *from,
                         size_t bytes, dev_copy_kind_t kind, err_t *err)
{
    static const enum cudaMemcpyKind kinds[] = {
        [DEV_HOST_TO_DEV] = cudaMemcpyHostToDevice,
        [DEV_DEV_TO_HOST] = cudaMemcpyDeviceToHost,
        [DEV_DEV_TO_DEV] = cudaMemcpyDeviceToDevice,
    };
    const cuda_stream_t *stream = stream_of(base);

    if (bytes == 0)
        return ERR_OK;
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kinds[kind], stream->cuda),
               stream->dev->name, err);
    return ERR_OK;
}

err_code_t dev_cuda_fill(dev_stream_t *base, void *to, int byte, size_t bytes,
                         err_t *err)
{
    const cuda_stream_t *stream = stream_of(base);

    if (bytes == 0)
        return ERR_OK;
    CUDA_CHECK(cudaMemsetAsync(to, byte, bytes, stream->cuda),
               stream->dev->name, err);
    return ERR_OK;
}

/* ---- events -------------------------------------------------------------- */

static err_code_t event_create(cuda_event_t *event, err_t *err)
{
    CUDA_CHECK(cudaEventCreateWithFlags(&event->cuda, cudaEventDisableTiming),
               event->dev->name, err);
    return ERR_OK;
}

err_code_t dev_cuda_event_open(dev_device_t *base, dev_event_t **out,
                               err_t *err)
{
    cuda_device_t *dev = (cuda_device_t *)base;
    cuda_event_t *event = NULL;
    err_code_t rc = dev_cuda_enter(dev, err);

    if (rc == ERR_OK)
        rc = mem_new(cuda_event_t, 1, "an event of a GPU", &event, err);
    if (rc != ERR_OK)
        return rc;
    event->dev = dev;
    rc = event_create(event, err);
    if (rc == ERR_OK)
        *out = &event->base;
    else
        mem_free(event);
    return rc;
}

void dev_cuda_event_close(dev_event_t *base)
{
    cuda_event_t *event = (cuda_event_t *)base;

    cudaEventDestroy(event->cuda);
    mem_free(event);
}

err_code_t dev_cuda_event_record(dev_event_t *base, dev_stream_t *on,
                                 err_t *err)
{
    const cuda_event_t *event = (cuda_event_t *)base;

    CUDA_CHECK(cudaEventRecord(event->cuda, stream_of(on)->cuda),
               event->dev->name, err);
    return ERR_OK;
}

err_code_t dev_cuda_event_wait(dev_event_t *base, err_t *err)
{
    const cuda_event_t *event = (cuda_event_t *)base;

    CUDA_CHECK(cudaEventSynchronize(event->cuda), event->dev->name, err);
    return ERR_OK;
}

static cudaError_t event_poll(void *object)
{
    const cuda_event_t *event = object;

    return cudaEventQuery(event->cuda);
}

err_code_t dev_cuda_event_wait_or(dev_event_t *base, dev_look_fn *look,
                                  void *context, err_t *err)
{
    cuda_event_t *event = (cuda_event_t *)base;

    return dev_cuda_poll_or(event_poll, event, event->dev, look, context, err);
}

err_code_t dev_cuda_event_wait_on(dev_event_t *base, dev_stream_t *on,
                                  err_t *err)
{
    const cuda_event_t *event = (cuda_event_t *)base;

    CUDA_CHECK(cudaStreamWaitEvent(stream_of(on)->cuda, event->cuda, 0),
               event->dev->name, err);
    return ERR_OK;
}

/* ---- graphs -------------------------------------------------------------- */

err_code_t dev_cuda_capture_begin(dev_stream_t *base, err_t *err)
{
    const cuda_stream_t *stream = stream_of(base);

    CUDA_CHECK(
        cudaStreamBeginCapture(stream->cuda, cudaStreamCaptureModeThreadLocal),
        stream->dev->name, err);
    return ERR_OK;
}

/* Make [captured], what the capture has given, ready to be launched. */
static err_code_t graph_make(cuda_device_t *dev, cudaGraph_t captured,
                             cuda_graph_t *graph, err_t *err)
{
    graph->dev = dev;
    CUDA_CHECK(cudaGraphInstantiate(&graph->cuda, captured, 0), dev->name, err);
    return ERR_OK;
}

err_code_t dev_cuda_capture_end(dev_stream_t *base, dev_graph_t **out,
                                err_t *err)
{
    const cuda_stream_t *stream = stream_of(base);
    cudaGraph_t captured = NULL;
    cuda_graph_t *graph = NULL;
    err_code_t rc;

    CUDA_GOTO(cudaStreamEndCapture(stream->cuda, &captured), stream->dev->name,
              err, done);
    rc = mem_new(cuda_graph_t, 1, "a graph of a GPU", &graph, err);
    if (rc == ERR_OK)
        rc = graph_make(stream->dev, captured, graph, err);
    if (rc == ERR_OK)
        *out = &graph->base;
    else
        mem_free(graph);
done:
    if (captured != NULL)
        cudaGraphDestroy(captured);
    return rc;
}

err_code_t dev_cuda_graph_launch(dev_graph_t *base, dev_stream_t *on,
                                 err_t *err)
{
    const cuda_graph_t *graph = (cuda_graph_t *)base;

    CUDA_CHECK(cudaGraphLaunch(graph->cuda, stream_of(on)->cuda),
               graph->dev->name, err);
    return ERR_OK;
}

void dev_cuda_graph_close(dev_graph_t *base)
{
    cuda_graph_t *graph = (cuda_graph_t *)base;

    cudaGraphExecDestroy(graph->cuda);
    mem_free(graph);
}
