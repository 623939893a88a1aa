/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Macros make the loops for each kind of number: load (by memcpy, so that
 * alignment and aliasing do not matter, and a byte swap that the compiler makes
 * one instruction of), then convert.
 */
#include "hdf5io/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/numeric.h"

/* Kind, C type, unsigned type of the same width, byte swap. */
#define CONVERT_MAP(X)                            \
    X(I8, int8_t, uint8_t, CONVERT_SAME)          \
    X(U8, uint8_t, uint8_t, CONVERT_SAME)         \
    X(I16, int16_t, uint16_t, __builtin_bswap16)  \
    X(U16, uint16_t, uint16_t, __builtin_bswap16) \
    X(I32, int32_t, uint32_t, __builtin_bswap32)  \
    X(U32, uint32_t, uint32_t, __builtin_bswap32) \
    X(I64, int64_t, uint64_t, __builtin_bswap64)  \
    X(U64, uint64_t, uint64_t, __builtin_bswap64) \
    X(F32, float, uint32_t, __builtin_bswap32)    \
    X(F64, double, uint64_t, __builtin_bswap64)

#define CONVERT_SAME(bits) (bits)

/* Two loops, so that the common one without swap is vectorized. */
#define CONVERT_LOOPS(name, type, real)                                       \
    static void convert_##real##s_##name(const unsigned char *in, bool swap,  \
                                         size_t count, real *out)             \
    {                                                                         \
        for (size_t i = 0; !swap && i < count; i++)                           \
            out[i] = (real)convert_load_##name(in + i * sizeof(type), false); \
        for (size_t i = 0; swap && i < count; i++)                            \
            out[i] = (real)convert_load_##name(in + i * sizeof(type), true);  \
    }

#define CONVERT_LOAD(name, type, word, swapped)                                \
    static inline type convert_load_##name(const unsigned char *in, bool swap) \
    {                                                                          \
        word bits;                                                             \
        type value;                                                            \
                                                                               \
        memcpy(&bits, in, sizeof bits);                                        \
        if (swap)                                                              \
            bits = swapped(bits);                                              \
        memcpy(&value, &bits, sizeof value);                                   \
        return value;                                                          \
    }                                                                          \
    CONVERT_LOOPS(name, type, float)                                           \
    CONVERT_LOOPS(name, type, double)
CONVERT_MAP(CONVERT_LOAD)
#undef CONVERT_LOAD

/* ---- 16-bit floats ------------------------------------------------------- */

/* half.h widens many of them at once: so in pieces that stay in the cache. */
#define HALF_PIECE 512

static void half_widen(convert_type_t type, const unsigned char *in,
                       size_t count, float *out)
{
    uint16_t bits[HALF_PIECE];

    memcpy(bits, in, count * sizeof bits[0]);
    for (size_t i = 0; type.swap && i < count; i++)
        bits[i] = __builtin_bswap16(bits[i]);
    if (type.kind == CONVERT_F16)
        half_widen_fp16(out, bits, count);
    else
        half_widen_bf16(out, bits, count);
}

static void convert_halves(convert_type_t type, const unsigned char *in,
                           size_t count, float *out)
{
    for (size_t from = 0; from < count; from += HALF_PIECE) {
        const size_t left = count - from;

        half_widen(type, in + from * sizeof(uint16_t),
                   left < HALF_PIECE ? left : HALF_PIECE, out + from);
    }
}

/* ---- any type ------------------------------------------------------------ */

size_t hdf5io_convert_bytes(convert_type_t type)
{
    switch (type.kind) {
#define CONVERT_CASE(name, ctype, word, swapped) \
    case CONVERT_##name:                         \
        return sizeof(ctype);
        CONVERT_MAP(CONVERT_CASE)
#undef CONVERT_CASE
    case CONVERT_F16:
    case CONVERT_BF16:
        return sizeof(uint16_t);
    case CONVERT_KINDS:
        break;
    }
    return 0;
}

bool hdf5io_convert_is_real(convert_type_t type)
{
    return type.kind == CONVERT_F32 || type.kind == CONVERT_F64 ||
           type.kind == CONVERT_F16 || type.kind == CONVERT_BF16;
}

void hdf5io_convert_floats(convert_type_t type, const void *in, size_t count,
                           float *out)
{
    switch (type.kind) {
#define CONVERT_CASE(name, ctype, word, swapped)          \
    case CONVERT_##name:                                  \
        convert_floats_##name(in, type.swap, count, out); \
        return;
        CONVERT_MAP(CONVERT_CASE)
#undef CONVERT_CASE
    case CONVERT_F16:
    case CONVERT_BF16:
        convert_halves(type, in, count, out);
        return;
    case CONVERT_KINDS:
        break;
    }
}

static void convert_halves_widely(convert_type_t type, const unsigned char *in,
                                  size_t count, double *out)
{
    float piece[HALF_PIECE];

    for (size_t from = 0; from < count; from += HALF_PIECE) {
        const size_t left = count - from;
        const size_t take = left < HALF_PIECE ? left : HALF_PIECE;

        half_widen(type, in + from * sizeof(uint16_t), take, piece);
        for (size_t i = 0; i < take; i++)
            out[from + i] = (double)piece[i];
    }
}

