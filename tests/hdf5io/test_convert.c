/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/convert.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Store a number at an odd address, in this or the opposite byte order. */
static const void *stored(const void *value, size_t bytes, bool swap,
                          unsigned char room[9])
{
    const unsigned char *from = value;

    for (size_t i = 0; i < bytes; i++)
        room[1 + i] = from[swap ? bytes - 1 - i : i];
    return room + 1;
}

#define CHECK_FLOAT(kind_, ctype, number, expected)                           \
    for (int swap = 0; swap < 2; swap++) {                                    \
        convert_type_t type = {.kind = (kind_), .swap = swap};                \
        ctype value = (number);                                               \
        unsigned char room[9];                                                \
        float out = -1;                                                       \
                                                                              \
        cr_assert_eq(hdf5io_convert_bytes(type), sizeof value);               \
        hdf5io_convert_floats(type, stored(&value, sizeof value, swap, room), \
                              1, &out);                                       \
        cr_assert_eq(out, (expected));                                        \
    }

Test(convert, every_kind_to_float)
{CHECK_FLOAT(CONVERT_I8, int8_t, -128, -128.0F) CHECK_FLOAT(CONVERT_U8, uint8_t,
                                                            255, 255.0F)
     CHECK_FLOAT(CONVERT_I16, int16_t, -32768,
                 -32768.0F) CHECK_FLOAT(CONVERT_U16, uint16_t, 65535, 65535.0F)
         CHECK_FLOAT(CONVERT_I32, int32_t, INT32_MIN, -0x1p31F)
             CHECK_FLOAT(CONVERT_U32, uint32_t, 0x80000001U, 0x1p31F)
                 CHECK_FLOAT(CONVERT_I64, int64_t, INT64_MIN, -0x1p63F)
                     CHECK_FLOAT(CONVERT_U64, uint64_t, UINT64_MAX, 0x1p64F)
                         CHECK_FLOAT(CONVERT_F32, float, 1.1F, 1.1F)
                             CHECK_FLOAT(CONVERT_F64, double, 1.1, (float)1.1)}

#define CHECK_INT(kind_, ctype, number, good)                             \
    for (int swap = 0; swap < 2; swap++) {                                \
        convert_type_t type = {.kind = (kind_), .swap = swap};            \
        ctype value = (number);                                           \
        unsigned char room[9];                                            \
        int64_t out = 77;                                                 \
                                                                          \
        cr_assert_eq(                                                     \
            hdf5io_convert_ints(                                          \
                type, stored(&value, sizeof value, swap, room), 1, &out), \
            (size_t)(good));                                              \
        if (good)                                                         \
            cr_assert_eq(out, (int64_t)(number));                         \
    }

Test(convert, every_kind_to_int)
{CHECK_INT(CONVERT_I8, int8_t, -5, 1) CHECK_INT(CONVERT_U8, uint8_t, 200, 1)
     CHECK_INT(CONVERT_I16, int16_t, -300, 1)
         CHECK_INT(CONVERT_U16, uint16_t, 60000, 1)
             CHECK_INT(CONVERT_I32, int32_t, INT32_MIN, 1)
                 CHECK_INT(CONVERT_U32, uint32_t, UINT32_MAX, 1)
                     CHECK_INT(CONVERT_I64, int64_t, INT64_MIN, 1)
                         CHECK_INT(CONVERT_U64, uint64_t, INT64_MAX, 1)
                             CHECK_INT(CONVERT_F32, float, 3.0F, 1)
                                 CHECK_INT(CONVERT_F64, double, -0x1p63, 1)}

Test(convert, what_is_no_int64_is_found)
{CHECK_INT(CONVERT_U64, uint64_t, (uint64_t)INT64_MAX + 1, 0)
     CHECK_INT(CONVERT_F32, float, 0.5F, 0)
         CHECK_INT(CONVERT_F64, double, (double)NAN, 0)
             CHECK_INT(CONVERT_F64, double, (double)INFINITY, 0)
                 CHECK_INT(CONVERT_F64, double, 0x1p63, 0)}

Test(convert, the_first_bad_number_is_reported)
{
    convert_type_t type = {.kind = CONVERT_F64};
    const double values[] = {1, 2, 2.5, 3.5};
    int64_t out[4];
    char text[32];

    cr_assert_eq(hdf5io_convert_ints(type, values, 4, out), 2);
    cr_assert_eq(out[1], 2);
    cr_assert_str_eq(hdf5io_convert_format(type, &values[2], text, sizeof text),
                     "2.5");
}

Test(convert, doubles_have_all_bits)
{
    const convert_type_t i64 = {.kind = CONVERT_I64};
    const convert_type_t f16 = {.kind = CONVERT_F16};
    const int64_t large[] = {INT64_C(1) << 53, -((INT64_C(1) << 40) + 1)};
    const uint16_t half[] = {0xc500, 0x3801}; /* -5, 0.5 + 2^-11 */
    double out[2];

    hdf5io_convert_doubles(i64, large, 2, out);
    cr_assert_eq(out[0], 0x1p53);
    cr_assert_eq(out[1], -0x1p40 - 1);
    hdf5io_convert_doubles(f16, half, 2, out);
    cr_assert_eq(out[0], -5);
    cr_assert_eq(out[1], 0.5 + 0x1p-11);
}

