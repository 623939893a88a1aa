/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode check: every case of the table on cpu compared with ref in float32,
 * with one thread and with two. All outputs are filled with NaN before each
 * call. Also the promises of op.h: equal bits on every call; in place where
 * op_in_place is true; backward without what op_reads_x and op_reads_y exclude
 * (the rig passes NULL for it).
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/op_ops.h"
#include "op_rig.h"

static const char *const tensor_names[RIG_TENSORS] = {
    [RIG_X] = "x",   [RIG_Y] = "y",   [RIG_DX] = "dx",   [RIG_DY] = "dy",
    [RIG_W] = "w",   [RIG_B] = "b",   [RIG_DW] = "dw",   [RIG_DB] = "db",
    [RIG_P2] = "p2", [RIG_P3] = "p3", [RIG_DP2] = "dp2", [RIG_DP3] = "dp3",
    [RIG_X1] = "x1", [RIG_X2] = "x2", [RIG_DX1] = "dx1", [RIG_DX2] = "dx2"};

static const op_rig_tensor_t results[] = {RIG_Y,   RIG_DX,  RIG_DW,  RIG_DB,
                                          RIG_DP2, RIG_DP3, RIG_DX1, RIG_DX2};
#define RESULTS (sizeof results / sizeof results[0])

static void run(op_rig_t *rig)
{
    op_rig_spoil_forward(rig);
    op_rig_forward(rig);
    if (rig->config.training) {
        op_rig_spoil_backward(rig);
        op_rig_backward(rig);
    }
}

/* Check that each element of [got] is close to that of [want], relative to the
 * largest element. */
static void check_near(const op_case_t *test, const char *what,
                       const double *got, const double *want, int64_t count,
                       double tolerance)
{
    double largest = 0;

    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * largest)) {
            cr_assert_fail("%s: %s[%lld] is %.9g, but ref has %.9g (largest "
                           "%.9g)",
                           test->name, what, (long long)i, got[i], want[i],
                           largest);
        }
}

static void check_against_ref(const op_case_t *test, op_rig_t *rig,
                              op_rig_t *ref)
{
    for (size_t i = 0; i < RESULTS; i++) {
        int64_t count = op_rig_count(ref, results[i]);
        double *got = op_rig_doubles(count), *want = op_rig_doubles(count);

        op_rig_get(rig, results[i], got);
        op_rig_get(ref, results[i], want);
        check_near(test, tensor_names[results[i]], got, want, count,
                   test->tolerance);
        free(got);
        free(want);
    }
    if (op_rig_is_loss(rig))
        check_near(test, "loss_sum", &rig->loss_sum, &ref->loss_sum, 1, 1e-6);
    if (test->config.kind == OP_CROSS_ENTROPY ||
        test->config.kind == OP_CROSS_ENTROPY_SOFT)
        cr_assert_eq(rig->correct, ref->correct, "%s: correct", test->name);
    if ((test->config.kind == OP_BATCHNORM ||
         test->config.kind == OP_SYNCBATCHNORM) &&
        !test->evaluation && !test->config.norm.frozen)
        check_near(test, "moments", rig->args.moments, ref->args.moments,
                   2 * test->config.in.dims[1], 1e-5);
}

/* Run [turns] more times, and check that the bits are equal. */
static void check_repeat(const op_case_t *test, op_rig_t *rig, int turns)
{
    double *first[RESULTS], *second[RESULTS], loss = rig->loss_sum;

    for (size_t i = 0; i < RESULTS; i++) {
        first[i] = op_rig_doubles(op_rig_count(rig, results[i]));
        second[i] = op_rig_doubles(op_rig_count(rig, results[i]));
        op_rig_get(rig, results[i], first[i]);
    }
    for (int turn = 0; turn < turns; turn++) {
        run(rig);
        for (size_t i = 0; i < RESULTS; i++) {
            int64_t count = op_rig_count(rig, results[i]);

            op_rig_get(rig, results[i], second[i]);
            cr_assert_arr_eq(second[i], first[i],
                             (size_t)count * sizeof(double),
                             "%s: %s has other bits in another call",
                             test->name, tensor_names[results[i]]);
        }
        if (op_rig_is_loss(rig))
            cr_assert_arr_eq(&rig->loss_sum, &loss, sizeof loss,
                             "%s: the loss has other bits in another call",
                             test->name);
    }
    for (size_t i = 0; i < RESULTS; i++) {
        free(first[i]);
        free(second[i]);
    }
}

