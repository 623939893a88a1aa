/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every case of the table on the emulated device "cuda" compared with ref:
 * float32, tf32, bfloat16, tensors stored as bfloat16. All outputs are filled
 * with NaN before each call. The bits are the same in every call, under all
 * schedules of threads and both orders of streams. A call allocates nothing,
 * and each call of a library may fail.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emu.h"
#include "cuda/simt_run.h"
#include "dev/dev_far.h"
#include "lib/alloc_count.h"
#include "op/op_ops.h"
#include "op_compare.h"

static const op_backend_ops_t *backend(void)
{
    const op_backend_ops_t *cuda = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cuda", &cuda, &err), ERR_OK, "%s", err.text);
    return cuda;
}

static bool is_there(const op_case_t *test)
{
    return backend()->kernels[test->config.kind] != NULL;
}

Test(op_cuda, all_kinds)
{
    char missing[1024] = "";
    int count = 0;

    emu_open();
    for (int kind = 0; kind < OP_KINDS; kind++)
        if (kind != OP_NONE && kind != OP_CUSTOM &&
            backend()->kernels[kind] == NULL) {
            snprintf(missing + strlen(missing),
                     sizeof missing - strlen(missing), " %s",
                     op_kind_name((op_kind_t)kind));
            count++;
        }
    if (count > 0)
        cr_skip_test("%d kinds have no kernel yet:%s", count, missing);
    cr_assert_null(backend()->kernels[OP_CUSTOM]);
}

/* ---- values -------------------------------------------------------------- */

static void check_case(const op_case_t *test, double limit)
{
    op_rig_t rig, ref;

    op_rig_open(&ref, test, "ref", OP_FLOAT32, 1);
    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    cr_assert_str_eq(dev_name(rig.mem.dev), "cuda");
    op_compare_run(&ref);
    op_compare_run(&rig);
    op_compare_ref(test, &rig, &ref);
    op_compare_norms(&rig, &ref, limit);
    op_compare_repeat(test, &rig, 1);
    if (op_in_place(rig.op))
        op_compare_in_place(test, &rig);
    op_rig_close(&rig);
    op_rig_close(&ref);
}

Test(op_cuda, float32, .timeout = 600)
{
    emu_open();
    for (int i = 0; i < op_case_count; i++)
        if (is_there(&op_cases[i]))
            check_case(&op_cases[i], 1e-5);
}

/* Products of factors that are rounded, as in ref. */
static void check_rounded(op_type_t type, double limit)
{
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        if (!op_rig_rounds(test.config.kind) || !is_there(&test))
            continue;
        test.config.compute_type = type;
        test.tolerance = limit;
        check_case(&test, limit);
    }
}

Test(op_cuda, tf32, .timeout = 600)
{
    emu_open();
    check_rounded(OP_TF32, 5e-4);
}

Test(op_cuda, bf16, .timeout = 600)
{
    emu_open();
    check_rounded(OP_BFLOAT16, 1e-2);
}

Test(op_cuda, tensors_lie_as_bf16, .timeout = 600)
{
    emu_open();
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        if (!op_rig_lies(backend(), &test) || !is_there(&test))
            continue;
        test.bf16 = true;
        if (op_rig_rounds(test.config.kind))
            test.config.compute_type = OP_BFLOAT16;
        test.tolerance = 1e-2;
        check_case(&test, 1e-2);
    }
}

Test(op_cuda, nan_passes, .timeout = 600)
{
    emu_open();
    for (int i = 0; i < op_case_count; i++)
        if (is_there(&op_cases[i]))
            op_compare_nan(&op_cases[i], "cuda");
}

/* ---- bits ---------------------------------------------------------------- */

/* The bits under [schedule] and [order] are those under the first ones. */
static void check_bits(const fake_cuda_t *fake, const op_case_t *test,
                       int64_t schedule, int64_t order)
{
    op_rig_t first, other;

    emu_set(fake, schedule, SIMT_FORWARDS);
    emu_set(fake, order, DEV_FAR_LAST_FIRST);
    op_rig_open(&first, test, "cuda", OP_FLOAT32, 1);
    op_compare_run(&first);
    emu_set(fake, schedule, schedule);
    emu_set(fake, order, order);
    op_rig_open(&other, test, "cuda", OP_FLOAT32, 1);
    op_compare_run(&other);
    op_compare_bits(&other, &first, "has other bits under another schedule");
    op_rig_close(&first);
    op_rig_close(&other);
}

