/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Streams, events, copies and launches of the runtime. */
#include "fake_cudart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simt_run.h"

/* ---- operations ---------------------------------------------------------- */

typedef struct fake_op {
    fake_run_fn *run;
    _Alignas(16) char args[FAKE_ARGS];
} fake_op_t;

/* After an operation that failed the device does nothing any more, and all
 * calls return its error. */
static err_code_t op_run(void *arg, err_t *err)
{
    const fake_op_t *op = arg;
    cudaError_t error;

    (void)err;
    fake.counts.ops++;
    if (fake.settings.fail_op > 0 && --fake.settings.fail_op == 0)
        error = cudaErrorIllegalAddress;
    else
        error = op->run(op->args);
    if (error != cudaSuccess)
        fake.sticky = error;
    return error == cudaSuccess ? ERR_OK : ERR_UNAVAILABLE;
}

static cudaError_t queue_error(err_code_t rc)
{
    return rc == ERR_OK ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaStream_t fake_stream(cudaStream_t handle)
{
    if (handle == NULL)
        fprintf(stderr, "fake_cuda: %s uses the default stream\n",
                fake.last_call);
    return handle == cudaStreamLegacy ? &fake_current()->legacy : handle;
}

cudaError_t fake_push(cudaStream_t stream, fake_run_fn *run, const void *args,
                      size_t bytes)
{
    far_queue_t *queue;
    fake_op_t op;

    stream = fake_stream(stream);
    if (stream == NULL)
        return cudaErrorInvalidResourceHandle;
    if (bytes > FAKE_ARGS)
        return cudaErrorInvalidValue;
    op.run = run;
    memcpy(op.args, args, bytes);
    queue = stream->capture != NULL ? fake_graph_queue(stream->capture)
                                    : &stream->dev->queue;
    return queue_error(far_queue_push(
        queue, stream->capture != NULL ? stream->kept : &stream->line, op_run,
        &op, offsetof(fake_op_t, args) + bytes, NULL));
}

cudaError_t fake_run(fake_device_t *dev, far_line_t *line,
                     const far_mark_t *mark)
{
    err_code_t rc = ERR_OK;

    fake_engine_await(dev);
    if (dev->queue.pending == 0)
        return cudaSuccess;
    dev->running = true;
    fake_memory_show(dev, true);
    if (line != NULL)
        rc = far_queue_finish(&dev->queue, line, NULL);
    else if (mark != NULL)
        rc = far_queue_reach(&dev->queue, mark, NULL);
    else
        for (line = dev->queue.lines; line != NULL && rc == ERR_OK;
             line = line->next)
            rc = far_queue_finish(&dev->queue, line, NULL);
    fake_memory_show(dev, false);
    fake_engine_idle(dev);
    return rc == ERR_OK ? cudaSuccess : fake.sticky;
}

/* ---- streams ------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags,
                                         int priority)
{
    cudaError_t error = fake_begin("cudaStreamCreateWithPriority");
    cudaStream_t stream = NULL;

    (void)priority;
    /* One that waits for the default stream is not what anybody wants here. */
    if (error == cudaSuccess && flags != cudaStreamNonBlocking)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && (stream = calloc(1, sizeof *stream)) == NULL)
        error = cudaErrorMemoryAllocation;
    if (error == cudaSuccess) {
        stream->dev = fake_current();
        far_queue_add(&stream->dev->queue, &stream->line);
        fake.counts.objects++;
        *out = stream;
    }
    return fake_end(error);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t error = fake_begin("cudaStreamDestroy");

    if (stream == NULL)
        return fake_end(cudaErrorInvalidResourceHandle);
    if (stream->capture != NULL)
        fake_capture_fail(stream->capture);
    fake_run(stream->dev, &stream->line, NULL);
    far_queue_remove(&stream->dev->queue, &stream->line);
    free(stream);
    fake.counts.objects--;
    return fake_end(error);
}

/* The error of waiting for a stream that is captured. */
static cudaError_t not_captured(cudaStream_t stream)
{
    if (stream == NULL)
        return cudaErrorInvalidResourceHandle;
    if (stream->capture == NULL)
        return cudaSuccess;
    fake_capture_fail(stream->capture);
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t error = fake_begin_plain("cudaStreamSynchronize");

    stream = fake_stream(stream);
    if (error == cudaSuccess)
        error = not_captured(stream);
    if (error == cudaSuccess) {
        fake.counts.waits++;
        error = fake_run(stream->dev, &stream->line, NULL);
    }
    return fake_end(error);
}

/* Execute operations for a query, up to the end of [line] or to [mark]: who
 * asks again and again sees them end. A query must not block, and collectives
 * wait for other ranks: if there may be some, the device's thread executes
 * them. */
