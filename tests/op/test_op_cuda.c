/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every case of the table on the emulated device "cuda" compared with ref:
 * float32, tf32, bfloat16, tensors stored as bfloat16. All outputs are filled
 * with NaN before each call. Gradients are also compared with differences of
 * values. The bits are the same in every call, under all schedules of threads
 * and both orders of streams. A call allocates nothing, and each call of a
 * library may fail.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cuda/emu.h"
#include "cuda/simt_run.h"
#include "dev/dev_far.h"
#include "lib/alloc_count.h"
#include "op/op_desc.h"
#include "op/op_ops.h"
#include "op_compare.h"
#include "op_differences.h"

static const op_backend_ops_t *backend(void)
{
    const op_backend_ops_t *cuda = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cuda", &cuda, &err), ERR_OK, "%s", err.text);
    return cuda;
}

/* Large cases take most of the time, and a sanitizer makes it four times as
 * long. It looks for memory, not for bits: one other schedule is enough. */
#ifdef __SANITIZE_ADDRESS__
#define LARGE false
#else
#define LARGE true
#endif

/* Of CDDP_OP_CASES=WORD only the cases that have it in their names. */
static bool is_run(const op_case_t *test)
{
    const char *word = getenv("CDDP_OP_CASES");

    return (LARGE || !test->large) &&
           (word == NULL || strstr(test->name, word) != NULL);
}

/* All kinds but those of plugins, whose layers compute on the host. */
Test(op_cuda, all_kinds)
{
    emu_or_gpu();
    for (int kind = 0; kind < OP_KINDS; kind++)
        if (kind != OP_NONE && kind != OP_CUSTOM)
            cr_expect_not_null(backend()->kernels[kind], "%s has no kernel",
                               op_kind_name((op_kind_t)kind));
    cr_assert_null(backend()->kernels[OP_CUSTOM]);
}

/* ---- values -------------------------------------------------------------- */

static void check_case(const op_case_t *test, double limit)
{
    op_rig_t rig, ref;

    op_rig_open(&ref, test, "ref", OP_FLOAT32, 1);
    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    cr_assert_str_eq(dev_name(rig.mem.dev), "cuda");
    if (test->config.compute_type != OP_FLOAT32) {
        op_rig_divide_w_hh(&ref);
        op_rig_divide_w_hh(&rig);
    }
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

/* Small cases are a test of their own, because tests/gpu/run executes them
 * under compute-sanitizer. */
static void check_float32(bool large)
{
    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++)
        if (op_cases[i].large == large && is_run(&op_cases[i]))
            check_case(&op_cases[i], 1e-5);
}

Test(op_cuda, small_float32, .timeout = 600)
{
    check_float32(false);
}

Test(op_cuda, large_float32, .timeout = 600)
{
    check_float32(true);
}

/* Products of factors that are rounded, as in ref. Those that are results (h of
 * lstm and gru, p and ds of attention) may be rounded to the other side of a
 * tie; see op_rig_divide_w_hh. */
static void check_rounded(op_type_t type, double limit, bool large)
{
    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        if (!op_rig_rounds(test.config.kind) || test.large != large ||
            !is_run(&test))
            continue;
        test.config.compute_type = type;
        test.tolerance = limit;
        check_case(&test, limit);
    }
}

Test(op_cuda, small_tf32, .timeout = 600)
{
    check_rounded(OP_TF32, 5e-4, false);
}

Test(op_cuda, large_tf32, .timeout = 600)
{
    check_rounded(OP_TF32, 5e-4, true);
}

Test(op_cuda, small_bf16, .timeout = 600)
{
    check_rounded(OP_BFLOAT16, 1e-2, false);
}

Test(op_cuda, large_bf16, .timeout = 600)
{
    check_rounded(OP_BFLOAT16, 1e-2, true);
}

Test(op_cuda, tensors_lie_as_bf16, .timeout = 600)
{
    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        if (!op_rig_lies(backend(), &test) || !is_run(&test))
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
    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++)
        if (is_run(&op_cases[i]))
            op_compare_nan(&op_cases[i], "cuda");
}

Test(op_cuda, gradients_are_differences, .timeout = 600)
{
    const op_rig_on_t on = {"cuda", 0, OP_FLOAT32, 1};

    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++)
        if (!op_cases[i].large)
            op_differences_check(&op_cases[i], &on, &op_differences_float32);
}

/* ---- bits ---------------------------------------------------------------- */

static void run_under(const fake_cuda_t *fake, const op_case_t *test,
                      int64_t schedule, op_rig_t *rig)
{
    emu_set(fake, schedule, schedule);
    emu_set(fake, order, schedule % DEV_FAR_ORDERS);
    op_rig_open(rig, test, "cuda", OP_FLOAT32, 1);
    op_compare_run(rig);
}