ParameterizedTestParameters(op_cuda, schedules)
{
    static int schedules[] = {SIMT_BACKWARDS, SIMT_RANDOM, SIMT_WARPS_FORWARDS,
                              SIMT_WARPS_BACKWARDS};

    return cr_make_param_array(int, schedules, 4);
}

ParameterizedTest(const int *schedule, op_cuda, schedules, .timeout = 600)
{
    const fake_cuda_t *fake = emu_open();

    for (int i = 0; i < op_case_count; i++)
        if (is_there(&op_cases[i]))
            check_bits(fake, &op_cases[i], *schedule,
                       *schedule % DEV_FAR_ORDERS);
}

/* ---- memory -------------------------------------------------------------- */

static void check_allocations(const fake_cuda_t *fake, const op_case_t *test)
{
    op_rig_t rig;
    int64_t device;
    long host;

    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    op_rig_forward(&rig);
    if (rig.config.training)
        op_rig_backward(&rig);
    device = fake->counts().allocs;
    host = alloc_count();
    op_rig_forward(&rig);
    if (rig.config.training)
        op_rig_backward(&rig);
    cr_assert_eq(fake->counts().allocs, device, "%s: device memory",
                 test->name);
    cr_assert_eq(alloc_count(), host, "%s: host memory", test->name);
    op_rig_close(&rig);
}

Test(op_cuda, allocates_nothing, .timeout = 600)
{
    const fake_cuda_t *fake = emu_open();

    if (!alloc_count_works())
        cr_skip_test("a sanitizer owns malloc; run this test without");
    for (int i = 0; i < op_case_count; i++)
        if (is_there(&op_cases[i]) && !op_cases[i].large)
            check_allocations(fake, &op_cases[i]);
}

/* ---- errors -------------------------------------------------------------- */

/* Open, run and close another op of the rig's configuration. */
static err_code_t open_and_run(op_rig_t *rig, err_t *err)
{
    op_t *op = NULL;
    err_code_t rc = op_open(rig->backend, rig->mem.dev, &rig->config, &op, err);

    if (rc == ERR_OK)
        rc = op_rig_call(&rig->mem, op_forward, op, &rig->args, err);
    if (rc == ERR_OK && rig->config.training) {
        rig->args.dx = rig->config.need_dx ? rig->dx : NULL;
        for (int k = 0; k < rig->config.others; k++)
            rig->args.dother[k] = rig->config.need_dx ? rig->dother[k] : NULL;
        rig->args.dy = op_rig_is_loss(rig) ? NULL : rig->dy;
        rc = op_rig_call(&rig->mem, op_backward, op, &rig->args, err);
    }
    op_close(op);
    return rc;
}

/* Let each call fail in turn: an error with a sentence, and nothing is left. */
static void check_failures(const fake_cuda_t *fake, const op_case_t *test)
{
    fake_cuda_counts_t before;
    err_code_t rc;
    op_rig_t rig;

    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    op_compare_run(&rig);
    before = fake->counts();
    for (int64_t k = 1;; k++) {
        fake_cuda_counts_t after;
        err_t err = ERR_INIT;

        emu_set(fake, fail, k);
        rc = open_and_run(&rig, &err);
        after = fake->counts();
        if (fake->get().fail > 0) /* there are fewer calls */
            break;
        cr_assert_neq(rc, ERR_OK, "%s: call %lld (%s) failed, and nobody knows",
                      test->name, (long long)k, fake->last_call());
        cr_assert_str_not_empty(err.text, "%s", test->name);
        cr_assert_eq(after.bytes, before.bytes, "%s: call %lld: %s", test->name,
                     (long long)k, err.text);
        cr_assert_eq(after.objects, before.objects, "%s: call %lld: %s",
                     test->name, (long long)k, err.text);
    }
    cr_assert_eq(rc, ERR_OK, "%s", test->name);
    emu_set(fake, fail, 0);
    op_rig_close(&rig);
}

/* One case of each kind. */
Test(op_cuda, each_call_may_fail, .timeout = 600)
{
    const fake_cuda_t *fake = emu_open();
    bool seen[OP_KINDS] = {false};

    for (int i = 0; i < op_case_count; i++) {
        const op_case_t *test = &op_cases[i];

        if (!is_there(test) || seen[test->config.kind] || test->large ||
            test->evaluation)
            continue;
        seen[test->config.kind] = true;
        check_failures(fake, test);
    }
}
