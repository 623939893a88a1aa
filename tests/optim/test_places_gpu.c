/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Optimizers on a GPU: all is as on the host, bit by bit. Skipped without a
 * GPU. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "optim/place_checks.h"

static const place_t gpu = {"cuda", 0};

Test(places_gpu, updates_have_the_bits_of_the_host)
{
    place_check_updates(&gpu);
}

Test(places_gpu, groups_have_the_bits_of_the_host)
{
    place_check_groups(&gpu);
}

Test(places_gpu, ranges_have_the_bits_of_the_host)
{
    place_check_ranges(&gpu);
}

Test(places_gpu, norms_have_the_bits_of_the_host)
{
    place_check_norms(&gpu);
}

Test(places_gpu, a_verdict_of_no_update_changes_nothing)
{
    place_check_verdicts(&gpu);
}

Test(places_gpu, a_replayed_step_is_the_step)
{
    place_check_replay(&gpu);
}

/* Set [why] if this machine has no GPU. Asked in another process, as tests run
 * in children of this one, which cannot use a device that it has opened. */
static bool gpu_missing(err_t *why)
{
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0)
        return false;
    child = fork();
    if (child == 0) {
        dev_device_t *dev = NULL;
        err_t err = ERR_INIT;

        if (dev_open("cuda", 0, &dev, &err) != ERR_OK &&
            write(ends[1], &err, sizeof err) < 0)
            _exit(1);
        _exit(0);
    }
    close(ends[1]);
    waitpid(child, NULL, 0);
    if (read(ends[0], why, sizeof *why) != (ssize_t)sizeof *why)
        *why = (err_t)ERR_INIT;
    close(ends[0]);
    return why->code != ERR_OK;
}

int main(int argc, char **argv)
{
    struct criterion_test_set *tests = criterion_initialize();
    err_t why = ERR_INIT;
    int failed = 0;

    setenv("CDDP_CUDA_PLUGIN", GPU_PLUGIN, 0);
    if (gpu_missing(&why)) {
        printf("SKIP: %s\n", why.text);
        return 77;
    }
    if (criterion_handle_args(argc, argv, true))
        failed = !criterion_run_all_tests(tests);
    criterion_finalize(tests);
    return failed;
}
