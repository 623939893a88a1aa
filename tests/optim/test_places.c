/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Optimizers on the test device, in both of its orders: all is as on the host,
 * a step allocates nothing, waits nowhere, and can be replayed. */
#include <criterion/criterion.h>
#include <string.h>

#include "dev/dev_far.h"
#include "dev/dev_ops.h"
#include "lib/alloc_count.h"
#include "optim/place_checks.h"

static void on_far(void (*check_place)(const place_t *place))
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        check_place(&(place_t){"far", order});
}

Test(places, updates_have_the_bits_of_the_host)
{
    on_far(place_check_updates);
}

Test(places, groups_have_the_bits_of_the_host)
{
    on_far(place_check_groups);
}

Test(places, ranges_have_the_bits_of_the_host)
{
    on_far(place_check_ranges);
}

Test(places, norms_have_the_bits_of_the_host)
{
    on_far(place_check_norms);
}

Test(places, a_verdict_of_no_update_changes_nothing)
{
    place_check_verdicts(&(place_t){"cpu", 0});
    on_far(place_check_verdicts);
}

Test(places, a_replayed_step_is_the_step)
{
    on_far(place_check_replay);
}

static void expect_ok(err_code_t rc, const err_t *err)
{
    cr_assert_eq(rc, ERR_OK, "%s", err->text);
}

static void check_step(const place_t *place)
{
    dev_far_counts_t before, after;
    dev_device_t *dev;
    place_rig_t rig;
    err_t err = ERR_INIT;
    long allocs;

    place_rig_open(&rig, place->backend, place->index, &place_full);
    dev = rig.dev;
    for (int number = 1; number <= 2; number++)
        expect_ok(place_rig_step(&rig, number, &err), &err);
    place_rig_case(&rig, 3);
    before = dev_far_counts(dev);
    allocs = alloc_count();
    expect_ok(place_rig_write(&rig, &err), &err);
    expect_ok(place_rig_compute(&rig, &err), &err);
    expect_ok(place_rig_read(&rig, &err), &err);
    after = dev_far_counts(dev);
    cr_expect_eq(after.waits, before.waits);
    expect_ok(dev_stream_wait(rig.stream, &err), &err);
    after = dev_far_counts(dev);
    cr_expect_eq(after.allocs, before.allocs);
    if (alloc_count_works())
        cr_expect_eq(alloc_count(), allocs);
    place_rig_close(&rig);
    dev_close(dev);
}

Test(places, a_step_allocates_nothing_and_waits_nowhere)
{
    on_far(check_step);
}

/* Call number k of the device fails, for each k: the error comes through, and
 * nothing is left when the device is closed. */
static void check_errors(const place_t *place)
{
    err_code_t rc = ERR_UNAVAILABLE;
    int64_t k;

    for (k = 1; rc != ERR_OK; k++) {
        dev_device_t *dev = NULL;
        place_rig_t rig;
        err_t err = ERR_INIT;

        cr_assert_lt(k, 200);
        expect_ok(dev_open(place->backend, place->index, &dev, &err), &err);
        dev_far_fail(dev, k);
        rc = place_rig_try(&rig, dev, &place_full, &err);
        if (rc == ERR_OK)
            rc = place_rig_step(&rig, 1, &err);
        if (rc != ERR_OK) {
            cr_expect_eq(rc, ERR_UNAVAILABLE, "%s", err.text);
            cr_expect_not_null(strstr(err.text, "failed (call"), "%s",
                               err.text);
        }
        dev_far_fail(dev, 0);
        if (rig.stream != NULL)
            dev_stream_wait(rig.stream, NULL);
        place_rig_close(&rig);
        dev_close(dev);
    }
    cr_expect_gt(k, 20, "%lld calls", (long long)k);
}

Test(places, every_error_of_the_device_comes_through)
{
    on_far(check_errors);
}

Test(places, a_device_without_one_is_named)
{
    static const dev_ops_t odd = {.name = "odd"};
    dev_device_t dev = {.ops = &odd};
    optim_place_t *place = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(optim_place_open(&dev, 1, &place, &err), ERR_UNAVAILABLE);
    cr_expect_not_null(strstr(err.text, "odd"), "%s", err.text);
}
