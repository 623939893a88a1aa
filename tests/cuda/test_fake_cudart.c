/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The stand-in for CUDA's runtime: streams run late and in two orders, the host
 * cannot read a device, misuse is an error as CUDA's documentation has it.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/fake_cuda.h"
#include "cuda/simt_kernels.h"
#include "dev/dev_far.h"

#define COUNT 96
#define BYTES (COUNT * sizeof(float))

#define OK(call) cr_assert_eq(call, cudaSuccess, "%s", #call)
#define FAILS(error, call) cr_assert_eq(call, error, "%s", #call)

static void settings(int64_t order)
{
    fake_cuda_settings_t set;

    unsetenv("CUDA_VISIBLE_DEVICES");
    fake_cuda.reset();
    set = fake_cuda.get();
    set.order = order;
    fake_cuda.set(&set);
}

static cudaStream_t stream_open(void)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void *block(void)
{
    void *at;

    OK(cudaMalloc(&at, BYTES));
    return at;
}

static cudaEvent_t event_open(void)
{
    cudaEvent_t event;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

/* Nothing is left: fake_cuda.reset would end the process. */
static void closes(void)
{
    fake_cuda.reset();
}

/* ---- streams ------------------------------------------------------------- */

ParameterizedTestParameters(fake_cudart, streams_run_late)
{
    static int orders[] = {DEV_FAR_LAST_FIRST, DEV_FAR_NEEDED_ONLY};

    return cr_make_param_array(int, orders, DEV_FAR_ORDERS);
}

ParameterizedTest(const int *order, fake_cudart, streams_run_late)
{
    float from[COUNT] = {1}, to[COUNT] = {2};
    cudaStream_t stream;
    void *at;

    settings(*order);
    stream = stream_open();
    at = block();
    OK(cudaMemcpyAsync(at, from, BYTES, cudaMemcpyHostToDevice, stream));
    from[0] = 3; /* too early: the copy reads it */
    OK(cudaMemcpyAsync(to, at, BYTES, cudaMemcpyDeviceToHost, stream));
    cr_assert(isnan(to[0]));
    FAILS(cudaErrorNotReady, cudaStreamQuery(stream));
    OK(cudaStreamSynchronize(stream));
    cr_assert_eq(to[0], 3);
    cr_assert_eq(fake_cuda.counts().unpinned, 2);
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(at));
    closes();
}

/* One stream multiplies, another one copies the result. */
static float two_streams(bool with_event)
{
    float from[COUNT], to[COUNT];
    cudaStream_t first = stream_open(), second = stream_open();
    cudaEvent_t event = event_open();
    void *x = block(), *y = block();

    for (int i = 0; i < COUNT; i++)
        from[i] = 1;
    OK(cudaMemsetAsync(y, 0, BYTES, first));
    OK(cudaMemcpyAsync(x, from, BYTES, cudaMemcpyHostToDevice, first));
    simt_kernel_norm(x, y, 1, COUNT, SIMT_RIGHT, first);
    OK(cudaGetLastError());
    OK(cudaEventRecord(event, first));
    if (with_event)
        OK(cudaStreamWaitEvent(second, event, 0));
    OK(cudaMemcpyAsync(to, y, BYTES, cudaMemcpyDeviceToHost, second));
    OK(cudaStreamSynchronize(second));
    OK(cudaEventSynchronize(event));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(first));
    OK(cudaStreamDestroy(second));
    OK(cudaFree(x));
    OK(cudaFree(y));
    closes();
    return to[COUNT - 1];
}

ParameterizedTestParameters(fake_cudart, a_missing_event_shows)
{
    static int orders[] = {DEV_FAR_LAST_FIRST, DEV_FAR_NEEDED_ONLY};

    return cr_make_param_array(int, orders, DEV_FAR_ORDERS);
}

ParameterizedTest(const int *order, fake_cudart, a_missing_event_shows)
{
    settings(*order);
    cr_assert_float_eq(two_streams(true), 1.0f / COUNT, 1e-8);
    settings(*order);
    cr_assert(isnan(two_streams(false)));
}

Test(fake_cudart, the_host_cannot_read_a_device)
{
    void *at;
    int status;
    pid_t child;

    settings(0);
    at = block();
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        /* Else a sanitizer would end the child with a status of its own. */
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)at);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    OK(cudaFree(at));
    closes();
}

/* ---- memory -------------------------------------------------------------- */