/* The bits under every second schedule from [schedule] down are those under the
 * first one. */
static void check_bits(const fake_cuda_t *fake, const op_case_t *test,
                       int schedule)
{
    op_rig_t first, other;

    run_under(fake, test, SIMT_FORWARDS, &first);
    for (; schedule > SIMT_FORWARDS; schedule -= LARGE ? 2 : SIMT_SCHEDULES) {
        run_under(fake, test, schedule, &other);
        op_compare_bits(&other, &first,
                        "has other bits under another schedule");
        op_rig_close(&other);
    }
    op_rig_close(&first);
}

/* In two tests, so that two processors share the work. */
ParameterizedTestParameters(op_cuda, schedules)
{
    static int schedules[] = {SIMT_SCHEDULES - 1, SIMT_SCHEDULES - 2};

    return cr_make_param_array(int, schedules, LARGE ? 2 : 1);
}

ParameterizedTest(const int *schedule, op_cuda, schedules, .timeout = 600)
{
    const fake_cuda_t *fake = emu_open();

    for (int i = 0; i < op_case_count; i++)
        if (is_run(&op_cases[i]))
            check_bits(fake, &op_cases[i], *schedule);
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
        if (!op_cases[i].large)
            check_allocations(fake, &op_cases[i]);
}

/* ---- errors -------------------------------------------------------------- */

/* Open, run and close another op of the rig's configuration. */
static err_code_t open_and_run(op_rig_t *rig, err_t *err)
{
    const bool loss = op_rig_is_loss(rig), dx = rig->config.need_dx;
    op_args_t args = rig->args;
    op_t *op = NULL;
    err_code_t rc = op_open(rig->backend, rig->mem.dev, &rig->config, &op, err);

    args.x = rig->x;
    args.y = loss ? NULL : rig->y;
    args.dx = dx ? rig->dx : NULL;
    args.dy = loss ? NULL : rig->dy;
    for (int k = 0; k < rig->config.others; k++) {
        args.other[k] = rig->other[k];
        args.dother[k] = dx ? rig->dother[k] : NULL;
    }
    if (rc == ERR_OK)
        rc = op_rig_call(&rig->mem, op_forward, op, &args, err);
    if (rc == ERR_OK && rig->config.training)
        rc = op_rig_call(&rig->mem, op_backward, op, &args, err);
    op_close(op);
    return rc;
}

/* Let call number [k] fail in open_and_run: an error with a sentence, or
 * another way to the same result (another engine of cuDNN), and nothing is
 * left. False: there are fewer calls. */
static bool check_failure(const fake_cuda_t *fake, op_rig_t *rig, int64_t k,
                          const double *y)
{
    const fake_cuda_counts_t before = fake->counts();
    const int64_t count = op_rig_count(rig, RIG_Y);
    double *got = op_rig_doubles(count);
    fake_cuda_counts_t after;
    err_t err = ERR_INIT;
    err_code_t rc;
    bool failed;

    emu_set(fake, fail, k);
    op_rig_spoil_forward(rig);
    rc = open_and_run(rig, &err);
    failed = fake->get().fail == 0;
    emu_set(fake, fail, 0);
    after = fake->counts();
    cr_assert_eq(after.bytes, before.bytes, "%s: call %lld: %s", rig->name,
                 (long long)k, err.text);
    cr_assert_eq(after.objects, before.objects, "%s: call %lld: %s", rig->name,
                 (long long)k, err.text);
    cr_assert(rc == ERR_OK || (failed && err.text[0] != '\0'), "%s", rig->name);
    op_rig_get(rig, RIG_Y, got);
    if (rc == ERR_OK)
        cr_assert_arr_eq(got, y, (size_t)count * sizeof *y,
                         "%s: call %lld (%s) failed, and nobody knows",
                         rig->name, (long long)k, fake->failed_call());
    free(got);
    return failed;
}

static void check_failures(const fake_cuda_t *fake, const op_case_t *test)
{
    int64_t k = 1;
    op_rig_t rig;
    double *y;

    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    op_compare_run(&rig);
    y = op_rig_doubles(op_rig_count(&rig, RIG_Y));
    op_rig_get(&rig, RIG_Y, y);
    while (check_failure(fake, &rig, k, y))
        k++;
    cr_assert_gt(k, 5, "%s", test->name);
    free(y);
    op_rig_close(&rig);
}

/* One case of each kind. */
Test(op_cuda, each_call_may_fail, .timeout = 600)
{
    const fake_cuda_t *fake = emu_open();
    bool seen[OP_KINDS] = {false};

    for (int i = 0; i < op_case_count; i++) {
        const op_case_t *test = &op_cases[i];

        if (seen[test->config.kind] || test->large || test->evaluation)
            continue;
        seen[test->config.kind] = true;
        check_failures(fake, test);
    }
}

