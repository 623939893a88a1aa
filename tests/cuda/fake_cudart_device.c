/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The runtime's functions on devices, functions and errors. */
#include <stdio.h>
#include <string.h>

#include "fake_cudart.h"

/* ---- devices ------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t error = fake_begin("cudaGetDeviceCount");

    if (error == cudaSuccess)
        error = fake_visible(count);
    return fake_end(error);
}

cudaError_t cudaSetDevice(int index)
{
    cudaError_t error = fake_begin("cudaSetDevice");

    if (error == cudaSuccess)
        error = fake_set_current(index);
    return fake_end(error);
}

cudaError_t cudaGetDevice(int *index)
{
    cudaError_t error = fake_begin("cudaGetDevice");

    if (error == cudaSuccess)
        *index = fake_current_index();
    return fake_end(error);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    cudaError_t error = fake_begin("cudaDriverGetVersion");

    if (error == cudaSuccess)
        *version = (int)fake.settings.driver;
    return fake_end(error);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    cudaError_t error = fake_begin("cudaRuntimeGetVersion");

    if (error == cudaSuccess)
        *version = CUDART_VERSION;
    return fake_end(error);
}

static bool exists(int index)
{
    int count;

    return fake_visible(&count) == cudaSuccess && index >= 0 && index < count;
}

static size_t shared_most(void)
{
    if (fake.settings.arch >= 90 && fake.settings.arch < 120)
        return 227 << 10;
    if (fake.settings.arch == 80)
        return 163 << 10;
    return fake.settings.arch >= 86 ? 99 << 10 : 64 << 10;
}

static void properties_fill(struct cudaDeviceProp *p, int index)
{
    const int number = fake_number(index);

    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "NVIDIA %s%s (emulated)",
             fake.settings.other >= 0 && number >= fake.settings.other ? "A100"
                                                                       : "H200",
             fake.settings.parts ? " MIG 1g.18gb" : "");
    snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "emulated %d", number);
    p->totalGlobalMem = (size_t)fake.settings.memory;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = shared_most();
    p->sharedMemPerMultiprocessor = shared_most() + 1024;
    p->reservedSharedMemPerBlock = 1024;
    p->regsPerBlock = 65536;
    p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->totalConstMem = 65536;
    p->major = (int)fake.settings.arch / 10;
    p->minor = (int)fake.settings.arch % 10;
    p->multiProcessorCount = (int)fake.settings.sms;
    p->l2CacheSize = 60 << 20;
    p->memoryBusWidth = 6144;
    p->asyncEngineCount = 3;
    p->unifiedAddressing = 1;
    p->concurrentKernels = 1;
    p->streamPrioritiesSupported = 1;
    p->canMapHostMemory = 1;
    p->hostRegisterSupported = 1;
    p->pciBusID = 1 + number;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties,
                                    int index)
{
    cudaError_t error = fake_begin("cudaGetDeviceProperties");

    if (error == cudaSuccess && !exists(index))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        properties_fill(properties, index);
    return fake_end(error);
}

static cudaError_t attribute(int *value, enum cudaDeviceAttr name,
                             const struct cudaDeviceProp *p)
{
    switch (name) {
    case cudaDevAttrMultiProcessorCount:
        *value = p->multiProcessorCount;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = p->major;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = p->minor;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = (int)p->sharedMemPerBlockOptin;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = (int)p->sharedMemPerBlock;
        return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = p->maxThreadsPerMultiProcessor;
        return cudaSuccess;
    case cudaDevAttrHostRegisterSupported:
        *value = p->hostRegisterSupported;
        return cudaSuccess;
    case cudaDevAttrGPUDirectRDMASupported:
        *value = fake.settings.links > 0;
        return cudaSuccess;
    default:
        fprintf(stderr, "fake_cuda: unknown device attribute %d\n", (int)name);
        return cudaErrorInvalidValue;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr name,
                                   int index)
{
    cudaError_t error = fake_begin("cudaDeviceGetAttribute");
    struct cudaDeviceProp properties;

    if (error == cudaSuccess && !exists(index))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess) {
        properties_fill(&properties, index);
        error = attribute(value, name, &properties);
    }
    return fake_end(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int index)
{
    cudaError_t error = fake_begin("cudaDeviceGetPCIBusId");

    if (error == cudaSuccess && !exists(index))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        snprintf(id, (size_t)bytes, "0000:%02X:00.0",
                 (unsigned)(1 + fake_number(index)));
    return fake_end(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int index, int peer)
{
    cudaError_t error = fake_begin("cudaDeviceCanAccessPeer");

    if (error == cudaSuccess && (!exists(index) || !exists(peer)))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        *can = index != peer && fake.settings.links > 0;
    return fake_end(error);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr name,
                                      int index, int peer)
{
    cudaError_t error = fake_begin("cudaDeviceGetP2PAttribute");

    if (error == cudaSuccess &&
        (!exists(index) || !exists(peer) || index == peer))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess && name != cudaDevP2PAttrNativeAtomicSupported)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *value = fake.settings.links > 1;
    return fake_end(error);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t error = fake_begin("cudaDeviceGetStreamPriorityRange");

    if (error == cudaSuccess) {
        *least = 0;
        *greatest = -5;
    }
    return fake_end(error);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = fake_begin_plain("cudaDeviceSynchronize");

    if (error == cudaSuccess)
        error = fake_run(fake_current(), NULL, NULL);
    return fake_end(error);
}

/* ---- errors -------------------------------------------------------------- */

cudaError_t cudaGetLastError(void)
{
    return fake_last(true);
}

cudaError_t cudaPeekAtLastError(void)
{
    return fake_last(false);
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice",
     "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice",
     "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorHostMemoryAlreadyRegistered,
     "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

static size_t error_find(cudaError_t error)
{
    size_t i = 0;

    while (i + 1 < sizeof errors / sizeof *errors && errors[i].error != error)
        i++;
    return i;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return errors[error_find(error)].name;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return errors[error_find(error)].text;
}
