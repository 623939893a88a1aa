/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* libcddp with an emulated GPU: gradients and sums of a reducer in the GPU's
 * memory, on one rank and on several threads; and the error that a program gets
 * if there is no GPU. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/device_steps.h"
#include "cddp/cddp.h"
#include "cuda/emu.h"

static cddp_code_t steps(cddp_group_t *group, cddp_error_t *error)
{
    return device_steps(group, "{bucket_cap_mb: 0.001, first_bucket_mb: 0.001}",
                        NULL, error);
}

/* Do steps on the whole group, then only on the ranks with an even number.
 * [context] is the expected device; -1 means rank modulo 2. */
static cddp_code_t reduce(cddp_group_t *group, void *context,
                          cddp_error_t *error)
{
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    const int device = *(int *)context < 0 ? rank % 2 : *(int *)context;
    int even[8], evens = 0;
    cddp_group_t *sub = NULL;
    cddp_code_t code;

    CHECK(cddp_group_device(group) == device);
    OK(steps(group, error));
    for (int r = 0; r < size; r += 2)
        even[evens++] = r;
    OK(cddp_group_split(group, even, rank % 2 == 0 ? evens : 0, &sub, error));
    CHECK((sub != NULL) == (rank % 2 == 0));
    if (sub == NULL)
        return CDDP_OK;
    code = cddp_group_device(sub) == device
               ? steps(sub, error)
               : cddp_error_set(error, CDDP_DATA, "a sub-group's device");
    cddp_group_close(sub);
    return code;
}

Test(device, gradients_are_reduced_in_its_memory, .timeout = 300)
{
    const fake_cuda_t *fake = emu_open();
    int turns = -1, one = 1;

    emu_set(fake, devices, 2);
    for (int ranks = 1; ranks <= 4; ranks += 1 + (ranks > 1)) {
        cddp_run_config_t config = {.local = ranks, .device = "cuda"};
        const int64_t kernels = fake->counts().ops;
        cddp_error_t error = {.text = ""};

        cr_expect_eq(cddp_run(&config, reduce, &turns, &error), CDDP_OK, "%s",
                     error.text);
        cr_expect_gt(fake->counts().ops, kernels, "nothing ran on the GPU");
        cr_expect_eq(fake->counts().bytes, 0);
        config.device = "cuda:1";
        cr_expect_eq(cddp_run(&config, reduce, &one, &error), CDDP_OK, "%s",
                     error.text);
        cr_expect_eq(fake->counts().objects, 0);
    }
}

/* Before start_step powersgd sends plain gradients, whose sum is exact.
 * The hook works in the memory of the GPU. */
static cddp_code_t hooked(cddp_group_t *group, void *context,
                          cddp_error_t *error)
{
    (void)context;
    return device_steps(group,
                        "{bucket_cap_mb: 0.001, first_bucket_mb: 0.001, hook: "
                        "powersgd}",
                        NULL, error);
}

Test(device, powersgd_works_in_the_memory_of_the_gpu, .timeout = 60)
{
    const cddp_run_config_t config = {.local = 2, .device = "cuda"};
    cddp_error_t error = {.text = ""};

    emu_open();
    cr_expect_eq(cddp_run(&config, hooked, NULL, &error), CDDP_OK, "%s",
                 error.text);
}

/* ---- hooks --------------------------------------------------------------- */

/* The same hook in the memory of the host. */
static cddp_code_t copy_open(const cddp_hook_plan_t *plan, void **state,
                             cddp_error_t *error)
{
    *state = calloc(plan->elems * (size_t)plan->size, sizeof(float));
    CHECK(*state != NULL);
    return CDDP_OK;
}

static cddp_code_t copy_turn(void *state, const cddp_hook_bucket_t *bucket,
                             int turn, cddp_wire_t *wire, cddp_error_t *error)
{
    const size_t size = (size_t)cddp_wire_size(wire), count = bucket->count;
    float *all = (float *)state + size * bucket->offset;

    CHECK(cddp_wire_stream(wire) == NULL);
    if (turn == 0)
        return cddp_wire_gather(wire, bucket->grads, count * sizeof *all, all,
                                error);
    OK(cddp_wire_wait(wire, error));
    for (size_t i = 0; i < count; i++) {
        float sum = all[(size - 1) * count + i];

        for (size_t r = 0; i < count / 2 && r + 1 < size; r++)
            sum += all[r * count + i];
        bucket->grads[i] = sum;
    }
    return CDDP_OK;
}

static cddp_code_t placed(cddp_group_t *group, void *context,
                          cddp_error_t *error)
{
    return device_steps(
        group, "{bucket_cap_mb: 0.001, first_bucket_mb: 0.001, hook: last}",
        context, error);
}

/* The GPU executes its streams late, in one of two orders. */
Test(device, a_hook_can_work_in_the_memory_of_the_gpu, .timeout = 120)
{
    const fake_cuda_t *fake = emu_open();
    cddp_hook_t hook = device_hook(&fake);

    for (int ranks = 1; ranks <= 3; ranks++)
        for (int order = 0; order < 2; order++) {
            cddp_run_config_t config = {.local = ranks, .device = "cuda"};
            cddp_error_t error = {.text = ""};

            emu_set(fake, order, order);
            cr_expect_eq(cddp_run(&config, placed, &hook, &error), CDDP_OK,
                         "%d ranks, order %d: %s", ranks, order, error.text);
            cr_expect_eq(fake->counts().bytes, 0);
            config.device = "cpu";
            cr_expect_eq(cddp_run(&config, placed, &hook, &error), CDDP_CONFIG);
            cr_expect_not_null(strstr(error.text, "\"last\" wants gradients in "
                                                  "the memory of a GPU"),
                               "%s", error.text);
        }
}

