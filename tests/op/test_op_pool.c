/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool, adaptive_maxpool and max pass on every NaN, whatever its sign, its
 * place in the window, the overlap or padding of windows, and the layout. Of
 * equal numbers the first one wins, and it gets the gradient. The cases are
 * rows of op_cases.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "op/op_ops.h"
#include "op_rig.h"

static bool is_max(const op_case_t *test)
{
    return test->config.kind == OP_MAX || test->config.kind == OP_MAXPOOL2D ||
           test->config.kind == OP_ADAPTIVE_MAXPOOL;
}

/* Set every [step]th element of x to NaN, with alternating sign. */
static void set_nans(op_rig_t *rig, int64_t step)
{
    const int64_t count = op_rig_count(rig, RIG_X);
    double *x = op_rig_doubles(count);

    op_rig_get(rig, RIG_X, x);
    for (int64_t i = 0; i < count; i += step)
        x[i] = i / step % 2 == 0 ? -(double)NAN : (double)NAN;
    op_rig_set(rig, RIG_X, x);
    free(x);
}

/* Fill x with few different numbers, among them zeros of both signs. */
static void set_ties(op_rig_t *rig, int64_t step)
{
    const int64_t count = op_rig_count(rig, RIG_X);
    double *x = op_rig_doubles(count);

    op_rig_get(rig, RIG_X, x);
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] > 0.2 ? -0.5 : i % step == 0 ? -0.0 : 0.0;
    op_rig_set(rig, RIG_X, x);
    free(x);
}

static double rounded(double value)
{
    float wide = (float)value;
    uint16_t half;

    half_round_bf16(&half, &wide, 1);
    half_widen_bf16(&wide, &half, 1);
    return (double)wide;
}

/* Check that both have NaN at the same places and equal numbers elsewhere,
 * except that adaptive_maxpool sums dx in another order. */
static void check_same(const op_case_t *test, op_rig_tensor_t tensor,
                       op_rig_t *cpu, op_rig_t *ref)
{
    const int64_t count = op_rig_count(ref, tensor);
    const double slack = test->config.kind == OP_ADAPTIVE_MAXPOOL ? 1e-6 : 0;
    double *got = op_rig_doubles(count), *want = op_rig_doubles(count);

    op_rig_get(cpu, tensor, got);
    op_rig_get(ref, tensor, want);
    /* cpu stores its sum as bfloat16 */
    for (int64_t i = 0; i < count && test->bf16; i++)
        want[i] = rounded(want[i]);
    for (int64_t i = 0; i < count; i++)
        cr_assert(isnan(want[i]) ? isnan(got[i]) != 0
                                 : fabs(got[i] - want[i]) <= slack,
                  "%s: [%lld] is %g, not %g", test->name, (long long)i, got[i],
                  want[i]);
    free(got);
    free(want);
}

static void check_filled(const op_case_t *test,
                         void (*fill)(op_rig_t *rig, int64_t step))
{
    op_rig_t cpu, ref;

    op_rig_open(&cpu, test, "cpu", OP_FLOAT32, 2);
    op_rig_open(&ref, test, "ref", OP_FLOAT32, 1);
    for (int64_t step = 2; step < 9; step++) {
        fill(&cpu, step);
        fill(&ref, step);
        op_rig_forward(&cpu);
        op_rig_forward(&ref);
        check_same(test, RIG_Y, &cpu, &ref);
        if (!test->evaluation) {
            op_rig_backward(&cpu);
            op_rig_backward(&ref);
            check_same(test, RIG_DX, &cpu, &ref);
        }
    }
    op_rig_close(&cpu);
    op_rig_close(&ref);
}

Test(op_pool, nan_and_the_first_win)
{
    int checked = 0;

    for (int i = 0; i < op_case_count; i++)
        if (is_max(&op_cases[i])) {
            check_filled(&op_cases[i], set_nans);
            check_filled(&op_cases[i], set_ties);
            checked++;
        }
    cr_assert_gt(checked, 40);
}

Test(op_pool, nan_and_the_first_win_as_bf16)
{
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        test.bf16 = true;
        if (!is_max(&test) || !op_rig_lies(cpu, &test))
            continue;
        check_filled(&test, set_nans);
        check_filled(&test, set_ties);
    }
}

/* The gradient reaches a winner whose index in the window does not fit an
 * int16_t. */
Test(op_pool, a_window_of_more_taps_than_an_int16_counts_as_bf16)
{
    enum { SIDE = 190, CHANNELS = 16, TAPS = SIDE * SIDE };
    const op_case_t test = {
        .name = "maxpool of very many taps, blocked",
        .config = {.kind = OP_MAXPOOL2D,
                   .pool = {.kernel = {SIDE, SIDE}, .stride = {1, 1}},
                   .in = {.ndim = 4, .dims = {1, CHANNELS, SIDE, SIDE}}},
        .blocked = true,
        .bf16 = true};
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;
    double *values = op_rig_doubles(CHANNELS * TAPS), dy[CHANNELS];
    op_rig_t rig;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    op_rig_open(&rig, &test, "cpu", OP_FLOAT32, 2);
    for (int64_t i = 0; i < CHANNELS * TAPS; i++)
        values[i] = i % TAPS == TAPS - 1 ? 1 : -1;
    op_rig_set(&rig, RIG_X, values);
    op_rig_forward(&rig);
    op_rig_backward(&rig);
    op_rig_get(&rig, RIG_DX, values);
    op_rig_get(&rig, RIG_DY, dy);
    for (int64_t i = 0; i < CHANNELS * TAPS; i++)
        cr_assert_eq(values[i], i % TAPS == TAPS - 1 ? dy[i / TAPS] : 0,
                     "[%lld] is %g", (long long)i, values[i]);
    op_rig_close(&rig);
    free(values);
}
