/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op_differences.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "op/op_desc.h"

const op_differences_t op_differences_float32 = {2, 0x1p-9, 1e-3, 0x1p-23};

/* L, and the sum of the absolute values of its terms. */
typedef struct objective {
    double value, terms;
} objective_t;

static objective_t objective(op_rig_t *rig)
{
    const int64_t count = op_rig_count(rig, RIG_Y);
    objective_t out = {0, 0};
    double *y, *dy;

    op_rig_forward(rig);
    if (op_rig_is_loss(rig)) {
        out.value = rig->step.scales[1] * rig->loss_sum;
        out.terms = fabs(out.value);
        return out;
    }
    y = op_rig_doubles(count);
    dy = op_rig_doubles(count);
    op_rig_get(rig, RIG_Y, y);
    op_rig_get(rig, RIG_DY, dy);
    for (int64_t i = 0; i < count; i++) {
        out.value += y[i] * dy[i];
        out.terms += fabs(y[i] * dy[i]);
    }
    free(y);
    free(dy);
    return out;
}

/* L with element [i] of tensor [of] increased by [step]; the increase that is
 * left after rounding to the op's type is written to *moved. */
static double objective_beside(op_rig_t *rig, op_rig_tensor_t of,
                               double *values, int64_t i, double step,
                               double *moved)
{
    const double kept = values[i];
    double out;

    values[i] = kept + step;
    if (op_number_type(&rig->config) == OP_FLOAT32)
        values[i] = (double)(float)values[i];
    *moved = values[i] - kept;
    op_rig_set(rig, of, values);
    out = objective(rig).value;
    values[i] = kept;
    return out;
}

static void check_element(op_rig_t *rig, op_rig_tensor_t of, double *values,
                          int64_t i, double got, const objective_t *here,
                          const op_differences_t *limits)
{
    double above, below, up, down, want, bend, limit;

    up = objective_beside(rig, of, values, i, limits->step, &above);
    down = objective_beside(rig, of, values, i, -limits->step, &below);
    want = (up - down) / (above - below);
    bend = fabs((up - here->value) / above - (down - here->value) / below) / 2;
    limit = limits->tolerance * (1 + fabs(want)) +
            limits->rounding * here->terms / limits->step +
            (limits->rounding > 0 ? bend : 0);
    cr_assert(fabs(got - want) <= limit,
              "%s: tensor %d element %lld: gradient %.12g, differences %.12g, "
              "at most %.3g apart",
              rig->name, (int)of, (long long)i, got, want, limit);
}

static void check_tensor(op_rig_t *rig, op_rig_tensor_t of,
                         op_rig_tensor_t gradient,
                         const op_differences_t *limits)
{
    const int64_t count = op_rig_count(rig, gradient);
    const int64_t stride = count > limits->tried ? count / limits->tried : 1;
    objective_t here;
    double *values, *got;

    if (count == 0)
        return;
    values = op_rig_doubles(count);
    got = op_rig_doubles(count);
    op_rig_get(rig, gradient, got);
    op_rig_get(rig, of, values);
    here = objective(rig);
    for (int64_t i = 0; i < count; i += stride)
        check_element(rig, of, values, i, got[i], &here, limits);
    op_rig_set(rig, of, values);
    free(values);
    free(got);
}

void op_differences_check(const op_case_t *test, const op_rig_on_t *on,
                          const op_differences_t *limits)
{
    static const op_rig_tensor_t tensors[][2] = {
        {RIG_X, RIG_DX},   {RIG_W, RIG_DW},   {RIG_B, RIG_DB},
        {RIG_P2, RIG_DP2}, {RIG_P3, RIG_DP3}, {RIG_X1, RIG_DX1},
        {RIG_X2, RIG_DX2}};
    op_rig_t rig;

    if (test->evaluation)
        return;
    op_rig_open_on(&rig, test, on);
    op_rig_forward(&rig);
    op_rig_spoil_backward(&rig);
    op_rig_backward(&rig);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        check_tensor(&rig, tensors[i][0], tensors[i][1], limits);
    op_rig_close(&rig);
}