/* With y in the memory of x, and dx in that of dy, the bits are those with
 * separate memory. */
static void check_in_place(const op_case_t *test, op_rig_t *rig)
{
    size_t bytes = op_out(rig->op)->bytes;
    op_args_t args = rig->args;
    err_t err = ERR_INIT;
    void *over = op_rig_block(&rig->mem, bytes);

    memcpy(over, rig->x, bytes);
    args.x = args.y = over;
    for (int k = 0; k < rig->config.others; k++)
        args.other[k] = rig->other[k];
    cr_assert_eq(op_rig_call(&rig->mem, op_forward, rig->op, &args, &err),
                 ERR_OK);
    cr_assert_arr_eq(over, rig->y, bytes, "%s: y over x differs", test->name);
    if (rig->config.training && rig->config.need_dx) {
        args.x = NULL;
        args.y = rig->y;
        memcpy(over, rig->dy, bytes);
        args.dy = args.dx = over;
        cr_assert_eq(op_rig_call(&rig->mem, op_backward, rig->op, &args, &err),
                     ERR_OK);
        cr_assert_arr_eq(over, rig->dx, bytes, "%s: dx over dy differs",
                         test->name);
    }
    op_rig_block_free(&rig->mem, over);
}

/* The cpu backend on [least] to [most] threads, compared with one run of ref,
 * whose plain loops take most of this test's time. */
static void check_case(const op_case_t *test, int least, int most)
{
    op_rig_t rig, ref;

    op_rig_open(&ref, test, "ref", OP_FLOAT32, 1);
    run(&ref);
    for (int threads = least; threads <= most; threads++) {
        op_rig_open(&rig, test, "cpu", OP_FLOAT32, threads);
        run(&rig);
        check_against_ref(test, &rig, &ref);
        check_repeat(test, &rig, 3);
        if (op_in_place(rig.op))
            check_in_place(test, &rig);
        op_rig_close(&rig);
    }
    check_repeat(test, &ref, 1);
    if (op_in_place(ref.op))
        check_in_place(test, &ref);
    op_rig_close(&ref);
}

Test(op_check, one_and_two_threads, .timeout = 300)
{
    for (int i = 0; i < op_case_count; i++)
        check_case(&op_cases[i], 1, 2);
}

static void check_team(const op_case_t *test, int threads)
{
    op_rig_t one, team;

    op_rig_open(&one, test, "cpu", OP_FLOAT32, 1);
    op_rig_open(&team, test, "cpu", OP_FLOAT32, threads);
    run(&one);
    run(&team);
    for (size_t i = 0; i < RESULTS; i++) {
        const int64_t count = op_rig_count(&one, results[i]);
        double *a = op_rig_doubles(count), *b = op_rig_doubles(count);

        op_rig_get(&one, results[i], a);
        op_rig_get(&team, results[i], b);
        cr_assert_arr_eq(a, b, (size_t)count * sizeof(double),
                         "%s: %s depends on the number of threads", test->name,
                         tensor_names[results[i]]);
        free(a);
        free(b);
    }
    if (one.args.moments != NULL && !test->evaluation)
        cr_assert_arr_eq(one.args.moments, team.args.moments,
                         2 * (size_t)test->config.in.dims[1] * sizeof(double),
                         "%s: moments depend on the number of threads",
                         test->name);
    op_rig_close(&one);
    op_rig_close(&team);
}

/* The larger team has more threads than norms have blocks of rows. */
static void check_teams(const op_case_t *test)
{
    check_team(test, 3);
    check_team(test, 7);
}

/* Norms, and all kinds of op newer than OP_CUSTOM. */
Test(op_check, the_same_bits_in_any_team, .timeout = 300)
{
    for (int i = 0; i < op_case_count; i++) {
        const op_kind_t kind = op_cases[i].config.kind;

        if (kind == OP_BATCHNORM || op_is_sample_norm(kind) || kind > OP_CUSTOM)
            check_teams(&op_cases[i]);
    }
}

