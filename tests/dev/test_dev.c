/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/dev.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "lib/facts.h"

static dev_device_t *open_cpu(void)
{
    err_t err = ERR_INIT;
    dev_device_t *dev;

    cr_assert_eq(dev_open("cpu", 0, &dev, &err), ERR_OK, "%s", err.text);
    return dev;
}

Test(dev, unknown)
{
    dev_device_t *dev = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(dev_open("abacus", 0, &dev, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "abacus", "cpu");
    cr_expect_eq(dev_open("cpu", 1, &dev, &err), ERR_UNAVAILABLE);
    cr_expect(strstr(err.text, "index 1"), "%s", err.text);
    cr_expect_null(dev);
    dev_close(NULL);
}

Test(dev, memory)
{
    dev_device_t *dev = open_cpu();
    void *block;

    cr_expect_str_eq(dev_name(dev), "cpu");
    cr_expect(dev_host_visible(dev));
    cr_assert_eq(dev_alloc(dev, 1001, "a test", &block, NULL), ERR_OK);
    cr_expect_eq((uintptr_t)block % MEM_ALIGN, 0);
    for (int i = 0; i < 1001; i++)
        cr_assert_eq(((char *)block)[i], 0);
    dev_free(dev, block);
    dev_free(dev, NULL);
    dev_close(dev);
}

Test(dev, host_memory)
{
    dev_device_t *dev = open_cpu();
    size_t free_bytes = 0, total_bytes = 0;
    char own[100];
    void *block;

    cr_assert_eq(dev_pinned_alloc(dev, 1001, "a test", &block, NULL), ERR_OK);
    cr_expect_eq((uintptr_t)block % MEM_ALIGN, 0);
    cr_expect_eq(((char *)block)[1000], 0);
    dev_pinned_free(dev, block);
    dev_pinned_free(dev, NULL);
    cr_expect_eq(dev_pin(dev, own, sizeof own, NULL), ERR_OK);
    dev_unpin(dev, own);
    dev_unpin(dev, NULL);
    cr_expect_eq(dev_room(dev, &free_bytes, &total_bytes, NULL), ERR_OK);
    cr_expect_gt(free_bytes, (size_t)1 << 20);
    cr_expect_leq(free_bytes, total_bytes);
    dev_close(dev);
}

Test(dev, no_capture)
{
    dev_device_t *dev = open_cpu();
    dev_stream_t *stream;
    err_t err = ERR_INIT;

    cr_expect_not(dev_can_capture(dev));
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, NULL),
                 ERR_OK);
    cr_expect_eq(dev_capture_begin(stream, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "cpu", "capture");
    dev_stream_close(stream);
    dev_close(dev);
}

/* Option of AddressSanitizer: by default it ends the program at an allocation
 * that cannot succeed. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

Test(dev, too_much_memory)
{
    dev_device_t *dev = open_cpu();
    err_t err = ERR_INIT;
    void *block = NULL;

    cr_expect_eq(dev_alloc(dev, SIZE_MAX / 2, "the moon", &block, &err),
                 ERR_MEMORY);
    cr_expect(strstr(err.text, "the moon"), "%s", err.text);
    cr_expect_null(block);
    dev_close(dev);
}

Test(dev, stream)
{
    dev_device_t *dev = open_cpu();
    dev_stream_t *stream, *other;
    dev_event_t *event;
    char from[] = "forty-two", to[sizeof from] = "";

    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, NULL),
                 ERR_OK);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &other, NULL),
                 ERR_OK);
    cr_assert_eq(dev_event_open(dev, &event, NULL), ERR_OK);
    cr_expect_eq(dev_copy(stream, to, from, sizeof from, DEV_HOST_TO_DEV, NULL),
                 ERR_OK);
    cr_expect_eq(dev_event_record(event, stream, NULL), ERR_OK);
    cr_expect_eq(dev_event_wait_on(event, other, NULL), ERR_OK);
    cr_expect_eq(dev_event_wait(event, NULL), ERR_OK);
    cr_expect_str_eq(to, from);
    cr_expect_eq(dev_fill(other, to, 'x', 3, NULL), ERR_OK);
    cr_expect_eq(dev_fill(other, NULL, 'x', 0, NULL), ERR_OK);
    cr_expect_eq(dev_stream_wait(other, NULL), ERR_OK);
    cr_expect_str_eq(to, "xxxty-two");
    dev_event_close(event);
    dev_event_close(NULL);
    dev_stream_close(stream);
    dev_stream_close(other);
    dev_stream_close(NULL);
    dev_close(dev);
}
