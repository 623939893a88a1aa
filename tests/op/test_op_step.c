/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The running statistics at the end of a step, on the host and on the test
 * device. They do not change after a step that is not sound. */
#include <criterion/criterion.h>
#include <string.h>

#include "dev/dev_far.h"
#include "op/op_ops.h"

enum { CHANNELS = 3 };

/* The memory of a call, which is copied to the device as a whole. */
typedef struct memory {
    op_step_t step;
    int32_t sound;
    double sums[2 * CHANNELS];
    float mean[CHANNELS], var[CHANNELS];
} memory_t;

static memory_t begin(void)
{
    return (memory_t){.step = {.samples = 2},
                      .sound = 1,
                      .sums = {4, 8, 12, 10, 34, 90},
                      .mean = {1, 1, 1},
                      .var = {1, 1, 1}};
}

static void fold(const op_backend_ops_t *backend, memory_t *at,
                 dev_stream_t *stream)
{
    const op_fold_t call = {.channels = CHANNELS,
                            .space = 1,
                            .momentum = 0.5,
                            .lone = 2,
                            .sums = at->sums,
                            .step = &at->step,
                            .sound = &at->sound,
                            .mean = at->mean,
                            .var = at->var};
    err_t err = ERR_INIT;

    cr_assert_eq(op_fold(backend, &call, stream, &err), ERR_OK);
}

static memory_t fold_on_far(const memory_t *from)
{
    const op_backend_ops_t *backend;
    dev_device_t *dev;
    dev_stream_t *stream;
    void *block;
    memory_t back;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("far", &backend, &err), ERR_OK);
    cr_assert_eq(dev_open("far", DEV_FAR_LAST_FIRST, &dev, &err), ERR_OK);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, &err),
                 ERR_OK);
    cr_assert_eq(dev_alloc(dev, sizeof *from, "a test", &block, &err), ERR_OK);
    dev_copy(stream, block, from, sizeof *from, DEV_HOST_TO_DEV, &err);
    fold(backend, block, stream);
    dev_copy(stream, &back, block, sizeof back, DEV_DEV_TO_HOST, &err);
    cr_assert_eq(dev_stream_wait(stream, &err), ERR_OK, "%s", err.text);
    dev_free(dev, block);
    dev_stream_close(stream);
    dev_close(dev);
    return back;
}

/* Fold on both devices. */
static void check(memory_t memory, bool folded)
{
    const memory_t far = fold_on_far(&memory);

    fold(&op_cpu_backend, &memory, NULL);
    cr_expect_arr_eq(far.mean, memory.mean, sizeof far.mean);
    cr_expect_arr_eq(far.var, memory.var, sizeof far.var);
    /* Channel 1: mean 4, unbiased variance 2 (17 - 16). */
    cr_expect_eq(memory.mean[1], folded ? 2.5F : 1);
    cr_expect_eq(memory.var[1], folded ? 1.5F : 1);
}

Test(op_step, sound)
{
    check(begin(), true);
}

Test(op_step, not_sound)
{
    memory_t memory = begin();

    memory.sound = 0;
    check(memory, false);
}

Test(op_step, no_samples)
{
    memory_t memory = begin();

    memory.step.samples = 0;
    check(memory, false);
}

Test(op_step, lone_value)
{
    memory_t memory = begin();

    memory.step.lone = 4;
    check(memory, true);
    memory.step.lone = 4 | 2;
    check(memory, false);
}
