/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode grad: the gradients of ref in float64 compared with central differences
 * of L = sum(dy * y), or of a loss L = scale * loss_sum. The values of x are
 * on a grid much wider than the step of the differences, so that no kink
 * (relu, maxpool) is crossed.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "op_rig.h"

#define STEP 1e-5
#define TOLERANCE 1e-7
/* Number of elements of a tensor that are tried, evenly spaced. */
#define TRIED 60

static double objective(op_rig_t *rig)
{
    int64_t count = op_rig_count(rig, RIG_Y);
    double *y, *dy, sum = 0;

    op_rig_forward(rig);
    if (op_rig_is_loss(rig))
        return rig->step.scales[1] * rig->loss_sum;
    y = op_rig_doubles(count);
    dy = op_rig_doubles(count);
    op_rig_get(rig, RIG_Y, y);
    op_rig_get(rig, RIG_DY, dy);
    for (int64_t i = 0; i < count; i++)
        sum += y[i] * dy[i];
    free(y);
    free(dy);
    return sum;
}

static void check_tensor(const op_case_t *test, op_rig_t *rig,
                         op_rig_tensor_t of, op_rig_tensor_t gradient)
{
    int64_t count = op_rig_count(rig, gradient);
    int64_t stride = count > TRIED ? count / TRIED : 1;
    double *values, *got;

    if (count == 0)
        return;
    values = op_rig_doubles(count);
    got = op_rig_doubles(count);
    op_rig_get(rig, gradient, got);
    op_rig_get(rig, of, values);
    for (int64_t i = 0; i < count; i += stride) {
        double kept = values[i], up, down, want;

        values[i] = kept + STEP;
        op_rig_set(rig, of, values);
        up = objective(rig);
        values[i] = kept - STEP;
        op_rig_set(rig, of, values);
        down = objective(rig);
        values[i] = kept;
        want = (up - down) / (2 * STEP);
        cr_assert(fabs(got[i] - want) <= TOLERANCE * (1 + fabs(want)),
                  "%s: tensor %d element %lld: gradient %.12g, differences "
                  "%.12g",
                  test->name, (int)of, (long long)i, got[i], want);
    }
    op_rig_set(rig, of, values);
    free(values);
    free(got);
}

Test(op_grad, ref_float64)
{
    for (int i = 0; i < op_case_count; i++) {
        const op_case_t *test = &op_cases[i];
        op_rig_t rig;

        if (test->large || test->evaluation)
            continue;
        op_rig_open(&rig, test, "ref", OP_FLOAT64, 1);
        op_rig_forward(&rig);
        op_rig_spoil_backward(&rig);
        op_rig_backward(&rig);
        check_tensor(test, &rig, RIG_X, RIG_DX);
        check_tensor(test, &rig, RIG_W, RIG_DW);
        check_tensor(test, &rig, RIG_B, RIG_DB);
        check_tensor(test, &rig, RIG_P2, RIG_DP2);
        check_tensor(test, &rig, RIG_P3, RIG_DP3);
        check_tensor(test, &rig, RIG_X1, RIG_DX1);
        check_tensor(test, &rig, RIG_X2, RIG_DX2);
        op_rig_close(&rig);
    }
}
