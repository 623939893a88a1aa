/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Optimizers on a GPU: all is as on the host, bit by bit. Skipped without a
 * GPU. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "optim/place_checks.h"

static void on_gpu(void (*check_place)(const place_t *place))
{
    dev_device_t *dev = NULL;
    err_t err = ERR_INIT;

    setenv("CDDP_CUDA_PLUGIN", GPU_PLUGIN, 1);
    if (dev_open("cuda", 0, &dev, &err) != ERR_OK)
        cr_skip_test("%s", err.text);
    check_place(&(place_t){"cuda", 0});
    dev_close(dev);
}

Test(places_gpu, updates_have_the_bits_of_the_host)
{
    on_gpu(place_check_updates);
}

Test(places_gpu, groups_have_the_bits_of_the_host)
{
    on_gpu(place_check_groups);
}

Test(places_gpu, ranges_have_the_bits_of_the_host)
{
    on_gpu(place_check_ranges);
}

Test(places_gpu, norms_have_the_bits_of_the_host)
{
    on_gpu(place_check_norms);
}

Test(places_gpu, a_verdict_of_no_update_changes_nothing)
{
    on_gpu(place_check_verdicts);
}

Test(places_gpu, a_replayed_step_is_the_step)
{
    on_gpu(place_check_replay);
}
