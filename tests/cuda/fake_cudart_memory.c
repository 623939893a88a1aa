/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Device memory that the process may access only while a stream runs, filled
 * with NaN at first, and pinned memory of the host.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "fake_cudart.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* Addresses of cudaMalloc are multiples of it. */
#define ALIGN 256
/* Larger blocks are not filled, since most tests use little of them. */
#define FILL_MOST ((size_t)1 << 30)

struct fake_block {
    fake_block_t *next;
    char *map;    /* [pages] bytes, then a page that nobody may access */
    size_t pages; /* bytes */
    char *data;   /* at the end of these, but for alignment */
    size_t bytes;
};

typedef struct pin {
    struct pin *next;
    char *at;
    size_t bytes;
    bool owned; /* allocated here */
} pin_t;

static pin_t *pins; /* under the lock of all calls */

/* ---- blocks -------------------------------------------------------------- */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void block_show(const fake_block_t *block, bool shown)
{
    if (mprotect(block->map, block->pages,
                 shown ? PROT_READ | PROT_WRITE : PROT_NONE) == 0)
        return;
    perror("fake_cuda: mprotect");
    abort();
}

void fake_memory_show(fake_device_t *dev, bool shown)
{
    if (dev->shown == shown)
        return;
    for (const fake_block_t *b = dev->blocks; b != NULL; b = b->next)
        block_show(b, shown);
    dev->shown = shown;
}

static bool inside(const void *at, size_t bytes, const char *data, size_t size)
{
    const uintptr_t first = (uintptr_t)data, from = (uintptr_t)at;

    return from >= first && from - first <= size &&
           bytes <= size - (from - first);
}

bool fake_memory_has(const void *at, size_t bytes)
{
    for (int i = 0; i < FAKE_DEVICES; i++)
        for (const fake_block_t *b = fake.device[i].blocks; b != NULL;
             b = b->next)
            if (inside(at, bytes, b->data, b->bytes))
                return true;
    return false;
}

static cudaError_t block_map(fake_device_t *dev, size_t bytes, void **out)
{
    const size_t page = page_bytes();
    const size_t need = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    fake_block_t *block = calloc(1, sizeof *block);

    if (block == NULL)
        return cudaErrorMemoryAllocation;
    block->bytes = bytes;
    block->pages = (need + page - 1) / page * page;
    block->map = mmap(NULL, block->pages + page, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->map == MAP_FAILED) {
        free(block);
        return cudaErrorMemoryAllocation;
    }
    block->data = block->map + block->pages - need;
    block_show(block, true);
    if (bytes <= FILL_MOST)
        memset(block->data, 0xff, need);
    /* What lies between the last byte and the page behind the block. */
    ASAN_POISON_MEMORY_REGION(block->data + bytes, need - bytes);
    block_show(block, dev->shown);
    block->next = dev->blocks;
    dev->blocks = block;
    dev->bytes += bytes;
    fake.counts.bytes += (int64_t)bytes;
    *out = block->data;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    cudaError_t error = fake_begin_plain("cudaMalloc");
    fake_device_t *dev = fake_current();

    fake.counts.allocs++;
    if (error == cudaSuccess && bytes == 0) {
        *out = NULL;
    } else if (error == cudaSuccess) {
        if (bytes > (size_t)fake.settings.memory ||
            dev->bytes > (size_t)fake.settings.memory - bytes)
            error = cudaErrorMemoryAllocation;
        else
            error = block_map(dev, bytes, out);
    }
    return fake_end(error);
}

static void block_unmap(fake_device_t *dev, fake_block_t **at)
{
    fake_block_t *block = *at;

    *at = block->next;
    dev->bytes -= block->bytes;
    fake.counts.bytes -= (int64_t)block->bytes;
    ASAN_UNPOISON_MEMORY_REGION(block->map, block->pages);
    munmap(block->map, block->pages + page_bytes());
    free(block);
}

/* Where the list has the block that begins at [data]. */
static fake_block_t **block_find(const void *data, fake_device_t **dev)
{
    for (int i = 0; i < FAKE_DEVICES; i++) {
        fake_block_t **at = &fake.device[i].blocks;

        for (; *at != NULL; at = &(*at)->next)
            if ((*at)->data == (const char *)data) {
                *dev = &fake.device[i];
                return at;
            }
    }
    return NULL;
}