Test(convert, integers_that_no_float_holds_are_found)
{
    static int64_t many[2000];
    const convert_type_t i64 = {.kind = CONVERT_I64};
    const convert_type_t u64 = {.kind = CONVERT_U64};
    const convert_type_t i32 = {.kind = CONVERT_I32};
    const int64_t good[] = {0, INT64_MIN, -(1 << 24), INT64_C(3) << 61};
    const uint64_t large[] = {UINT64_C(1) << 63, UINT64_MAX};
    const int32_t small[] = {1 << 24, -(1 << 24) - 1};

    cr_assert_eq(hdf5io_convert_inexact(i64, good, 4), 4);
    cr_assert_eq(hdf5io_convert_inexact(u64, large, 2), 1);
    cr_assert_eq(hdf5io_convert_inexact(i32, small, 2), 1);
    many[1700] = -((INT64_C(1) << 40) + 1);
    cr_assert_eq(hdf5io_convert_inexact(i64, many, 2000), 1700);
    cr_assert_eq(hdf5io_convert_inexact(i64, many, 1700), 1700);
}

Test(convert, floats_stay_as_they_are)
{
    convert_type_t type = {.kind = CONVERT_F32};
    const float values[] = {-0.0F, 0.0F, 1e-42F, INFINITY, 3.3F};
    float out[5];

    hdf5io_convert_floats(type, values, 5, out);
    cr_assert_arr_eq(out, values, sizeof values);
}

Test(convert, numbers_as_text)
{
    convert_type_t i16 = {.kind = CONVERT_I16}, u64 = {.kind = CONVERT_U64};
    const uint64_t large = UINT64_MAX;
    const int16_t small = -7;
    char text[32];

    cr_assert_str_eq(hdf5io_convert_format(i16, &small, text, sizeof text),
                     "-7");
    cr_assert_str_eq(hdf5io_convert_format(u64, &large, text, sizeof text),
                     "18446744073709551615");
}

/* The value of the 16-bit float [bits] with [mantissa] bits of mantissa, by its
 * definition. Neither infinity nor NaN. */
static double half_value(unsigned bits, int mantissa)
{
    const int most = (1 << (15 - mantissa)) - 1, bias = most / 2;
    const int exponent = (int)(bits >> mantissa) & most;
    const double part =
        ldexp((double)(bits & ((1U << mantissa) - 1)), -mantissa);
    const double value = exponent == 0 ? ldexp(part, 1 - bias)
                                       : ldexp(1 + part, exponent - bias);

    return bits >> 15 ? -value : value;
}

/* More of them than are converted at once, at an odd address. */
static void check_halves(convert_kind_t kind, int mantissa, bool swap)
{
    enum { COUNT = 65536 };
    static unsigned char room[1 + 2 * COUNT];
    static float out[COUNT];
    const convert_type_t type = {.kind = kind, .swap = swap};
    const unsigned most = (1U << (15 - mantissa)) - 1;

    for (unsigned i = 0; i < COUNT; i++) {
        const uint16_t bits =
            swap ? __builtin_bswap16((uint16_t)i) : (uint16_t)i;

        memcpy(room + 1 + 2 * (size_t)i, &bits, sizeof bits);
    }
    hdf5io_convert_floats(type, room + 1, COUNT, out);
    for (unsigned i = 0; i < COUNT; i++) {
        const bool finite = (i >> mantissa & most) != most;
        const bool nan = !finite && (i & ((1U << mantissa) - 1)) != 0;
        const double value = (double)out[i];

        if (finite) {
            cr_assert_eq(value, half_value(i, mantissa), "bits %04x", i);
            cr_assert_eq(signbit(value) != 0, i >> 15, "bits %04x", i);
        } else {
            cr_assert(nan ? isnan(value)
                          : value == (i >> 15 ? -INFINITY : INFINITY),
                      "bits %04x", i);
        }
    }
}

Test(convert, every_16_bit_float)
{
    for (int swap = 0; swap < 2; swap++) {
        check_halves(CONVERT_F16, 10, swap);
        check_halves(CONVERT_BF16, 7, swap);
    }
}

Test(convert, a_16_bit_float_as_integer_and_text)
{
    const convert_type_t type = {.kind = CONVERT_F16};
    const uint16_t values[] = {0xc500, 0x3800}; /* -5, 0.5 */
    int64_t out[2];
    char text[32];

    cr_assert_eq(hdf5io_convert_bytes(type), 2);
    cr_assert_eq(hdf5io_convert_ints(type, values, 2, out), 1);
    cr_assert_eq(out[0], -5);
    cr_assert_str_eq(hdf5io_convert_format(type, &values[1], text, sizeof text),
                     "0.5");
}
