/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "dev/dev_cuda_priv.h"

/* ---- the device ---------------------------------------------------------- */

err_code_t dev_cuda_enter(const cuda_device_t *dev, err_t *err)
{
    CUDA_CHECK(cudaSetDevice(dev->index), dev->name, err);
    return ERR_OK;
}

int dev_cuda_arch(const dev_device_t *base)
{
    return ((const cuda_device_t *)base)->arch;
}

dev_cuda_guest_t *dev_cuda_guest(dev_device_t *base)
{
    cuda_device_t *dev = (cuda_device_t *)base;
    const err_code_t rc = dev_cuda_enter(dev, NULL);

    /* If it has failed, so will the call that the guest is for. */
    (void)rc;
    return &dev->guest;
}

static err_code_t index_check(int index, err_t *err)
{
    int count = 0;
    err_code_t rc = dev_cuda_count(&count, err);

    if (rc == ERR_OK && (index < 0 || index >= count))
        rc = err_set(err, ERR_UNAVAILABLE,
                     "GPU %d was asked for, but %d GPU%s visible here", index,
                     count, count == 1 ? " is" : "s are");
    return rc;
}

/* Fill [dev], and have CUDA make its context. */
static err_code_t device_start(cuda_device_t *dev, int index, err_t *err)
{
    dev_info_t info;
    err_code_t rc = index_check(index, err);

    if (rc == ERR_OK)
        rc = dev_cuda_describe(index, &info, err);
    if (rc != ERR_OK)
        return rc;
    dev->index = index;
    sscanf(info.arch, "sm_%d", &dev->arch);
    snprintf(dev->name, sizeof dev->name, "GPU %d (%s)", index, info.name);
    if (info.lacks[0] != '\0')
        return err_set(err, ERR_UNAVAILABLE, "%s: %s", dev->name, info.lacks);
    rc = dev_cuda_enter(dev, err);
    if (rc == ERR_OK)
        rc = dev_cuda_check(cudaFree(NULL), "cudaFree", dev->name, err);
    return rc;
}

static err_code_t dev_cuda_open(int index, dev_device_t **out, err_t *err)
{
    cuda_device_t *dev = NULL;
    err_code_t rc = mem_new(cuda_device_t, 1, "a GPU's state", &dev, err);

    if (rc == ERR_OK)
        rc = device_start(dev, index, err);
    /* A GPU that has failed before the run is no fault of the run. */
    if (rc == ERR_PEER) {
        rc = ERR_UNAVAILABLE;
        if (err != NULL)
            err->code = rc;
    }
    if (rc == ERR_OK)
        *out = &dev->base;
    else
        mem_free(dev);
    return rc;
}

static void dev_cuda_close(dev_device_t *base)
{
    cuda_device_t *dev = (cuda_device_t *)base;

    if (dev->guest.close != NULL)
        dev->guest.close(dev->guest.object);
    mem_free(dev);
}

/* ---- memory -------------------------------------------------------------- */

static err_code_t dev_cuda_room(dev_device_t *base, size_t *free_bytes,
                                size_t *total_bytes, err_t *err)
{
    const cuda_device_t *dev = (cuda_device_t *)base;
    err_code_t rc = dev_cuda_enter(dev, err);

    if (rc == ERR_OK)
        rc = dev_cuda_check(cudaMemGetInfo(free_bytes, total_bytes),
                            "cudaMemGetInfo", dev->name, err);
    return rc;
}

static err_code_t too_large(dev_device_t *base, size_t bytes, const char *what,
                            err_t *err)
{
    const double gib = 1.0 / (1 << 30);
    size_t free_bytes = 0, total_bytes = 0;

    cudaGetLastError(); /* or a later check would find this error again */
    if (dev_cuda_room(base, &free_bytes, &total_bytes, NULL) != ERR_OK)
        free_bytes = total_bytes = 0;
    return err_set(err, ERR_MEMORY,
                   "%.3f GiB for %s: %s has %.3f GiB free of %.3f GiB",
                   (double)bytes * gib, what, ((cuda_device_t *)base)->name,
                   (double)free_bytes * gib, (double)total_bytes * gib);
}

static cudaError_t legacy_poll(void *object)
{
    (void)object;
    return cudaStreamQuery(cudaStreamLegacy);
}

