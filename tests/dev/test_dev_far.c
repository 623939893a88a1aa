/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/dev_far.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define COUNT 100

/* A far device with two streams, two events and a block of COUNT floats. */
typedef struct rig {
    dev_device_t *dev;
    dev_stream_t *compute, *copies;
    dev_event_t *ready, *used;
    float *block;
} rig_t;

static rig_t rig_open(int order)
{
    err_t err = ERR_INIT;
    rig_t rig;
    void *block;

    cr_assert_eq(dev_open("far", order, &rig.dev, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(
        dev_stream_open(rig.dev, DEV_STREAM_COMPUTE, &rig.compute, &err),
        ERR_OK);
    cr_assert_eq(dev_stream_open(rig.dev, DEV_STREAM_COPY, &rig.copies, &err),
                 ERR_OK);
    cr_assert_eq(dev_event_open(rig.dev, &rig.ready, &err), ERR_OK);
    cr_assert_eq(dev_event_open(rig.dev, &rig.used, &err), ERR_OK);
    cr_assert_eq(
        dev_alloc(rig.dev, COUNT * sizeof(float), "a test", &block, &err),
        ERR_OK);
    rig.block = block;
    return rig;
}

static void rig_close(rig_t *rig)
{
    err_t err = ERR_INIT;

    cr_expect_eq(dev_stream_wait(rig->copies, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(dev_stream_wait(rig->compute, &err), ERR_OK, "%s", err.text);
    dev_event_close(rig->ready);
    dev_event_close(rig->used);
    dev_stream_close(rig->compute);
    dev_stream_close(rig->copies);
    dev_free(rig->dev, rig->block);
    dev_close(rig->dev);
}

static void to_device(rig_t *rig, dev_stream_t *stream, const float *from)
{
    cr_assert_eq(dev_copy(stream, rig->block, from, COUNT * sizeof *from,
                          DEV_HOST_TO_DEV, NULL),
                 ERR_OK);
}

static void to_host(rig_t *rig, dev_stream_t *stream, float *to)
{
    cr_assert_eq(dev_copy(stream, to, rig->block, COUNT * sizeof *to,
                          DEV_DEV_TO_HOST, NULL),
                 ERR_OK);
}

static void numbers(float *out, float first)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = first + (float)i;
}

/* A kernel: block[i] = 2 block[i]. */
static err_code_t twice(void *arg, err_t *err)
{
    float *block = *(float **)arg;

    (void)err;
    for (int i = 0; i < COUNT; i++)
        block[i] *= 2;
    return ERR_OK;
}

static void enqueue_twice(rig_t *rig, dev_stream_t *stream)
{
    cr_assert_eq(
        dev_far_enqueue(stream, twice, &rig->block, sizeof rig->block, NULL),
        ERR_OK);
}

ParameterizedTestParameters(far, order)
{
    static int orders[] = {DEV_FAR_LAST_FIRST, DEV_FAR_NEEDED_ONLY};

    return cr_make_param_array(int, orders, DEV_FAR_ORDERS);
}

/* One stream executes in order, when it is waited for. */
ParameterizedTest(const int *order, far, order)
{
    rig_t rig = rig_open(*order);
    float from[COUNT], to[COUNT] = {0};

    cr_expect_str_eq(dev_name(rig.dev), "far");
    cr_expect_not(dev_host_visible(rig.dev));
    numbers(from, 1);
    to_device(&rig, rig.compute, from);
    enqueue_twice(&rig, rig.compute);
    to_host(&rig, rig.compute, to);
    cr_expect(isnan(to[0]) && isnan(to[COUNT - 1]), "read before the wait");
    cr_assert_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(to[i], 2 * from[i]);
    cr_expect_eq(dev_fill(rig.compute, rig.block, 0, sizeof from, NULL),
                 ERR_OK);
    cr_expect_eq(dev_fill(rig.compute, NULL, 0, 0, NULL), ERR_OK);
    to_host(&rig, rig.compute, to);
    cr_assert_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(to[i], 0);
    rig_close(&rig);
}

/* One stream copies numbers to the device, the other computes with them, then
 * the first overwrites them. Two events keep this order; [forgotten] names one
 * that is left out. Returns whether the results are right. */
enum { FORGET_NOTHING, FORGET_READY, FORGET_USED };

static bool pipeline_right(int order, int forgotten)
{
    rig_t rig = rig_open(order);
    float first[COUNT], second[COUNT], one[COUNT], two[COUNT];
    bool right = true;

    numbers(first, 1);
    numbers(second, 1000);
    to_device(&rig, rig.copies, first);
    dev_event_record(rig.ready, rig.copies, NULL);
    if (forgotten != FORGET_READY)
        dev_event_wait_on(rig.ready, rig.compute, NULL);
    enqueue_twice(&rig, rig.compute);
    to_host(&rig, rig.compute, one);
    dev_event_record(rig.used, rig.compute, NULL);
    if (forgotten != FORGET_USED)
        dev_event_wait_on(rig.used, rig.copies, NULL);
    to_device(&rig, rig.copies, second);
    to_host(&rig, rig.copies, two);
    cr_assert_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    cr_assert_eq(dev_stream_wait(rig.copies, NULL), ERR_OK);
    for (int i = 0; i < COUNT; i++)
        right = right && one[i] == 2 * first[i] && two[i] == second[i];
    rig_close(&rig);
    return right;
}

Test(far, events)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        cr_expect(pipeline_right(order, FORGET_NOTHING), "order %d", order);
}

Test(far, forgotten_event)
{
    cr_expect_not(pipeline_right(DEV_FAR_LAST_FIRST, FORGET_READY));
    cr_expect_not(pipeline_right(DEV_FAR_NEEDED_ONLY, FORGET_READY));
    cr_expect_not(pipeline_right(DEV_FAR_LAST_FIRST, FORGET_USED));
}

/* The host changes numbers before the copy has read them. */
Test(far, source_changed_too_early)
{
    rig_t rig = rig_open(DEV_FAR_NEEDED_ONLY);
    float from[COUNT], to[COUNT];

    numbers(from, 1);
    to_device(&rig, rig.compute, from);
    numbers(from, 7);
    to_host(&rig, rig.compute, to);
    cr_assert_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    cr_expect_eq(to[0], 7);
    rig_close(&rig);
}

/* A wait for an event runs what is before it, and with DEV_FAR_NEEDED_ONLY
 * nothing else. */
Test(far, host_waits_for_event)
{
    rig_t rig = rig_open(DEV_FAR_NEEDED_ONLY);
    float from[COUNT], one[COUNT], two[COUNT];

    cr_expect_eq(dev_event_wait(rig.ready, NULL), ERR_OK, "never recorded");
    numbers(from, 1);
    to_device(&rig, rig.copies, from);
    to_host(&rig, rig.copies, one);
    dev_event_record(rig.ready, rig.copies, NULL);
    to_host(&rig, rig.copies, two);
    cr_assert_eq(dev_event_wait(rig.ready, NULL), ERR_OK);
    cr_expect_eq(one[5], from[5]);
    cr_expect(isnan(two[5]));
    rig_close(&rig);
}

/* Does an access to [at] end the process? */
static bool touch_ends(float *at)
{
    int status;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        /* Else a sanitizer would end the child with a status of its own. */
        signal(SIGSEGV, SIG_DFL);
        *(volatile float *)at += 1;
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

Test(far, host_access_ends_the_process)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);

    cr_expect(touch_ends(rig.block), "before any operation");
    enqueue_twice(&rig, rig.compute);
    cr_assert_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    cr_expect(touch_ends(rig.block), "after an operation");
    rig_close(&rig);
}

/* The page behind the block cannot be written by a kernel either. */
static err_code_t write_behind(void *arg, err_t *err)
{
    (void)err;
    *(volatile char *)(*(char **)arg + mem_round(COUNT * sizeof(float))) = 1;
    return ERR_OK;
}

Test(far, kernel_writes_behind_its_block)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    int status;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        dev_far_enqueue(rig.compute, write_behind, &rig.block, sizeof rig.block,
                        NULL);
        dev_stream_wait(rig.compute, NULL);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    rig_close(&rig);
}

