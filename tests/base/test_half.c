/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Converts every 16-bit value, and compares rounding with the two neighbouring
 * values in double precision. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/half.h"

#define ALL 65536
#define ROUNDED 200003

typedef struct format {
    int exponent_bits, fraction_bits;
    void (*widen)(float *to, const uint16_t *from, size_t count);
    void (*round)(uint16_t *to, const float *from, size_t count);
} format_t;

static const format_t formats[] = {
    {8, 7, half_widen_bf16, half_round_bf16},
    {5, 10, half_widen_fp16, half_round_fp16},
};

/* Value of [half] by the definition of the format. */
static double value_of(const format_t *format, uint16_t half)
{
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    int top = (1 << format->exponent_bits) - 1;
    int exponent = half >> format->fraction_bits & top;
    int fraction = half & ((1 << format->fraction_bits) - 1);
    double value;

    if (exponent == top)
        value = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - format->fraction_bits);
    else
        value = ldexp(fraction + (1 << format->fraction_bits),
                      exponent - bias - format->fraction_bits);
    return half & 0x8000 ? -value : value;
}

/* Conversion of few elements, which uses no vectors, must give the same bits,
 * except for NaN. */
static void check_few(const format_t *format, const uint16_t *halves,
                      const float *wide)
{
    float few[5];
    uint16_t back[5], whole[ALL];

    format->round(whole, wide, ALL);
    for (size_t i = 0; i + 5 <= ALL; i += 5) {
        format->widen(few, halves + i, 5);
        format->round(back, wide + i, 5);
        for (size_t j = 0; j < 5; j++) {
            if (isnan(wide[i + j])) {
                cr_assert(isnan(few[j]));
                cr_assert(isnan(value_of(format, back[j])));
                continue;
            }
            cr_assert_eq(few[j], wide[i + j]);
            cr_assert_eq(back[j], whole[i + j]);
        }
    }
}

Test(half, widening_is_exact_and_rounds_back)
{
    static uint16_t halves[ALL], back[ALL];
    static float wide[ALL];

    for (size_t f = 0; f < 2; f++) {
        for (size_t i = 0; i < ALL; i++)
            halves[i] = (uint16_t)i;
        formats[f].widen(wide, halves, ALL);
        formats[f].round(back, wide, ALL);
        check_few(&formats[f], halves, wide);
        for (size_t i = 0; i < ALL; i++) {
            double value = value_of(&formats[f], halves[i]);

            if (isnan(value)) {
                cr_assert(isnan(wide[i]), "format %zu, %zx", f, i);
                cr_assert(isnan(value_of(&formats[f], back[i])));
                continue;
            }
            cr_assert((double)wide[i] == value &&
                          !signbit(wide[i]) == !(i & 0x8000),
                      "format %zu, %zx: %g", f, i, (double)wide[i]);
            cr_assert_eq(back[i], halves[i], "format %zu, %zx", f, i);
        }
    }
}

/* Value number [i] between two neighbouring 16-bit floats, mostly at or next to
 * the midpoint. */
static float between(const format_t *format, size_t i)
{
    uint16_t low = (uint16_t)(i * 40503u % 0x8000u);
    double a = value_of(format, low), b = value_of(format, (uint16_t)(low + 1));
    static const double places[] = {0.5, 0.25, 0.499, 0.501, 0.9, 0.01};
    double place = places[i % 6];
    float middle;

    if (isnan(a) || isnan(b) || isinf(a))
        return 1;
    if (isinf(b)) /* the next value that the format would have */
        b = a + (a - value_of(format, (uint16_t)(low - 1)));
    middle = (float)(a + (b - a) * place);
    return i % 2 ? -middle : middle;
}

static void check_nearest(const format_t *format, float from, uint16_t found)
{
    uint16_t magnitude = found & 0x7fff;
    int top = (1 << format->exponent_bits) - 1;
    uint16_t infinity = (uint16_t)(top << format->fraction_bits);
    double target = fabs((double)from), miss, other;

    cr_assert_eq(found >> 15, signbit(from) != 0);
    cr_assert_leq(magnitude, infinity);
    if (magnitude ==
        infinity) { /* more than half a step above the largest value */
        double last = value_of(format, infinity - 1);
        double step = last - value_of(format, infinity - 2);

        cr_assert_geq(target, last + step / 2);
        return;
    }
    miss = fabs(value_of(format, magnitude) - target);
    for (int side = -1; side <= 1; side += 2) {
        if ((magnitude == 0 && side < 0) || magnitude + side >= infinity)
            continue;
        other = fabs(value_of(format, (uint16_t)(magnitude + side)) - target);
        cr_assert(miss < other || (miss == other && magnitude % 2 == 0),
                  "%a became %x", (double)from, found);
    }
}

Test(half, rounds_to_nearest_even)
{
    static float from[ROUNDED];
    static uint16_t to[ROUNDED];

    for (size_t f = 0; f < 2; f++) {
        for (size_t i = 0; i < ROUNDED; i++)
            from[i] = between(&formats[f], i);
        formats[f].round(to, from, ROUNDED);
        for (size_t i = 0; i < ROUNDED; i++) {
            uint16_t one;

            formats[f].round(&one, &from[i], 1);
            cr_assert_eq(one, to[i], "%a", (double)from[i]);
            check_nearest(&formats[f], from[i], to[i]);
        }
    }
}

Test(half, extremes)
{
    static const float from[] = {65519.996f, 65520.0f, 1e30f,    3.39e38f,
                                 3.4e38f,    1e-8f,    3e-8f,    2.9e-8f,
                                 -0.0f,      INFINITY, -INFINITY};
    static const uint16_t fp16[] = {0x7bff, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0,
                                    1,      0,      0x8000, 0x7c00, 0xfc00};
    uint16_t to[11];

    half_round_fp16(to, from, 11);
    for (int i = 0; i < 11; i++)
        cr_assert_eq(to[i], fp16[i], "%d: %x", i, to[i]);
    half_round_bf16(to, from, 11);
    cr_assert_eq(to[3], 0x7f7f);
    cr_assert_eq(to[4], 0x7f80);
    cr_assert_eq(to[8], 0x8000);
    cr_assert_eq(to[9], 0x7f80);
    cr_assert_eq(to[10], 0xff80);
}