static cudaError_t query_run(fake_device_t *dev, far_line_t *line,
                             const far_mark_t *mark)
{
    cudaError_t error = cudaSuccess;

    /* A copy that never ends runs in the thread of the device. */
    if (!dev->running && fake.settings.hang_copy > 0)
        fake_engine_start(dev, false);
    else if (!dev->running && !fake_engine_launched(dev))
        error = fake_run(dev, line, mark);
    return error == cudaSuccess ? cudaErrorNotReady : error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t error = fake_begin_plain("cudaStreamQuery");

    stream = fake_stream(stream);
    if (error == cudaSuccess)
        error = not_captured(stream);
    if (error == cudaSuccess &&
        (stream->dev->running || stream->line.first >= 0))
        error = query_run(stream->dev, &stream->line, NULL);
    return fake_end(error);
}

/* ---- copies -------------------------------------------------------------- */

typedef struct copy {
    void *to;
    const void *from;
    size_t bytes;
} copy_t;

static cudaError_t copy_run(const void *args)
{
    const copy_t *copy = args;

    if (fake.settings.hang_copy > 0 && --fake.settings.hang_copy == 0)
        fake_hang();
    memcpy(copy->to, copy->from, copy->bytes);
    return cudaSuccess;
}

/* Is each side where the kind of the copy says? */
static bool copy_fits(const copy_t *copy, enum cudaMemcpyKind kind)
{
    const bool to = kind != cudaMemcpyDeviceToHost;
    const bool from = kind != cudaMemcpyHostToDevice;

    return (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost ||
            kind == cudaMemcpyDeviceToDevice) &&
           fake_memory_has(copy->to, to ? copy->bytes : 0) == to &&
           fake_memory_has(copy->from, from ? copy->bytes : 0) == from;
}