/* ---- attention by cuDNN -------------------------------------------------- */

static const op_case_t *case_named(const char *name)
{
    for (int i = 0; i < op_case_count; i++)
        if (strcmp(op_cases[i].name, name) == 0)
            return &op_cases[i];
    cr_assert_fail("there is no case \"%s\"", name);
    return NULL;
}

/* Open a causal attention for [heads] of [features] on [tokens], and check its
 * note. */
static void check_note(dev_device_t *dev, int64_t heads, int64_t tokens,
                       int64_t features, const char *want)
{
    op_config_t config = {.kind = OP_ATTENTION,
                          .heads = {heads, heads, true, false},
                          .training = true,
                          .need_dx = true,
                          .threads = 1,
                          .compute_type = OP_BFLOAT16};
    const int64_t dims[] = {1, tokens, 3 * heads * features};
    err_t err = ERR_INIT;
    op_t *op;

    op_desc_fill(&config.in, OP_FLOAT32, 3, dims);
    cr_assert_eq(op_open(backend(), dev, &config, &op, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_not_null(op_note(op));
    cr_assert(strstr(op_note(op), want) != NULL, "%lld features: %s",
              (long long)features, op_note(op));
    op_close(op);
}

/* The note, which --check prints, says whether cuDNN computes an attention.
 * With 64 heads and 4096 tokens it does not: the gradients would need 2 GiB. */
Test(op_cuda, attention_says_who_computes_it)
{
    dev_device_t *dev;
    err_t err = ERR_INIT;

    emu_open();
    cr_assert_eq(dev_open("cuda", 0, &dev, &err), ERR_OK, "%s", err.text);
    check_note(dev, 2, 7, 8, "by cuDNN");
    check_note(dev, 2, 7, 64, "by cuDNN");
    check_note(dev, 2, 7, 5, "no multiple of 8");
    check_note(dev, 2, 1, 8, "there is one token");
    check_note(dev, 1, 7, 136, "has no deterministic");
    check_note(dev, 64, 4096, 8, "more than 512 MiB");
    dev_close(dev);
}

/* Other GPUs; for the newer ones cuDNN proposes no deterministic gradients. */
Test(op_cuda, attention_on_other_gpus)
{
    const fake_cuda_t *fake = emu_open();
    static const struct {
        int64_t arch, features;
        const char *note;
    } rows[] = {{80, 64, "by cuDNN"},
                {86, 136, "more than 128"},
                {100, 64, "no deterministic gradients for this GPU"}};
    err_t err = ERR_INIT;

    for (int i = 0; i < 3; i++) {
        dev_device_t *dev;

        emu_set(fake, arch, rows[i].arch);
        cr_assert_eq(dev_open("cuda", 0, &dev, &err), ERR_OK, "%s", err.text);
        check_note(dev, 1, 7, rows[i].features, rows[i].note);
        dev_close(dev);
    }
}

/* Ops of the same shape share their plans: opening the second op makes fewer
 * calls than making one plan. */
Test(op_cuda, attention_plans_are_shared)
{
    const fake_cuda_t *fake = emu_open();
    const op_case_t *test = case_named("attention heads of 8, causal");
    op_case_t rounded = *test;
    op_rig_t rig;
    op_t *second;
    int64_t before;
    err_t err = ERR_INIT;

    rounded.config.compute_type = OP_BFLOAT16;
    op_rig_open(&rig, &rounded, "cuda", OP_FLOAT32, 1);
    cr_assert_str_eq(op_note(rig.op), "by cuDNN");
    before = fake->counts().calls;
    cr_assert_eq(op_open(backend(), rig.mem.dev, &rig.config, &second, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_leq(fake->counts().calls - before, 4);
    op_close(second);
    op_rig_close(&rig);
}

/* If a call of cuDNN fails while it plans or runs, attention must fail, and
 * must not be computed in another way, which would have other bits. Tests every
 * fifth call; with CDDP_LONG=1 every call. */
Test(op_cuda, each_call_of_attention_may_fail, .timeout = 600)
{
    const fake_cuda_t *fake = emu_open();
    const int64_t step = getenv("CDDP_LONG") == NULL ? 5 : 1;
    op_case_t test = *case_named("attention heads of 8, causal");
    op_config_t exact;
    err_t err = ERR_INIT;
    int64_t k = 1;
    op_rig_t rig;
    double *y;

    test.config.compute_type = OP_BFLOAT16;
    op_rig_open(&rig, &test, "cuda", OP_FLOAT32, 1);
    op_compare_run(&rig);
    y = op_rig_doubles(op_rig_count(&rig, RIG_Y));
    op_rig_get(&rig, RIG_Y, y);
    /* Close the op, so that nothing keeps the plans for the next open. */
    op_close(rig.op);
    exact = rig.config;
    exact.compute_type = OP_FLOAT32;
    cr_assert_eq(op_open(backend(), rig.mem.dev, &exact, &rig.op, &err),
                 ERR_OK);
    while (check_failure(fake, &rig, k, y))
        k += step;
    cr_assert_gt(k, 100);
    free(y);
    op_rig_close(&rig);
}

/* ---- outputs stored as bfloat16 ------------------------------------------ */

/* In training, norms and a linear with an activation may store y for a linear:
 * the bits are those of y, rounded. What backward writes does not change. */
static void check_rounded_y(const op_case_t *test)
{
    op_rig_t rig;
    int64_t count, dx;
    double *y, *before, *after;
    err_t err = ERR_INIT;

    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    op_compare_run(&rig);
    count = op_rig_count(&rig, RIG_Y);
    dx = op_rig_count(&rig, RIG_DX);
    y = op_rig_doubles(count);
    before = op_rig_doubles(dx);
    after = op_rig_doubles(dx);
    op_rig_get(&rig, RIG_Y, y);
    op_rig_get(&rig, RIG_DX, before);
    rig.config.y_stored_as = OP_BFLOAT16;
    cr_assert_eq(open_and_run(&rig, &err), ERR_OK, "%s: %s", test->name,
                 err.text);
    for (int64_t i = 0; i < count; i++) {
        const float exact = (float)y[i];
        uint16_t rounded;

        half_round_bf16(&rounded, &exact, 1);
        cr_assert_eq(((uint16_t *)rig.y)[i], rounded, "%s: y[%lld] of %g",
                     test->name, (long long)i, y[i]);
    }
    op_rig_get(&rig, RIG_DX, after);
    cr_assert_arr_eq(after, before, (size_t)dx * sizeof *before, "%s",
                     test->name);
    free(y);
    free(before);
    free(after);
    op_rig_close(&rig);
}

Test(op_cuda, outputs_for_a_linear_lie_as_bf16, .timeout = 600)
{
    int checked = 0;

    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        test.blocked = false;
        test.config.compute_type = OP_BFLOAT16;
        if (test.evaluation || (!op_is_sample_norm(test.config.kind) &&
                                test.config.activation == OP_NONE))
            continue;
        check_rounded_y(&test);
        checked++;
    }
    cr_assert_gt(checked, 20);
}

/* ---- losses -------------------------------------------------------------- */

/* Fill the targets with what is no target. */
static void spoil_target(op_rig_t *rig)
{
    const int64_t count = op_desc_elems(&rig->config.in);
    void *target = (void *)(uintptr_t)rig->args.target;

    if (rig->config.kind == OP_CROSS_ENTROPY)
        for (int64_t i = 0; i < op_classes_of(&rig->config).rows; i++)
            ((int64_t *)target)[i] = i % 2 == 0 ? -1 - i : INT64_MAX / 2;
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)target)[i] = NAN;
}

/* The host checks targets. Wrong ones give NaN as loss, and a gradient of 0 if
 * the scale of the loss is 0; no memory of others is touched. */
static void check_wrong_target(const op_case_t *test)
{
    op_rig_t rig;
    int64_t count;
    double *dx;

    op_rig_open(&rig, test, "cuda", OP_FLOAT32, 1);
    spoil_target(&rig);
    op_rig_spoil_forward(&rig);
    op_rig_forward(&rig);
    cr_assert(isnan(rig.loss_sum), "%s", test->name);
    if (rig.config.training && rig.config.need_dx) {
        rig.step.scales[1] = 0;
        op_rig_spoil_backward(&rig);
        op_rig_backward(&rig);
        count = op_rig_count(&rig, RIG_DX);
        dx = op_rig_doubles(count);
        op_rig_get(&rig, RIG_DX, dx);
        for (int64_t i = 0; i < count; i++)
            cr_assert_eq(dx[i], 0, "%s: dx[%lld]", test->name, (long long)i);
        free(dx);
    }
    op_rig_close(&rig);
}

Test(op_cuda, wrong_targets, .timeout = 600)
{
    int checked = 0;

    emu_or_gpu();
    for (int i = 0; i < op_case_count; i++) {
        const op_kind_t kind = op_cases[i].config.kind;

        if (kind != OP_CROSS_ENTROPY && kind != OP_CROSS_ENTROPY_SOFT &&
            kind != OP_MSE && !(kind >= OP_MAE && kind <= OP_KL))
            continue;
        check_wrong_target(&op_cases[i]);
        checked++;
    }
    cr_assert_gt(checked, 50);
}
