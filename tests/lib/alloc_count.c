/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces the functions of the allocator by ones that count and then call
 * glibc's (see "Replacing malloc" in its manual). All libraries of the process
 * call these.
 */
#include "lib/alloc_count.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static _Thread_local long counted;
static _Thread_local long counted_onednn;
static _Thread_local bool inside; /* dladdr may itself allocate */

long alloc_count(void)
{
    return counted;
}

long alloc_count_onednn(void)
{
    return counted_onednn;
}

#ifdef SANITIZED

bool alloc_count_works(void)
{
    return false;
}

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t items, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* oneDNN is written in C++: its allocations come from operator new in
 * libstdc++, which no other part of our programs uses. */
static void count(const void *caller)
{
    Dl_info info;

    if (inside)
        return;
    inside = true;
    if (dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
        (strstr(info.dli_fname, "libstdc++") != NULL ||
         strstr(info.dli_fname, "libdnnl") != NULL))
        counted_onednn++;
    else
        counted++;
    inside = false;
}

bool alloc_count_works(void)
{
    return true;
}

void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(items, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(block, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *block;

    count(__builtin_return_address(0));
    block = __libc_memalign(align, bytes);
    if (block == NULL)
        return ENOMEM;
    *out = block;
    return 0;
}

#endif
