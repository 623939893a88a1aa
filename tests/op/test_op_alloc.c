/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A step allocates nothing. This program replaces malloc and related
 * functions, and counts the calls of the calling thread in forward and
 * backward of every case, after a warm-up. Our own code makes none. oneDNN
 * allocates a few small maps of arguments in each execute, which its interface
 * cannot avoid, and buffers for gemm where it has no kernel of its own
 * (unusual convolutions; many more without AVX-512). The number of these calls
 * must be equal in every step, all must be freed, and they must be small where
 * oneDNN has kernels.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "op_rig.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if SANITIZED

Test(op_alloc, none)
{
    cr_skip_test("a sanitizer owns malloc; run this test without");
}

#else

/* Largest allocation accepted of oneDNN where it has kernels, in bytes. */
#define SMALL 512
#define CALLS_MAX 1024

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *block);

typedef struct watch {
    bool on;
    int calls, frees;
    size_t largest;
    const void *callers[CALLS_MAX];
} watch_t;

static _Thread_local watch_t watch;

static void watch_note(size_t bytes, const void *caller)
{
    if (!watch.on)
        return;
    if (watch.calls < CALLS_MAX)
        watch.callers[watch.calls] = caller;
    watch.calls++;
    if (bytes > watch.largest)
        watch.largest = bytes;
}

void *malloc(size_t bytes)
{
    watch_note(bytes, __builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    watch_note(count * bytes, __builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    watch_note(bytes, __builtin_return_address(0));
    return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    watch_note(bytes, __builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    watch_note(bytes, __builtin_return_address(0));
    *out = __libc_memalign(alignment, bytes);
    return *out == NULL ? ENOMEM : 0;
}

void free(void *block)
{
    watch.frees += watch.on && block != NULL;
    __libc_free(block);
}

/* Is the code at [caller] in oneDNN, or in C++'s operator new, which only
 * oneDNN uses here? */
static bool is_library(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) != 0 &&
           (strstr(info.dli_fname, "libstdc++") != NULL ||
            strstr(info.dli_fname, "libdnnl") != NULL);
}

/* Is it certain that oneDNN uses no gemm for this case? */
static bool has_kernel(const op_case_t *test)
{
#if defined(__x86_64__)
    return test->config.kind != OP_CONV2D &&
           test->config.kind != OP_CONV_TRANSPOSE &&
           __builtin_cpu_supports("avx512bw");
#else
    (void)test;
    return false;
#endif
}

static void step(op_rig_t *rig)
{
    op_rig_forward(rig);
    if (rig->config.training)
        op_rig_backward(rig);
}

static void check_case(const op_case_t *test, const char *backend)
{
    int calls = -1;
    op_rig_t rig;

    op_rig_open(&rig, test, backend, OP_FLOAT32, 1);
    step(&rig);
    for (int turn = 0; turn < 3; turn++) {
        watch = (watch_t){.on = true};
        step(&rig);
        watch.on = false;
        cr_assert(calls < 0 || watch.calls == calls,
                  "%s: %d allocations in one step, %d in another", test->name,
                  calls, watch.calls);
        calls = watch.calls;
        cr_assert_eq(watch.frees, calls, "%s: %d allocated, %d freed",
                     test->name, calls, watch.frees);
        cr_expect(!has_kernel(test) || watch.largest <= SMALL,
                  "%s: oneDNN allocates %zu bytes", test->name, watch.largest);
        for (int i = 0; i < calls && i < CALLS_MAX; i++)
            cr_assert(is_library(watch.callers[i]), "%s: our code allocates",
                      test->name);
    }
    op_rig_close(&rig);
}

Test(op_alloc, watch_sees)
{
    /* volatile, so that the compiler does not remove the call */
    void *(*volatile get)(size_t) = malloc;
    void (*volatile give)(void *) = free;

    watch = (watch_t){.on = true};
    give(get(1000));
    watch.on = false;
    cr_assert_eq(watch.calls, 1, "%d", watch.calls);
    cr_assert_eq(watch.frees, 1);
    cr_assert_eq(watch.largest, 1000);
    cr_assert_not(is_library(watch.callers[0]));
}

Test(op_alloc, cpu)
{
    for (int i = 0; i < op_case_count; i++)
        check_case(&op_cases[i], "cpu");
}

Test(op_alloc, ref)
{
    for (int i = 0; i < op_case_count; i++)
        check_case(&op_cases[i], "ref");
}

#endif