/* A host that reads before it has waited gets NaN. */
static cudaError_t copy_spoil(cudaStream_t stream, const copy_t *copy)
{
    if (stream->capture != NULL)
        return fake_capture_target(stream->capture, copy->to, copy->bytes);
    memset(copy->to, 0xff, copy->bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = fake_begin("cudaMemcpyAsync");
    const copy_t copy = {to, from, bytes};
    const void *host = kind == cudaMemcpyDeviceToHost ? to : from;

    if (error != cudaSuccess || bytes == 0)
        return fake_end(error);
    if (!copy_fits(&copy, kind))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = fake_push(stream, copy_run, &copy, sizeof copy);
    if (error == cudaSuccess && kind != cudaMemcpyDeviceToDevice &&
        !fake_memory_pinned(host, bytes))
        fake.counts.unpinned++;
    if (error == cudaSuccess && kind == cudaMemcpyDeviceToHost)
        error = copy_spoil(stream, &copy);
    return fake_end(error);
}

typedef struct fill {
    void *to;
    int byte;
    size_t bytes;
} fill_t;

static cudaError_t fill_run(const void *args)
{
    const fill_t *fill = args;

    memset(fill->to, fill->byte, fill->bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes,
                            cudaStream_t stream)
{
    cudaError_t error = fake_begin("cudaMemsetAsync");
    const fill_t fill = {to, byte, bytes};

    if (error != cudaSuccess || bytes == 0)
        return fake_end(error);
    if (!fake_memory_has(to, bytes))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = fake_push(stream, fill_run, &fill, sizeof fill);
    return fake_end(error);
}

/* On the default stream; it does not wait for its end. */
cudaError_t cudaMemset(void *to, int byte, size_t bytes)
{
    cudaError_t error = fake_begin_plain("cudaMemset");
    const fill_t fill = {to, byte, bytes};

    if (error != cudaSuccess || bytes == 0)
        return fake_end(error);
    if (!fake_memory_has(to, bytes))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = fake_push(cudaStreamLegacy, fill_run, &fill, sizeof fill);
    return fake_end(error);
}

typedef struct host_call {
    cudaHostFn_t call;
    void *arg;
} host_call_t;

static cudaError_t host_run(const void *args)
{
    const host_call_t *host = args;

    host->call(host->arg);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call,
                               void *arg)
{
    cudaError_t error = fake_begin("cudaLaunchHostFunc");
    const host_call_t host = {call, arg};

    if (error == cudaSuccess)
        error = fake_push(stream, host_run, &host, sizeof host);
    /* The host may wait for the function without a call of CUDA. */
    if (error == cudaSuccess && stream->capture == NULL)
        fake_engine_start(stream->dev, false);
    return fake_end(error);
}

/* ---- events -------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    cudaError_t error = fake_begin("cudaEventCreateWithFlags");
    cudaEvent_t event = NULL;

    (void)flags;
    if (error == cudaSuccess && (event = calloc(1, sizeof *event)) == NULL)
        error = cudaErrorMemoryAllocation;
    if (error == cudaSuccess) {
        event->dev = fake_current();
        fake.counts.objects++;
        *out = event;
    }
    return fake_end(error);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t error = fake_begin("cudaEventDestroy");

    if (event == NULL)
        return fake_end(cudaErrorInvalidResourceHandle);
    /* The queue knows the event's address: waits for it come first. */
    fake_run(event->dev, NULL, NULL);
    free(event);
    fake.counts.objects--;
    return fake_end(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = fake_begin("cudaEventRecord");

    if (error == cudaSuccess &&
        (event == NULL || stream == NULL || event->dev != stream->dev))
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && stream->capture != NULL) {
        error = fake_capture_record(event, stream);
    } else if (error == cudaSuccess) {
        event->kept = NULL;
        error = queue_error(far_queue_record(&stream->dev->queue, &stream->line,
                                             &event->mark, NULL));
    }
    return fake_end(error);
}

static cudaError_t event_usable(cudaEvent_t event)
{
    if (event == NULL)
        return cudaErrorInvalidResourceHandle;
    return event->kept != NULL ? cudaErrorCapturedEvent : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = fake_begin_plain("cudaEventSynchronize");

    if (error == cudaSuccess)
        error = event_usable(event);
    if (error == cudaSuccess) {
        fake.counts.waits++;
        error = fake_run(event->dev, NULL, &event->mark);
    }
    return fake_end(error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = fake_begin_plain("cudaEventQuery");

    if (error == cudaSuccess)
        error = event_usable(event);
    if (error == cudaSuccess && event->mark.done < event->mark.asked)
        error = query_run(event->dev, NULL, &event->mark);
    return fake_end(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags)
{
    cudaError_t error = fake_begin("cudaStreamWaitEvent");

    if (error == cudaSuccess && (stream == NULL || event == NULL || flags != 0))
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess &&
        (event->kept != NULL || stream->capture != NULL))
        error = fake_capture_await(event, stream);
    else if (error == cudaSuccess && event->dev != stream->dev)
        /* Two queues: what the stream does next has to come later. */
        error = fake_run(event->dev, NULL, &event->mark);
    else if (error == cudaSuccess)
        error = queue_error(far_queue_await(&stream->dev->queue, &stream->line,
                                            &event->mark, NULL));
    return fake_end(error);
}

/* ---- kernels ------------------------------------------------------------- */

typedef struct kernel {
    simt_launch_t launch;
    simt_call_fn *call;
    size_t bytes;
    _Alignas(16) char args[FAKE_ARGS - 128];
} kernel_t;

static cudaError_t kernel_run(const void *args)
{
    const kernel_t *kernel = args;

    fake.counts.kernels++;
    simt_run(&kernel->launch, (simt_schedule_t)fake.settings.schedule,
             kernel->call, kernel->args);
    return cudaSuccess;
}

/* Kernels with more dynamic shared memory than every kernel may have. */
static struct more {
    const void *kernel;
    size_t bytes;
} more[256];

static struct more *more_find(const void *kernel)
{
    struct more *at = more;

    while (at < more + 255 && at->kernel != NULL && at->kernel != kernel)
        at++;
    return at;
}

cudaError_t cudaFuncSetAttribute(const void *kernel,
                                 enum cudaFuncAttribute name, int value)
{
    cudaError_t error = fake_begin("cudaFuncSetAttribute");
    struct cudaDeviceProp properties;

    fake_end_library();
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&properties, fake_current_index());
    if (error == cudaSuccess &&
        (name != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
         (size_t)value > properties.sharedMemPerBlockOptin))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        struct more *at = more_find(kernel);

        at->kernel = kernel;
        at->bytes = (size_t)value;
    }
    return error;
}

static cudaError_t launch_check(const simt_launch_t *launch)
{
    const dim3 g = launch->grid, b = launch->block;
    const cudaStream_t stream = fake_stream(launch->stream);
    const struct more *at = more_find(launch->kernel);
    const size_t most =
        at->kernel != NULL && at->bytes > 48 << 10 ? at->bytes : 48 << 10;

    if (stream == NULL || stream->dev != fake_current())
        return cudaErrorInvalidResourceHandle;
    if (launch->shared > most)
        return cudaErrorInvalidValue;
    if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffff || g.y > 65535 ||
        g.z > 65535 || b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 ||
        b.y > 1024 || b.z > 64 || (uint64_t)b.x * b.y * b.z > 1024)
        return cudaErrorInvalidConfiguration;
    return cudaSuccess;
}

void simt_launch(const simt_launch_t *launch, simt_call_fn *call,
                 const void *args, size_t bytes)
{
    cudaError_t error = fake_begin(launch->name);
    kernel_t kernel = {.launch = *launch, .call = call, .bytes = bytes};

    if (error == cudaSuccess)
        error = launch_check(launch);
    if (error == cudaSuccess && bytes > sizeof kernel.args)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        memcpy(kernel.args, args, bytes);
        error = fake_push(launch->stream, kernel_run, &kernel,
                          offsetof(kernel_t, args) + bytes);
    }
    fake_end(error);
}