void hdf5io_convert_doubles(convert_type_t type, const void *in, size_t count,
                            double *out)
{
    switch (type.kind) {
#define CONVERT_CASE(name, ctype, word, swapped)           \
    case CONVERT_##name:                                   \
        convert_doubles_##name(in, type.swap, count, out); \
        return;
        CONVERT_MAP(CONVERT_CASE)
#undef CONVERT_CASE
    case CONVERT_F16:
    case CONVERT_BF16:
        convert_halves_widely(type, in, count, out);
        return;
    case CONVERT_KINDS:
        break;
    }
}

/* Convert [real] if it is the value of an int64. 2^63 is a double, but not an
 * int64. */
static bool convert_real_to_int(double real, int64_t *out)
{
    if (!(real >= -0x1p63 && real < 0x1p63))
        return false;
    *out = (int64_t)real;
    return (double)*out == real;
}

/* Convert one number; false if it is not an int64. */
static bool convert_int(convert_type_t type, const unsigned char *in,
                        int64_t *out)
{
    uint64_t large;
    float real;

    switch (type.kind) {
    case CONVERT_I8:
        *out = convert_load_I8(in, type.swap);
        return true;
    case CONVERT_U8:
        *out = convert_load_U8(in, type.swap);
        return true;
    case CONVERT_I16:
        *out = convert_load_I16(in, type.swap);
        return true;
    case CONVERT_U16:
        *out = convert_load_U16(in, type.swap);
        return true;
    case CONVERT_I32:
        *out = convert_load_I32(in, type.swap);
        return true;
    case CONVERT_U32:
        *out = convert_load_U32(in, type.swap);
        return true;
    case CONVERT_I64:
        *out = convert_load_I64(in, type.swap);
        return true;
    case CONVERT_U64:
        large = convert_load_U64(in, type.swap);
        *out = (int64_t)large;
        return large <= INT64_MAX;
    case CONVERT_F32:
        return convert_real_to_int((double)convert_load_F32(in, type.swap),
                                   out);
    case CONVERT_F64:
        return convert_real_to_int(convert_load_F64(in, type.swap), out);
    case CONVERT_F16:
    case CONVERT_BF16:
        half_widen(type, in, 1, &real);
        return convert_real_to_int((double)real, out);
    case CONVERT_KINDS:
        break;
    }
    return false;
}

size_t hdf5io_convert_ints(convert_type_t type, const void *in, size_t count,
                           int64_t *out)
{
    size_t bytes = hdf5io_convert_bytes(type);
    const unsigned char *next = in;

    for (size_t i = 0; i < count; i++, next += bytes)
        if (!convert_int(type, next, &out[i]))
            return i;
    return count;
}

/* Does float32 hold [value]? It has at most 24 bits from its highest 1 to its
 * lowest 1. */
static bool convert_exact(uint64_t value)
{
    return value == 0 || (uint64_t)1 << 24 >= value >> __builtin_ctzll(value);
}

/* The index of the first of [count] integers that is not exact, or [count]. */
static size_t convert_inexact_find(convert_type_t type, const unsigned char *in,
                                   size_t count)
{
    const size_t bytes = hdf5io_convert_bytes(type);

    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;
        const bool fits = convert_int(type, in + i * bytes, &value);
        const uint64_t bits = (uint64_t)value;

        if (!convert_exact(fits && value < 0 ? -bits : bits))
            return i;
    }
    return count;
}

size_t hdf5io_convert_inexact(convert_type_t type, const void *in, size_t count)
{
    const size_t bytes = hdf5io_convert_bytes(type);
    double piece[HALF_PIECE];

    if (hdf5io_convert_is_real(type) || bytes < sizeof(float))
        return count;
    for (size_t from = 0; from < count; from += HALF_PIECE) {
        const unsigned char *next = (const unsigned char *)in + from * bytes;
        const size_t left = count - from;
        const size_t take = left < HALF_PIECE ? left : HALF_PIECE;
        bool large = false;
        size_t found;

        /* Most integers are small. This loop finds that fast. */
        hdf5io_convert_doubles(type, next, take, piece);
        for (size_t i = 0; i < take; i++)
            large |= piece[i] > 0x1p24 || piece[i] < -0x1p24;
        found = large ? convert_inexact_find(type, next, take) : take;
        if (found < take)
            return from + found;
    }
    return count;
}

char *hdf5io_convert_format(convert_type_t type, const void *in, char *out,
                            size_t room)
{
    int64_t value;
    float real = 0;

    if (type.kind == CONVERT_F64) {
        numeric_print(out, room, "%.17g", convert_load_F64(in, type.swap));
    } else if (hdf5io_convert_is_real(type)) {
        hdf5io_convert_floats(type, in, 1, &real);
        numeric_print(out, room, "%.9g", (double)real);
    } else if (type.kind == CONVERT_U64)
        snprintf(out, room, "%" PRIu64, convert_load_U64(in, type.swap));
    else if (convert_int(type, in, &value))
        snprintf(out, room, "%" PRId64, value);
    return out;
}
