/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The float functions of the cpu backend against libm's in double, over the
 * range that networks use and at its ends. */
#include <criterion/criterion.h>
#include <math.h>

#include "op/cpu/math.h"

typedef float single_t(float x);
typedef double twice_t(double x);

static float f_exp(float x)
{
    return cpu_math_exp(x);
}

static float f_expm1(float x)
{
    return cpu_math_expm1(x);
}

static float f_tanh(float x)
{
    return cpu_math_tanh(x);
}

static float f_sigmoid(float x)
{
    return cpu_math_sigmoid(x);
}

static float f_normal(float x)
{
    return cpu_math_normal(x);
}

static float f_log1p(float x)
{
    return cpu_math_log1p(x);
}

static double d_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double d_normal(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static const struct {
    const char *name;
    single_t *single;
    twice_t *twice;
    double from, to;
    double tolerance; /* relative */
} functions[] = {
    {"exp", f_exp, exp, -86, 88, 3e-7},
    {"expm1", f_expm1, expm1, -20, 80, 6e-7},
    {"expm1 near 0", f_expm1, expm1, -1e-3, 1e-3, 3e-7},
    {"tanh", f_tanh, tanh, -30, 30, 4e-7},
    {"tanh near 0", f_tanh, tanh, -1e-3, 1e-3, 3e-7},
    {"sigmoid", f_sigmoid, d_sigmoid, -80, 80, 4e-7},
    {"normal", f_normal, d_normal, -4, 10, 3e-6},
    {"log1p", f_log1p, log1p, 0, 1, 4e-7},
};

Test(op_math, relative_error)
{
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        const double width = functions[f].to - functions[f].from;
        double worst = 0, at = 0;

        for (int i = 0; i <= 200000; i++) {
            float x = (float)(functions[f].from + width * i / 200000);
            double want = functions[f].twice((double)x);
            double gap = fabs((double)functions[f].single(x) - want);

            if (gap > worst * fabs(want)) {
                worst = gap / fabs(want);
                at = (double)x;
            }
        }
        cr_expect_leq(worst, functions[f].tolerance, "%s: %g at %g",
                      functions[f].name, worst, at);
    }
}

Test(op_math, nan_and_ends)
{
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        cr_expect(isnan(functions[f].single(NAN)), "%s", functions[f].name);
    cr_expect_eq(cpu_math_exp(0), 1.0f);
    cr_expect_eq(cpu_math_tanh(1e30f), 1.0f);
    cr_expect_eq(cpu_math_tanh(-1e30f), -1.0f);
    cr_expect_eq(cpu_math_sigmoid(1e30f), 1.0f);
    cr_expect_lt(cpu_math_sigmoid(-1e30f), 1e-37f);
    cr_expect_eq(cpu_math_normal(1e18f), 1.0f);
    cr_expect(isfinite(cpu_math_exp(1e30f)));
}
