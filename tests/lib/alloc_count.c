/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces the allocator's entry points by ones that count and call glibc's own
 * (the manual's "Replacing malloc"); all libraries of the process go through
 * them.
 */
#include "lib/alloc_count.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static _Thread_local long count;

long alloc_count(void)
{
    return count;
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

bool alloc_count_works(void)
{
    return true;
}

void *malloc(size_t bytes)
{
    count++;
    return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    count++;
    return __libc_calloc(items, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count++;
    return __libc_realloc(block, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    count++;
    return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    count++;
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *block;

    count++;
    block = __libc_memalign(align, bytes);
    if (block == NULL)
        return ENOMEM;
    *out = block;
    return 0;
}

#endif
