/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Streams, events and graphs of the device "cuda". */
#include "base/check.h"
#include "base/mem.h"
#include "dev/dev_cuda_priv.h"

typedef struct cuda_stream {
    dev_stream_t base;
    cuda_device_t *dev;
    cudaStream_t cuda;
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
    if (rc == ERR_OK)
        *out = &stream->base;
    else
        mem_free(stream);
    return rc;
}

void dev_cuda_stream_close(dev_stream_t *base)
{
    cuda_stream_t *stream = (cuda_stream_t *)base;

    cudaStreamDestroy(stream->cuda);
    mem_free(stream);
}

err_code_t dev_cuda_stream_wait(dev_stream_t *base, err_t *err)
{
    const cuda_stream_t *stream = stream_of(base);

    CUDA_CHECK(cudaStreamSynchronize(stream->cuda), stream->dev->name, err);
    return ERR_OK;
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