Test(fake_cudart, memory)
{
    fake_cuda_settings_t set;
    void *at, *other, *pinned;
    size_t free_bytes, total;
    char host[256];

    settings(0);
    set = fake_cuda.get();
    set.memory = 1 << 20;
    fake_cuda.set(&set);
    OK(cudaMalloc(&at, 1000));
    OK(cudaMemGetInfo(&free_bytes, &total));
    cr_assert_eq(total, 1 << 20);
    cr_assert_eq(free_bytes, (1 << 20) - 1000);
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&other, 1 << 20));
    FAILS(cudaErrorMemoryAllocation, cudaGetLastError());
    OK(cudaGetLastError());
    FAILS(cudaErrorInvalidValue, cudaFree((char *)at + 256));
    OK(cudaFree(at));
    OK(cudaFree(NULL));

    OK(cudaHostAlloc(&pinned, 512, cudaHostAllocDefault));
    FAILS(cudaErrorHostMemoryAlreadyRegistered,
          cudaHostRegister((char *)pinned + 8, 8, 0));
    OK(cudaHostRegister(host, sizeof host, 0));
    FAILS(cudaErrorHostMemoryAlreadyRegistered,
          cudaHostRegister(host, sizeof host, 0));
    OK(cudaHostUnregister(host));
    FAILS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host));
    OK(cudaFreeHost(pinned));
    closes();
}

Test(fake_cudart, copies_are_checked)
{
    cudaStream_t stream;
    float host[COUNT];
    void *at;

    settings(0);
    stream = stream_open();
    at = block();
    FAILS(cudaErrorInvalidValue,
          cudaMemcpyAsync(at, host, BYTES + 4, cudaMemcpyHostToDevice, stream));
    FAILS(cudaErrorInvalidValue,
          cudaMemcpyAsync(at, host, BYTES, cudaMemcpyDeviceToHost, stream));
    FAILS(cudaErrorInvalidValue,
          cudaMemcpyAsync(at, host, BYTES, cudaMemcpyDefault, stream));
    FAILS(cudaErrorInvalidValue, cudaMemsetAsync(host, 0, BYTES, stream));
    FAILS(cudaErrorInvalidResourceHandle, cudaMemsetAsync(at, 0, BYTES, NULL));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(at));
    closes();
}

/* ---- kernels ------------------------------------------------------------- */

Test(fake_cudart, launches_are_checked)
{
    fake_cuda_settings_t set;
    cudaStream_t stream;
    void *x, *y;

    settings(0);
    set = fake_cuda.get();
    set.devices = 2;
    fake_cuda.set(&set);
    stream = stream_open();
    x = block();
    y = block();
    simt_kernel_norm(x, y, 0, COUNT, SIMT_RIGHT, stream); /* no block */
    FAILS(cudaErrorInvalidConfiguration, cudaGetLastError());
    simt_kernel_norm(x, y, 1, COUNT, SIMT_RIGHT, NULL);
    FAILS(cudaErrorInvalidResourceHandle, cudaGetLastError());
    simt_kernel_shared(y, 60000, false, stream);
    FAILS(cudaErrorInvalidValue, cudaGetLastError());
    simt_kernel_shared(y, 60000, true, stream);
    OK(cudaGetLastError());
    simt_kernel_shared(y, 300000, true, stream);
    FAILS(cudaErrorInvalidValue, cudaGetLastError());
    OK(cudaStreamSynchronize(stream));
    /* A stream of another device than the thread's. */
    OK(cudaSetDevice(1));
    simt_kernel_norm(x, y, 1, COUNT, SIMT_RIGHT, stream);
    FAILS(cudaErrorInvalidResourceHandle, cudaGetLastError());
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(2));
    OK(cudaSetDevice(0));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(x));
    OK(cudaFree(y));
    closes();
}

/* ---- graphs -------------------------------------------------------------- */

/* y = 2 x by two streams, then to the host. */
static void doubles(float *x, float *y, float *host, const cudaStream_t s[2],
                    const cudaEvent_t e[2])
{
    OK(cudaEventRecord(e[0], s[0]));
    OK(cudaStreamWaitEvent(s[1], e[0], 0));
    simt_kernel_add(x, x, y, COUNT, s[1]);
    OK(cudaGetLastError());
    OK(cudaEventRecord(e[1], s[1]));
    OK(cudaStreamWaitEvent(s[0], e[1], 0));
    OK(cudaMemcpyAsync(host, y, BYTES, cudaMemcpyDeviceToHost, s[0]));
}

ParameterizedTestParameters(fake_cudart, graphs)
{
    static int orders[] = {DEV_FAR_LAST_FIRST, DEV_FAR_NEEDED_ONLY};

    return cr_make_param_array(int, orders, DEV_FAR_ORDERS);
}

ParameterizedTest(const int *order, fake_cudart, graphs)
{
    float from[COUNT], host[COUNT] = {5};
    cudaStream_t s[2];
    cudaEvent_t e[2];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *x, *y;

    settings(*order);
    for (int i = 0; i < 2; i++) {
        s[i] = stream_open();
        e[i] = event_open();
    }
    x = block();
    y = block();
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
    doubles(x, y, host, s, e);
    OK(cudaStreamEndCapture(s[0], &graph));
    cr_assert_eq(host[0], 5, "nothing runs at a capture");
    cr_assert_eq(fake_cuda.counts().kernels, 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int step = 1; step <= 3; step++) {
        from[0] = (float)step;
        OK(cudaMemcpyAsync(x, from, BYTES, cudaMemcpyHostToDevice, s[0]));
        OK(cudaGraphLaunch(exec, s[0]));
        cr_assert(isnan(host[0]));
        OK(cudaStreamSynchronize(s[0]));
        cr_assert_eq(host[0], 2 * (float)step);
    }
    cr_assert_eq(fake_cuda.counts().kernels, 3);
    OK(cudaGraphExecDestroy(exec));
    for (int i = 0; i < 2; i++) {
        OK(cudaStreamDestroy(s[i]));
        OK(cudaEventDestroy(e[i]));
    }
    OK(cudaFree(x));
    OK(cudaFree(y));
    closes();
}

