/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The float functions of the cpu backend compared with libm's in double, over
 * the range that networks use and at its ends. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "op/cpu/vector/activations.h"
#include "op/cpu/vector/channels_native.h"
#include "simd/math.h"

typedef float single_t(float x);
typedef double twice_t(double x);

static float f_exp(float x)
{
    return simd_math_exp(x);
}

static float f_expm1(float x)
{
    return simd_math_expm1(x);
}

static float f_tanh(float x)
{
    return simd_math_tanh(x);
}

static float f_sigmoid(float x)
{
    return simd_math_sigmoid(x);
}

static float f_normal(float x)
{
    return simd_math_normal(x);
}

static float f_log1p(float x)
{
    return simd_math_log1p(x);
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
    cr_expect_eq(simd_math_exp(0), 1.0f);
    cr_expect_eq(simd_math_tanh(1e30f), 1.0f);
    cr_expect_eq(simd_math_tanh(-1e30f), -1.0f);
    cr_expect_eq(simd_math_sigmoid(1e30f), 1.0f);
    cr_expect_lt(simd_math_sigmoid(-1e30f), 1e-37f);
    cr_expect_eq(simd_math_normal(1e18f), 1.0f);
    cr_expect(isfinite(simd_math_exp(1e30f)));
}

/* Threads cut tensors anywhere, and the elements after the last whole vector
 * are computed by other instructions. */
Test(op_math, activations_in_pieces_give_the_same_bits)
{
    enum { COUNT = 4099 };
    static float x[COUNT], dy[COUNT], whole[COUNT], pieces[COUNT];

    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i - COUNT / 2) * 0.004f;
        dy[i] = (float)(i * 37 % 101 - 50) * 0.03f;
    }
    for (op_kind_t kind = OP_LEAKY_RELU; kind <= OP_SCALE; kind++) {
        const cpu_activation_t activation = cpu_activation_of(kind, 0.7);

        cpu_activation_forward(activation, x, whole, COUNT);
        for (int i = 0, size = 1; i < COUNT; i += size, size = size % 13 + 1)
            cpu_activation_forward(activation, x + i, pieces + i,
                                   size < COUNT - i ? size : COUNT - i);
        cr_expect_eq(memcmp(whole, pieces, sizeof whole), 0, "forward of %d",
                     (int)kind);
        cpu_activation_backward(activation, x, dy, whole, COUNT);
        for (int i = 0, size = 1; i < COUNT; i += size, size = size % 13 + 1)
            cpu_activation_backward(activation, x + i, dy + i, pieces + i,
                                    size < COUNT - i ? size : COUNT - i);
        cr_expect_eq(memcmp(whole, pieces, sizeof whole), 0, "backward of %d",
                     (int)kind);
    }
}

/* ---- loops over channels ------------------------------------------------- */

#define VECTORS 40
#define LANES (VECTORS * CPU_WIDE + 5) /* with a remainder */

typedef struct channels_results {
    float sums[5][CPU_WIDE];
    uint16_t y[LANES], dx[LANES], dother[LANES];
} channels_results_t;

/* Call every function once, with numbers of all magnitudes, ties of rounding
 * and a NaN. */
static void channels_run(const cpu_channels_t *loops, cpu_run_t run,
                         channels_results_t *to)
{
    uint16_t x[LANES], other[LANES], dy[LANES];
    cpu_tensors_t forward = {.x = x, .other = other, .to = to->y};
    cpu_tensors_t backward = {
        .x = other, .y = to->y, .dy = dy, .to = to->dx, .dother = to->dother};
    cpu_lanes_t lanes = {.mean = {0}};

    memset(to, 0, sizeof *to);
    for (int i = 0; i < LANES; i++) {
        const float a = ldexpf((float)(i * 37 % 201 - 100), i % 23 - 12);
        const float b = (float)(i * 53 % 97 - 48) / 32;

        half_round_bf16(&x[i], &a, 1);
        half_round_bf16(&other[i], &b, 1);
        dy[i] = other[(LANES - 1) - i < i ? (LANES - 1) - i : i];
    }
    for (int l = 0; l < CPU_WIDE; l++) {
        lanes.mean[l] = (float)l / 16;
        lanes.factor[l] = 1.5f;
        lanes.shift[l] = -0.25f;
        lanes.plain[l] = 0.125f;
        lanes.product[l] = 0.0625f;
    }
    loops->sum(x, run, to->sums[4]);
    loops->moments(x, run, lanes.mean, to->sums[0], to->sums[1]);
    x[0] = 0x7fc1; /* NaN */
    loops->apply(&forward, run, &lanes, true);
    loops->products(&backward, run, lanes.mean, to->sums[2], to->sums[3]);
    loops->backward(&backward, run, &lanes);
}

/* The loops for this CPU give the bits of the generic ones. */
Test(op_math, native_loops_over_channels_round_alike)
{
    const cpu_channels_t *native = cpu_channels_native();
    static channels_results_t any, fast;

    if (native == NULL)
        cr_skip_test("this CPU has no AVX512_BF16");
    for (int width = 1; width <= CPU_WIDE; width += 5) {
        const cpu_run_t run = {.vectors = VECTORS,
                               .stride = CPU_WIDE,
                               .width = width,
                               .rest = width == CPU_WIDE ? 5 : 0,
                               .samples = 1,
                               .bf16 = true};

        channels_run(cpu_channels_any(), run, &any);
        channels_run(native, run, &fast);
        cr_expect_eq(memcmp(&any, &fast, sizeof any), 0, "width %d", width);
        cr_expect_gt(any.y[0] & 0x7fff, 0x7f80, "NaN got lost");
    }
}
