/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op_compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/op_ops.h"

static const char *const tensor_names[RIG_TENSORS] = {
    [RIG_X] = "x",   [RIG_Y] = "y",   [RIG_DX] = "dx",   [RIG_DY] = "dy",
    [RIG_W] = "w",   [RIG_B] = "b",   [RIG_DW] = "dw",   [RIG_DB] = "db",
    [RIG_P2] = "p2", [RIG_P3] = "p3", [RIG_DP2] = "dp2", [RIG_DP3] = "dp3",
    [RIG_X1] = "x1", [RIG_X2] = "x2", [RIG_DX1] = "dx1", [RIG_DX2] = "dx2"};

static const op_rig_tensor_t results[] = {RIG_Y,   RIG_DX,  RIG_DW,  RIG_DB,
                                          RIG_DP2, RIG_DP3, RIG_DX1, RIG_DX2};
#define RESULTS (sizeof results / sizeof results[0])

void op_compare_run(op_rig_t *rig)
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

void op_compare_ref(const op_case_t *test, op_rig_t *rig, op_rig_t *ref)
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

void op_compare_norms(op_rig_t *rig, op_rig_t *ref, double limit)
{
    for (size_t i = 0; i < RESULTS; i++) {
        const int64_t count = op_rig_count(ref, results[i]);
        double *got = op_rig_doubles(count), *want = op_rig_doubles(count);
        double off = 0, norm = 0;

        op_rig_get(rig, results[i], got);
        op_rig_get(ref, results[i], want);
        for (int64_t k = 0; k < count; k++) {
            off += (got[k] - want[k]) * (got[k] - want[k]);
            norm += want[k] * want[k];
        }
        cr_assert(sqrt(off) <= limit * sqrt(norm), "%s: %s is off by %.3g",
                  ref->name, tensor_names[results[i]], sqrt(off / norm));
        free(got);
        free(want);
    }
}

/* Run [turns] more times, and check that the bits are equal. */
void op_compare_repeat(const op_case_t *test, op_rig_t *rig, int turns)
{
    double *first[RESULTS], *second[RESULTS], loss = rig->loss_sum;

    for (size_t i = 0; i < RESULTS; i++) {
        first[i] = op_rig_doubles(op_rig_count(rig, results[i]));
        second[i] = op_rig_doubles(op_rig_count(rig, results[i]));
        op_rig_get(rig, results[i], first[i]);
    }
    for (int turn = 0; turn < turns; turn++) {
        op_compare_run(rig);
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
void op_compare_in_place(const op_case_t *test, op_rig_t *rig)
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

void op_compare_bits(op_rig_t *a, op_rig_t *b, const char *what)
{
    for (size_t i = 0; i < RESULTS; i++) {
        const int64_t count = op_rig_count(a, results[i]);
        double *first = op_rig_doubles(count), *second = op_rig_doubles(count);

        op_rig_get(a, results[i], first);
        op_rig_get(b, results[i], second);
        cr_assert_arr_eq(first, second, (size_t)count * sizeof(double),
                         "%s: %s %s", a->name, tensor_names[results[i]], what);
        free(first);
        free(second);
    }
    if (a->args.moments != NULL && a->config.training)
        cr_assert_arr_eq(a->args.moments, b->args.moments,
                         2 * (size_t)a->config.in.dims[1] * sizeof(double),
                         "%s: a moment %s", a->name, what);
    if (op_rig_is_loss(a))
        cr_assert_arr_eq(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum,
                         "%s: the loss %s", a->name, what);
}

void op_compare_nan(const op_case_t *test, const char *backend)
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
    op_rig_open(&rig, test, backend, OP_FLOAT32, 1);
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
