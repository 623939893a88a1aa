/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A step allocates nothing: calls of the allocator are counted. Allocations
 * inside oneDNN (lists of arguments, packing buffers of its matrix product)
 * cannot be avoided here; they are recognised by the caller's address and not
 * counted. The test is skipped under the address and thread sanitizers, which
 * have their own allocator.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static bool counting;
static long allocations; /* counted allocations, without those of oneDNN */

#if COUNTING
/* The functions of glibc that this program's malloc and related functions call.
 */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static void count(const void *caller)
{
    Dl_info info;

    if (!counting)
        return;
    if (dladdr(caller, &info) != 0 &&
        (strstr(info.dli_fname, "libstdc++") != NULL ||
         strstr(info.dli_fname, "libdnnl") != NULL))
        return;
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    count(__builtin_return_address(0));
    *out = __libc_memalign(align, bytes);
    return *out == NULL ? ENOMEM : 0;
}
#endif

static long count_step_as(const nn_exec_config_t *config, const char *yaml)
{
    nn_graph_t *graph = fixture_graph(yaml);
    const double one = 1;
    nn_result_t result;
    err_t err = ERR_INIT;
    err_code_t rc = ERR_OK;
    fixture_t f;

    fixture_open_as(&f, graph, config, 0);
    /* The first call may set up a library's threads. */
    fixture_forward(&f);
    fixture_backward(&f, 1, false);
    allocations = 0;
    counting = true;
    for (int i = 0; i < 3 && rc == ERR_OK; i++) {
        rc = fixture_forward_losses(&f, &result, &err);
        if (rc == ERR_OK)
            rc = fixture_backward_losses(&f, &one, i > 0, &err);
    }
    counting = false;
    cr_assert_eq(rc, ERR_OK);
    fixture_close(&f);
    nn_graph_close(graph);
    return allocations;
}

static long count_step(const char *backend, const char *yaml)
{
    nn_exec_config_t config = {
        .op_backend = backend, .batch = 8, .training = true, .threads = 1};
    const long plain = count_step_as(&config, yaml);

    config.recompute = true;
    return plain + count_step_as(&config, yaml);
}

Test(exec_alloc, a_step_on_ref_allocates_nothing)
{
    /* volatile, so that the compiler does not remove the calls */
    void *volatile probe;

    if (!COUNTING)
        cr_skip_test("the sanitizer's allocator cannot be counted");
    counting = true;
    probe = malloc(1);
    counting = false;
    free(probe);
    cr_assert_eq(allocations, 1, "malloc is not counted");
    cr_expect_eq(count_step("ref", fixture_mlp), 0);
    cr_expect_eq(count_step("ref", fixture_cnn), 0);
    cr_expect_eq(count_step("ref", fixture_graph_model), 0);
    cr_expect_eq(count_step("ref", fixture_smooth), 0);
    cr_expect_eq(count_step("ref", fixture_tokens), 0);
}

Test(exec_alloc, a_step_on_cpu_allocates_nothing)
{
    if (!COUNTING)
        cr_skip_test("the sanitizer's allocator cannot be counted");
    if (!fixture_has_backend("cpu"))
        cr_skip_test("the cpu backend (oneDNN) is not built in");
    cr_expect_eq(count_step("cpu", fixture_mlp), 0);
    cr_expect_eq(count_step("cpu", fixture_cnn), 0);
    cr_expect_eq(count_step("cpu", fixture_graph_model), 0);
    cr_expect_eq(count_step("cpu", fixture_smooth), 0);
    cr_expect_eq(count_step("cpu", fixture_tokens), 0);
}