static void check_nan(const op_case_t *test)
{
    bool seen = false;
    op_rig_t rig;
    double *x, *y;
    int64_t count;

    if (test->config.kind == OP_DROPOUT || test->config.kind == OP_MAXPOOL2D ||
        test->config.kind == OP_EMBEDDING)
        /* dropout may drop the NaN; maxpool has a test of its own; tokens are
         * integers */
        return;
    op_rig_open(&rig, test, "cpu", OP_FLOAT32, 1);
    count = op_rig_count(&rig, RIG_X);
    x = op_rig_doubles(count);
    for (int64_t j = 0; j < count; j++)
        x[j] = NAN;
    op_rig_set(&rig, RIG_X, x);
    op_rig_forward(&rig);
    count = op_rig_count(&rig, RIG_Y);
    y = op_rig_doubles(count);
    op_rig_get(&rig, RIG_Y, y);
    for (int64_t j = 0; j < count; j++)
        seen = seen || isnan(y[j]);
    if (op_rig_is_loss(&rig))
        seen = isnan(rig.loss_sum);
    cr_expect(seen, "%s: NaN got lost", test->name);
    free(x);
    free(y);
    op_rig_close(&rig);
}

/* Tensors stored as bfloat16: y, dx and the like are rounded once more than in
 * ref, by up to half a unit in the last place (2^-9 of a number), which also
 * changes what is computed from y. There is no other loss of precision. */
Test(op_check, tensors_lie_as_bf16, .timeout = 300)
{
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;
    int lay = 0;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        if (!op_rig_lies(cpu, &test))
            continue;
        test.bf16 = true;
        if (op_rig_rounds(test.config.kind))
            test.config.compute_type = OP_BFLOAT16;
        test.tolerance = 1e-2;
        check_case(&test, 1 + i % 2, 1 + i % 2);
        if (test.config.kind == OP_BATCHNORM)
            check_teams(&test);
        check_nan(&test);
        lay++;
    }
    cr_assert_gt(lay, 60);
}

/* An op of a kind that cannot store bfloat16 is refused with a message. */
Test(op_check, others_refuse_bf16)
{
    op_config_t config = {.kind = OP_MUL,
                          .others = 1,
                          .threads = 1,
                          .in = {.stored_as = OP_BFLOAT16}};
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;
    op_t *op;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    config.in.ndim = config.other[0].ndim = 2;
    for (int d = 0; d < 2; d++)
        config.in.dims[d] = config.other[0].dims[d] = 3;
    cr_assert_eq(op_open(cpu, NULL, &config, &op, &err), ERR_UNAVAILABLE);
    cr_assert(strstr(err.text, "stored as bfloat16") != NULL, "%s", err.text);
}

/* A NaN in x must reach y, so that a diverging run is noticed. */
Test(op_check, nan_passes)
{
    for (int i = 0; i < op_case_count; i++)
        check_nan(&op_cases[i]);
}

/* Products of factors rounded to bfloat16, as in ref. On a CPU without bfloat16
 * products the backend must refuse them. */
Test(op_check, bf16)
{
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];
        op_config_t config;
        op_t *op = NULL;

        if (!op_rig_rounds(test.config.kind))
            continue;
        test.config.compute_type = OP_BFLOAT16;
        /* Both backends round alike, with exceptions: attention may round p
         * before it is divided by the sum of its row; and the values that a
         * step passes to the next, or an activation's slope before a product,
         * may round to the other side of a tie. */
        test.tolerance = test.config.kind == OP_ATTENTION ||
                                 test.config.kind == OP_LSTM ||
                                 test.config.kind == OP_GRU
                             ? 1e-2
                         : test.config.activation != OP_NONE ? 1e-3
                                                             : 1e-5;
        config = op_rig_config(&test, OP_FLOAT32);
        if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) == NULL) {
            check_case(&test, 1 + i % 2, 1 + i % 2);
            continue;
        }
        cr_assert_eq(op_open(cpu, NULL, &config, &op, &err), ERR_UNAVAILABLE);
        cr_assert(strstr(err.text, "bfloat16") != NULL, "%s", err.text);
    }
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
}
