/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A step allocates nothing: the allocator is counted. Not under the address or
 * thread sanitizer, which have an allocator of their own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "nn/fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTING 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTING 0
#else
#define COUNTING 1
#endif
#else
#define COUNTING 1
#endif

static long allocations;

#if COUNTING
/* glibc's own entry points, under other names. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

void *malloc(size_t bytes)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    *out = __libc_memalign(align, bytes);
    return *out == NULL ? ENOMEM : 0;
}
#endif

static long count_step(const char *backend, const char *yaml)
{
    nn_graph_t *graph = fixture_graph(yaml);
    nn_result_t result;
    err_t err = ERR_INIT;
    err_code_t code = ERR_OK;
    fixture_t f;
    long count;

    fixture_open(&f, graph, backend, 0, 8, true);
    /* The first call may set up a library's threads. */
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    count = allocations;
    for (int i = 0; i < 3 && code == ERR_OK; i++) {
        code = nn_exec_forward(f.exec, &f.batch, &result, &err);
        if (code == ERR_OK)
            code = nn_exec_backward(f.exec, &f.batch, 1, i > 0, &err);
    }
    count = allocations - count;
    cr_assert_eq(code, ERR_OK);
    fixture_close(&f);
    nn_graph_close(graph);
    return count;
}

Test(exec_alloc, a_step_on_ref_allocates_nothing)
{
    if (!COUNTING)
        cr_skip_test("the sanitizer's allocator cannot be counted");
    free(malloc(1));
    cr_assert_gt(allocations, 0, "malloc is not counted");
    cr_expect_eq(count_step("ref", fixture_mlp), 0);
    cr_expect_eq(count_step("ref", fixture_cnn), 0);
}

Test(exec_alloc, a_step_on_cpu_allocates_nothing)
{
    if (!COUNTING)
        cr_skip_test("the sanitizer's allocator cannot be counted");
    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    cr_expect_eq(count_step("cpu", fixture_mlp), 0);
    cr_expect_eq(count_step("cpu", fixture_cnn), 0);
}