Test(device, a_hook_of_the_host_works_on_a_copy, .timeout = 60)
{
    cddp_hook_t hook = {.name = "last",
                        .turns = 2,
                        .open = copy_open,
                        .close = free,
                        .turn = copy_turn};

    emu_open();
    for (int i = 0; i < 2; i++) {
        const cddp_run_config_t config = {.local = 3,
                                          .device = i == 0 ? "cuda" : "cpu"};
        cddp_error_t error = {.text = ""};

        cr_expect_eq(cddp_run(&config, placed, &hook, &error), CDDP_OK, "%s",
                     error.text);
    }
}

/* Without a GPU the same program gives the same bits. */
static cddp_code_t on_host(cddp_group_t *group, void *context,
                           cddp_error_t *error)
{
    (void)context;
    CHECK(cddp_group_device(group) == -1);
    return steps(group, error);
}

Test(device, the_cpu_needs_no_change_of_the_program, .timeout = 60)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        const cddp_run_config_t config = {.local = ranks, .device = "cpu"};
        cddp_error_t error = {.text = ""};

        cr_expect_eq(cddp_run(&config, on_host, NULL, &error), CDDP_OK, "%s",
                     error.text);
    }
}

/* ---- refusals ------------------------------------------------------------ */

static cddp_code_t never(cddp_group_t *group, void *context,
                         cddp_error_t *error)
{
    (void)group;
    (void)context;
    return cddp_error_set(error, CDDP_DATA, "the ranks ran");
}

/* cddp_run refuses [device] with [code], and its message has [word]. */
static void refused(const char *device, int ranks, cddp_code_t code,
                    const char *word)
{
    const cddp_run_config_t config = {.local = ranks, .device = device};
    cddp_error_t error = {.text = ""};

    cr_expect_eq(cddp_run(&config, never, NULL, &error), code, "%s: %s", device,
                 error.text);
    cr_expect_not_null(strstr(error.text, word), "%s: %s", device, error.text);
}

Test(device, a_wrong_name_is_a_sentence, .timeout = 60)
{
    const char *const wrong[] = {"gpu",     "cuda:",   "cuda:x", "cuda:1x",
                                 "cudaxyz", "cuda:-1", "",       "cuda:12345"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(wrong[i], 2, CDDP_CONFIG, "cuda:1");
}

Test(device, without_a_plugin_all_ranks_learn_why, .timeout = 60)
{
    setenv("CDDP_CUDA_PLUGIN", "/nowhere/plugin.so", 1);
    refused("cuda", 1, CDDP_UNAVAILABLE, "/nowhere/plugin.so");
    refused("cuda", 3, CDDP_UNAVAILABLE, "/nowhere/plugin.so");
}

Test(device, what_is_missing_is_named, .timeout = 60)
{
    const fake_cuda_t *fake = emu_open();

    refused("cuda:7", 2, CDDP_UNAVAILABLE, "7");
    emu_set(fake, devices, 0);
    refused("cuda", 2, CDDP_UNAVAILABLE, "no GPU");
    emu_set(fake, driver, 0);
    refused("cuda", 2, CDDP_UNAVAILABLE, "driver");
}

/* ---- faults -------------------------------------------------------------- */

static cddp_code_t plain(cddp_group_t *group, void *context,
                         cddp_error_t *error)
{
    (void)context;
    return steps(group, error);
}

/* Make one call of CUDA fail per run: the first, then the second, and so on, up
 * to [most] or until a run makes fewer calls. The program must get an error
 * with a sentence, and no object may stay open. In a few runs the failure
 * changes nothing, for example if the call only reads a device's name. */
static void calls_fail(const fake_cuda_t *fake, int ranks, int64_t most)
{
    const cddp_run_config_t config = {.local = ranks, .device = "cuda"};
    int64_t call = 0, failures = 0;

    do {
        cddp_error_t error = {.text = ""};
        cddp_code_t code;

        fake->reset();
        emu_set(fake, fail, ++call);
        code = cddp_run(&config, plain, NULL, &error);
        cr_assert(code == CDDP_OK || code == CDDP_UNAVAILABLE ||
                      code == CDDP_MEMORY || code == CDDP_PEER,
                  "call %lld: %d: %s", (long long)call, code, error.text);
        cr_assert(code == CDDP_OK || error.text[0] != '\0');
        cr_assert_eq(fake->counts().objects, 0, "call %lld", (long long)call);
        failures += code != CDDP_OK;
    } while (fake->get().fail == 0 && call < most);
    cr_expect_gt(2 * failures, call, "%lld calls, %lld failures",
                 (long long)call, (long long)failures);
}

Test(device, each_call_may_fail, .timeout = 300)
{
    const fake_cuda_t *fake = emu_open();

    calls_fail(fake, 1, 1000);
    /* The number of calls depends on time, because several ranks ask whether a
     * copy is done; so there is a limit. */
    calls_fail(fake, 2, 150);
}
