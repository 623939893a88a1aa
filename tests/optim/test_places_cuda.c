/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Optimizers on the emulated device "cuda": all is as on the host, whatever the
 * order in which threads and streams run. */
#include <criterion/criterion.h>

#include "cuda/emu.h"
#include "dev/dev_far.h"
#include "optim/place_checks.h"

#define SCHEDULES 5 /* SIMT_SCHEDULES, whose header needs CUDA's */

static const place_t gpu = {"cuda", 0};

static void expect_ok(err_code_t rc, const err_t *err)
{
    cr_assert_eq(rc, ERR_OK, "%s", err->text);
}

Test(places_cuda, updates_have_the_bits_of_the_host)
{
    const fake_cuda_t *fake = emu_open();

    for (int schedule = 0; schedule < SCHEDULES; schedule++) {
        emu_set(fake, schedule, schedule);
        place_check_updates(&gpu);
    }
    cr_expect_gt(fake->counts().kernels, 1000);
}

Test(places_cuda, groups_have_the_bits_of_the_host)
{
    emu_open();
    place_check_groups(&gpu);
}

Test(places_cuda, ranges_have_the_bits_of_the_host)
{
    const fake_cuda_t *fake = emu_open();

    for (int order = 0; order < DEV_FAR_ORDERS; order++) {
        emu_set(fake, order, order);
        place_check_ranges(&gpu);
    }
}

Test(places_cuda, norms_have_the_bits_of_the_host)
{
    const fake_cuda_t *fake = emu_open();

    for (int schedule = 0; schedule < SCHEDULES; schedule++) {
        emu_set(fake, schedule, schedule);
        place_check_norms(&gpu);
    }
}

Test(places_cuda, a_verdict_of_no_update_changes_nothing)
{
    emu_open();
    place_check_verdicts(&gpu);
}

Test(places_cuda, a_replayed_step_is_the_step)
{
    const fake_cuda_t *fake = emu_open();

    place_check_replay(&gpu);
    cr_expect_gt(fake->counts().graphs, 10);
}

Test(places_cuda, a_step_allocates_nothing_and_waits_nowhere)
{
    const fake_cuda_t *fake = emu_open();
    fake_cuda_counts_t before, after;
    dev_device_t *dev;
    place_rig_t rig;
    err_t err = ERR_INIT;

    place_rig_open(&rig, "cuda", 0, &place_full);
    dev = rig.dev;
    expect_ok(place_rig_step(&rig, 1, &err), &err);
    place_rig_case(&rig, 2);
    before = fake->counts();
    expect_ok(place_rig_write(&rig, &err), &err);
    expect_ok(place_rig_compute(&rig, &err), &err);
    expect_ok(place_rig_read(&rig, &err), &err);
    after = fake->counts();
    cr_expect_eq(after.waits, before.waits);
    expect_ok(dev_stream_wait(rig.stream, &err), &err);
    cr_expect_eq(fake->counts().allocs, before.allocs);
    place_rig_close(&rig);
    dev_close(dev);
}

/* Returns the result of a step on a new device whose call number [k] fails. */
static err_code_t step_failing(const fake_cuda_t *fake, int64_t k, err_t *err)
{
    dev_device_t *dev = NULL;
    place_rig_t rig = {.dev = NULL};
    err_code_t rc;

    emu_set(fake, fail, k);
    rc = dev_open("cuda", 0, &dev, err);
    if (rc != ERR_OK)
        return rc;
    rc = place_rig_try(&rig, dev, &place_full, err);
    if (rc == ERR_OK)
        rc = place_rig_step(&rig, 1, err);
    emu_set(fake, fail, 0);
    if (rig.stream != NULL)
        dev_stream_wait(rig.stream, NULL);
    place_rig_close(&rig);
    dev_close(dev);
    return rc;
}

/* Call number k of CUDA fails, for each k: the error comes through, and nothing
 * is left open. */
Test(places_cuda, every_error_of_cuda_comes_through)
{
    const fake_cuda_t *fake = emu_open();
    int64_t k = 0, failed = 0;
    err_code_t rc;

    do {
        const int64_t calls = fake->counts().calls + ++k;
        err_t err = ERR_INIT;

        rc = step_failing(fake, k, &err);
        if (rc != ERR_OK) {
            cr_expect_neq(err.text[0], 0, "call %lld", (long long)k);
            failed++;
        }
        cr_expect_eq(fake->counts().bytes, 0, "call %lld", (long long)k);
        cr_expect_eq(fake->counts().objects, 0, "call %lld", (long long)k);
        if (fake->counts().calls < calls)
            break;
    } while (k < 500);
    cr_expect_lt(k, 500);
    cr_expect_gt(failed, 30, "%lld of %lld", (long long)failed, (long long)k);
}