cudaError_t cudaFree(void *data)
{
    cudaError_t error = fake_begin_plain("cudaFree");
    fake_device_t *dev = NULL;
    fake_block_t **at = data == NULL ? NULL : block_find(data, &dev);

    if (error == cudaSuccess && data != NULL && at == NULL)
        error = cudaErrorInvalidValue;
    /* It waits for all that the device has to do. */
    if (error == cudaSuccess && at != NULL)
        error = fake_run(dev, NULL, NULL);
    if (at != NULL)
        block_unmap(dev, at);
    return fake_end(error);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    cudaError_t error = fake_begin("cudaMemGetInfo");

    if (error == cudaSuccess) {
        *total_bytes = (size_t)fake.settings.memory;
        *free_bytes = *total_bytes - fake_current()->bytes;
    }
    return fake_end(error);
}

/* ---- pinned memory ------------------------------------------------------- */

static pin_t **pin_find(const void *at)
{
    pin_t **pin = &pins;

    while (*pin != NULL && (*pin)->at != (const char *)at)
        pin = &(*pin)->next;
    return pin;
}

static bool overlaps(const char *at, size_t bytes)
{
    for (const pin_t *pin = pins; pin != NULL; pin = pin->next)
        if (at < pin->at + pin->bytes && pin->at < at + bytes)
            return true;
    return false;
}

bool fake_memory_pinned(const void *at, size_t bytes)
{
    for (const pin_t *pin = pins; pin != NULL; pin = pin->next)
        if (inside(at, bytes, pin->at, pin->bytes))
            return true;
    return false;
}

static cudaError_t pin_add(void *at, size_t bytes, bool owned)
{
    pin_t *pin = calloc(1, sizeof *pin);

    if (pin == NULL)
        return cudaErrorMemoryAllocation;
    *pin = (pin_t){pins, at, bytes, owned};
    pins = pin;
    fake.counts.objects++;
    return cudaSuccess;
}

static void pin_remove(pin_t **at)
{
    pin_t *pin = *at;

    *at = pin->next;
    fake.counts.objects--;
    if (pin->owned)
        free(pin->at);
    free(pin);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    cudaError_t error = fake_begin_plain("cudaHostAlloc");
    void *at = NULL;

    (void)flags;
    fake.counts.allocs++;
    if (error == cudaSuccess && posix_memalign(&at, page_bytes(), bytes) != 0)
        error = cudaErrorMemoryAllocation;
    if (error == cudaSuccess)
        error = pin_add(at, bytes, true);
    if (error == cudaSuccess) {
        memset(at, 0xff, bytes);
        *out = at;
    } else {
        free(at);
    }
    return fake_end(error);
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *data)
{
    cudaError_t error = fake_begin_plain("cudaFreeHost");
    pin_t **pin = pin_find(data);

    if (error == cudaSuccess && data != NULL &&
        (*pin == NULL || !(*pin)->owned))
        error = cudaErrorInvalidValue;
    for (int i = 0; i < FAKE_DEVICES && error == cudaSuccess; i++)
        error = fake_run(&fake.device[i], NULL, NULL);
    if (*pin != NULL && (*pin)->owned)
        pin_remove(pin);
    return fake_end(error);
}

cudaError_t cudaHostRegister(void *data, size_t bytes, unsigned flags)
{
    cudaError_t error = fake_begin_plain("cudaHostRegister");

    (void)flags;
    if (error == cudaSuccess && (data == NULL || bytes == 0))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && overlaps(data, bytes))
        error = cudaErrorHostMemoryAlreadyRegistered;
    if (error == cudaSuccess)
        error = pin_add(data, bytes, false);
    return fake_end(error);
}

cudaError_t cudaHostUnregister(void *data)
{
    cudaError_t error = fake_begin_plain("cudaHostUnregister");
    pin_t **pin = pin_find(data);

    if (error == cudaSuccess && (*pin == NULL || (*pin)->owned))
        error = cudaErrorHostMemoryNotRegistered;
    if (*pin != NULL && !(*pin)->owned)
        pin_remove(pin);
    return fake_end(error);
}
