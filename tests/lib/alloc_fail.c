/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces posix_memalign, from which mem_alloc takes its blocks. The symbols
 * of a program come before those of its libraries, so a plugin calls this
 * function, too.
 */
#include "lib/alloc_fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

typedef int memalign_fn(void **out, size_t align, size_t bytes);

/* globals: replaced functions have no argument for them */
static _Thread_local long due; /* number of the block to refuse; 0: none */
static _Thread_local bool refused;

void alloc_fail(long number)
{
    due = number;
    refused = false;
}

bool alloc_fail_end(void)
{
    due = 0;
    return refused;
}

/* Does a block for [caller] count? Blocks for the libraries of UCX do not
 * count, as the thread may call these libraries meanwhile. */
static bool counts(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) == 0 || info.dli_fname == NULL ||
           strstr(info.dli_fname, "/libuc") == NULL;
}

memalign_fn posix_memalign;

int posix_memalign(void **out, size_t align, size_t bytes)
{
    static _Thread_local memalign_fn *next;

    if (next == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "posix_memalign");

        memcpy(&next, &symbol, sizeof symbol);
    }
    if (due > 0 && counts(__builtin_return_address(0)) && --due == 0) {
        refused = true;
        return ENOMEM;
    }
    return next(out, align, bytes);
}