static err_code_t fails(void *arg, err_t *err)
{
    return err_set(err, ERR_UNAVAILABLE, "kernel %d failed", *(int *)arg);
}

/* An error stays: the wait returns it, and so do all later calls. */
Test(far, kernel_fails)
{
    const int number = 7;
    err_t err = ERR_INIT;
    rig_t rig = rig_open(DEV_FAR_NEEDED_ONLY);

    cr_expect_eq(
        dev_far_enqueue(rig.compute, fails, &number, sizeof number, &err),
        ERR_OK);
    enqueue_twice(&rig, rig.copies);
    cr_expect_eq(dev_event_record(rig.ready, rig.copies, &err), ERR_OK);
    cr_expect_eq(dev_stream_wait(rig.compute, &err), ERR_UNAVAILABLE);
    cr_expect(strstr(err.text, "kernel 7"), "%s", err.text);
    err = (err_t)ERR_INIT;
    cr_expect_eq(dev_fill(rig.copies, rig.block, 0, 4, &err), ERR_UNAVAILABLE);
    cr_expect(strstr(err.text, "kernel 7"), "%s", err.text);
    cr_expect_eq(dev_event_wait(rig.ready, NULL), ERR_UNAVAILABLE);
    dev_event_close(rig.ready);
    dev_event_close(rig.used);
    dev_stream_close(rig.compute);
    dev_stream_close(rig.copies);
    dev_free(rig.dev, rig.block);
    dev_close(rig.dev);
}