/* cudaMemset does not wait for its end, and streams do not wait for it. */
static err_code_t zero(cuda_device_t *dev, void *block, size_t bytes,
                       err_t *err)
{
    CUDA_CHECK(cudaMemset(block, 0, bytes), dev->name, err);
    return dev_cuda_poll_or(legacy_poll, NULL, dev, dev->base.look,
                            dev->base.context, err);
}

static err_code_t dev_cuda_alloc(dev_device_t *base, size_t bytes,
                                 const char *what, void **out, err_t *err)
{
    cuda_device_t *dev = (cuda_device_t *)base;
    const size_t need = bytes > 0 ? bytes : 1;
    void *block = NULL;
    cudaError_t status;
    err_code_t rc = dev_cuda_enter(dev, err);

    if (rc != ERR_OK)
        return rc;
    status = cudaMalloc(&block, need);
    if (status == cudaErrorMemoryAllocation)
        return too_large(base, bytes, what, err);
    rc = dev_cuda_check(status, "cudaMalloc", dev->name, err);
    if (rc == ERR_OK)
        rc = zero(dev, block, need, err);
    if (rc == ERR_OK)
        *out = block;
    else if (!dev_abandoned(base))
        cudaFree(block);
    return rc;
}

static void dev_cuda_free(dev_device_t *base, void *block)
{
    const err_code_t rc = dev_cuda_enter((cuda_device_t *)base, NULL);

    (void)rc;
    cudaFree(block);
}

/* ---- host memory that copies use ----------------------------------------- */

static err_code_t dev_cuda_pinned_alloc(dev_device_t *base, size_t bytes,
                                        const char *what, void **out,
                                        err_t *err)
{
    cuda_device_t *dev = (cuda_device_t *)base;
    const size_t need = bytes > 0 ? bytes : 1;
    void *block = NULL;
    cudaError_t status;
    err_code_t rc = dev_cuda_enter(dev, err);

    if (rc != ERR_OK)
        return rc;
    status = cudaHostAlloc(&block, need, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return err_set(err, ERR_MEMORY,
                       "%zu bytes of the host's memory, pinned for %s, for %s",
                       bytes, dev->name, what);
    }
    rc = dev_cuda_check(status, "cudaHostAlloc", dev->name, err);
    if (rc != ERR_OK)
        return rc;
    memset(block, 0, need);
    *out = block;
    return ERR_OK;
}

static void dev_cuda_pinned_free(dev_device_t *base, void *block)
{
    (void)base;
    cudaFreeHost(block);
}

static err_code_t dev_cuda_pin(dev_device_t *base, void *block, size_t bytes,
                               err_t *err)
{
    const cuda_device_t *dev = (cuda_device_t *)base;
    err_code_t rc = dev_cuda_enter(dev, err);

    if (rc == ERR_OK && bytes > 0)
        rc = dev_cuda_check(
            cudaHostRegister(block, bytes, cudaHostRegisterPortable),
            "cudaHostRegister", dev->name, err);
    return rc;
}

static void dev_cuda_unpin(dev_device_t *base, void *block)
{
    (void)base;
    cudaHostUnregister(block);
}

const dev_ops_t dev_cuda_ops = {
    .name = "cuda",
    .host_visible = false,
    .open = dev_cuda_open,
    .close = dev_cuda_close,
    .list = dev_cuda_list,
    .links = dev_cuda_links,
    .alloc = dev_cuda_alloc,
    .free = dev_cuda_free,
    .room = dev_cuda_room,
    .pinned_alloc = dev_cuda_pinned_alloc,
    .pinned_free = dev_cuda_pinned_free,
    .pin = dev_cuda_pin,
    .unpin = dev_cuda_unpin,
    .stream_open = dev_cuda_stream_open,
    .stream_close = dev_cuda_stream_close,
    .stream_handle = dev_cuda_stream_handle,
    .stream_wait = dev_cuda_stream_wait,
    .stream_wait_or = dev_cuda_stream_wait_or,
    .copy = dev_cuda_copy,
    .fill = dev_cuda_fill,
    .event_open = dev_cuda_event_open,
    .event_close = dev_cuda_event_close,
    .event_record = dev_cuda_event_record,
    .event_wait = dev_cuda_event_wait,
    .event_wait_or = dev_cuda_event_wait_or,
    .event_wait_on = dev_cuda_event_wait_on,
    .capture_begin = dev_cuda_capture_begin,
    .capture_end = dev_cuda_capture_end,
    .graph_launch = dev_cuda_graph_launch,
    .graph_close = dev_cuda_graph_close,
};