/* What a capture does not allow. */
Test(fake_cudart, captures_are_checked)
{
    cudaStream_t s[2];
    cudaEvent_t event, old;
    cudaGraph_t graph;
    void *at;

    settings(0);
    s[0] = stream_open();
    s[1] = stream_open();
    event = event_open();
    old = event_open();
    OK(cudaEventRecord(old, s[1]));

    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
    FAILS(cudaErrorStreamCaptureUnsupported, cudaMalloc(&at, 8));
    FAILS(cudaErrorStreamCaptureInvalidated,
          cudaStreamEndCapture(s[0], &graph));
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
    FAILS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s[1]));
    FAILS(cudaErrorStreamCaptureInvalidated,
          cudaStreamEndCapture(s[0], &graph));
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
    FAILS(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(s[0], old, 0));
    FAILS(cudaErrorStreamCaptureInvalidated,
          cudaStreamEndCapture(s[0], &graph));

    at = block();
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(event, s[0]));
    OK(cudaStreamWaitEvent(s[1], event, 0));
    OK(cudaMemsetAsync(at, 0, BYTES, s[1]));
    FAILS(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(s[0], &graph));
    FAILS(cudaErrorCapturedEvent, cudaEventSynchronize(event));
    FAILS(cudaErrorCapturedEvent, cudaStreamWaitEvent(s[1], event, 0));
    OK(cudaFree(at));
    OK(cudaEventDestroy(event));
    OK(cudaEventDestroy(old));
    OK(cudaStreamDestroy(s[0]));
    OK(cudaStreamDestroy(s[1]));
    closes();
}

/* ---- devices and faults -------------------------------------------------- */

Test(fake_cudart, devices)
{
    struct cudaDeviceProp properties;
    fake_cuda_settings_t set;
    int count;

    settings(0);
    OK(cudaGetDeviceProperties(&properties, 0));
    cr_assert_eq(properties.major, 9);
    cr_assert_eq(properties.multiProcessorCount, 132);
    FAILS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 1));
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    FAILS(cudaErrorNoDevice, cudaGetDeviceCount(&count));
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    OK(cudaGetDeviceCount(&count));
    cr_assert_eq(count, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    set = fake_cuda.get();
    set.arch = 75;
    set.devices = 3;
    fake_cuda.set(&set);
    OK(cudaGetDeviceCount(&count));
    cr_assert_eq(count, 3);
    OK(cudaGetDeviceProperties(&properties, 2));
    cr_assert_eq(10 * properties.major + properties.minor, 75);
    set.driver = 0;
    fake_cuda.set(&set);
    FAILS(cudaErrorInsufficientDriver, cudaGetDeviceCount(&count));
    closes();
}

/* A stream, a block and a copy; the error of the call that failed. */
static cudaError_t few_calls(void)
{
    cudaStream_t stream = NULL;
    void *at = NULL;
    float host[COUNT];
    cudaError_t error =
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error == cudaSuccess)
        error = cudaMalloc(&at, BYTES);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(at, 0, BYTES, stream);
    if (error == cudaSuccess)
        error =
            cudaMemcpyAsync(host, at, BYTES, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    if (at != NULL)
        cudaFree(at);
    if (stream != NULL)
        cudaStreamDestroy(stream);
    return error;
}

Test(fake_cudart, each_call_can_fail)
{
    static const cudaError_t want[] = {
        cudaErrorUnknown, cudaErrorMemoryAllocation, cudaErrorUnknown,
        cudaErrorUnknown, cudaErrorUnknown};

    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        fake_cuda_settings_t set;

        settings(0);
        set = fake_cuda.get();
        set.fail = (int64_t)k + 1;
        fake_cuda.set(&set);
        FAILS(want[k], few_calls());
        closes();
    }
    OK(few_calls());
    closes();
}

/* A kernel that fails: every later call says so. */
Test(fake_cudart, an_operation_can_fail)
{
    fake_cuda_settings_t set;
    cudaStream_t stream;
    void *at;

    settings(0);
    set = fake_cuda.get();
    set.fail_op = 2;
    fake_cuda.set(&set);
    FAILS(cudaErrorIllegalAddress, few_calls());
    FAILS(cudaErrorIllegalAddress, cudaMalloc(&at, 8));
    FAILS(cudaErrorIllegalAddress,
          cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    FAILS(cudaErrorIllegalAddress, cudaGetLastError());
    FAILS(cudaErrorIllegalAddress, cudaGetLastError());
    closes();
}