/* Call number k fails, and only it. */
Test(far, call_fails)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    err_t err = ERR_INIT;
    void *block = NULL;
    dev_far_counts_t before = dev_far_counts(rig.dev);

    dev_far_fail(rig.dev, 2);
    cr_expect_eq(dev_fill(rig.compute, rig.block, 0, 4, &err), ERR_OK);
    cr_expect_eq(dev_alloc(rig.dev, 4, "a test", &block, &err),
                 ERR_UNAVAILABLE);
    cr_expect(strstr(err.text, "dev_alloc"), "%s", err.text);
    cr_expect_null(block);
    cr_expect_eq(dev_stream_wait(rig.compute, &err), ERR_OK);
    cr_expect_eq(dev_far_counts(rig.dev).calls, before.calls + 3);
    cr_expect_eq(dev_far_counts(rig.dev).waits, before.waits + 1);
    cr_expect_eq(dev_far_counts(rig.dev).allocs, before.allocs + 1);
    rig_close(&rig);
}

Test(far, room)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    size_t free_bytes, total_bytes;
    err_t err = ERR_INIT;
    void *block = NULL;

    dev_far_room(rig.dev, 4096);
    cr_expect_eq(dev_room(rig.dev, &free_bytes, &total_bytes, NULL), ERR_OK);
    cr_expect_eq(total_bytes, 4096);
    cr_expect_eq(free_bytes, 4096 - COUNT * sizeof(float));
    cr_expect_eq(dev_alloc(rig.dev, 4000, "the moon", &block, &err),
                 ERR_MEMORY);
    cr_expect(strstr(err.text, "the moon"), "%s", err.text);
    cr_expect_null(block);
    rig_close(&rig);
}

/* Copies from and to host memory are counted, unless it is pinned. */
Test(far, pinned)
{
    rig_t rig = rig_open(DEV_FAR_LAST_FIRST);
    float plain[COUNT];
    void *block;

    cr_assert_eq(
        dev_pinned_alloc(rig.dev, sizeof plain, "a test", &block, NULL),
        ERR_OK);
    cr_expect_eq(((float *)block)[COUNT - 1], 0);
    to_device(&rig, rig.copies, block);
    cr_expect_eq(dev_far_counts(rig.dev).unpinned, 0);
    to_host(&rig, rig.copies, plain);
    cr_expect_eq(dev_far_counts(rig.dev).unpinned, 1);
    cr_assert_eq(dev_pin(rig.dev, plain, sizeof plain, NULL), ERR_OK);
    to_host(&rig, rig.copies, plain);
    cr_expect_eq(dev_far_counts(rig.dev).unpinned, 1);
    cr_assert_eq(dev_stream_wait(rig.copies, NULL), ERR_OK);
    dev_unpin(rig.dev, plain);
    to_host(&rig, rig.copies, plain);
    cr_expect_eq(dev_far_counts(rig.dev).unpinned, 2);
    cr_assert_eq(dev_stream_wait(rig.copies, NULL), ERR_OK);
    dev_pinned_free(rig.dev, block);
    rig_close(&rig);
}

Test(far, unknown_order)
{
    dev_device_t *dev = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(dev_open("far", DEV_FAR_ORDERS, &dev, &err), ERR_UNAVAILABLE);
    cr_expect(strstr(err.text, "index 2"), "%s", err.text);
    cr_expect_eq(dev_open("far", -1, &dev, &err), ERR_UNAVAILABLE);
    cr_expect_null(dev);
}
