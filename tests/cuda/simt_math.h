/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The functions of CUDA that a kernel may call and that the host's <math.h>
 * does not have. The fast ones (__expf ...) are the exact ones here.
 */
#ifndef CDDP_TESTS_CUDA_SIMT_MATH_H
#define CDDP_TESTS_CUDA_SIMT_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- the same bits as another type --------------------------------------- */

template <class To, class From> inline To simt_bits(From from)
{
    To to;

    static_assert(sizeof to == sizeof from, "the same bits");
    memcpy(&to, &from, sizeof to);
    return to;
}

inline int __float_as_int(float x)
{
    return simt_bits<int>(x);
}

inline unsigned __float_as_uint(float x)
{
    return simt_bits<unsigned>(x);
}

inline float __int_as_float(int x)
{
    return simt_bits<float>(x);
}

inline float __uint_as_float(unsigned x)
{
    return simt_bits<float>(x);
}

inline long long __double_as_longlong(double x)
{
    return simt_bits<long long>(x);
}

inline double __longlong_as_double(long long x)
{
    return simt_bits<double>(x);
}

/* ---- least and largest --------------------------------------------------- */

#define SIMT_MIN_MAX(type)          \
    inline type min(type a, type b) \
    {                               \
        return b < a ? b : a;       \
    }                               \
    inline type max(type a, type b) \
    {                               \
        return a < b ? b : a;       \
    }

SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX

/* As on a GPU, a NaN loses. */
inline float min(float a, float b)
{
    return fminf(a, b);
}

inline float max(float a, float b)
{
    return fmaxf(a, b);
}

inline double min(double a, double b)
{
    return fmin(a, b);
}

inline double max(double a, double b)
{
    return fmax(a, b);
}

/* ---- arithmetic ---------------------------------------------------------- */

#define SIMT_UNARY(name, type, value) \
    inline type name(type x)          \
    {                                 \
        return value;                 \
    }
#define SIMT_BINARY(name, type, value) \
    inline type name(type x, type y)   \
    {                                  \
        return value;                  \
    }

SIMT_UNARY(rsqrtf, float, 1 / sqrtf(x))
SIMT_UNARY(rsqrt, double, 1 / sqrt(x))
SIMT_UNARY(__frcp_rn, float, 1 / x)
SIMT_UNARY(__fsqrt_rn, float, sqrtf(x))
SIMT_UNARY(__expf, float, expf(x))
SIMT_UNARY(__logf, float, logf(x))
SIMT_UNARY(__log2f, float, log2f(x))
SIMT_UNARY(__sinf, float, sinf(x))
SIMT_UNARY(__cosf, float, cosf(x))
SIMT_UNARY(__saturatef, float, x > 0 ? (x < 1 ? x : 1.0f) : 0.0f)
SIMT_BINARY(__powf, float, powf(x, y))
SIMT_BINARY(__fdividef, float, x / y)
SIMT_BINARY(__fdiv_rn, float, x / y)
SIMT_BINARY(__ddiv_rn, double, x / y)
/* Never merged into a fused multiply-add. */
SIMT_BINARY(__fadd_rn, float, x + y)
SIMT_BINARY(__fsub_rn, float, x - y)
SIMT_BINARY(__fmul_rn, float, x *y)
SIMT_BINARY(__dadd_rn, double, x + y)
SIMT_BINARY(__dsub_rn, double, x - y)
SIMT_BINARY(__dmul_rn, double, x *y)
SIMT_BINARY(__umulhi, unsigned, (unsigned)((uint64_t)x *y >> 32))
SIMT_BINARY(__umul64hi, unsigned long long,
            (unsigned long long)((unsigned __int128)x *y >> 64))
#undef SIMT_UNARY
#undef SIMT_BINARY

inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}

inline double __fma_rn(double x, double y, double z)
{
    return fma(x, y, z);
}

/* ---- conversions --------------------------------------------------------- */

#define SIMT_CONVERT(name, to, from, value) \
    inline to name(from x)                  \
    {                                       \
        return (to)value;                   \
    }

SIMT_CONVERT(__double2float_rn, float, double, x)
SIMT_CONVERT(__int2float_rn, float, int, x)
SIMT_CONVERT(__uint2float_rn, float, unsigned, x)
SIMT_CONVERT(__ll2float_rn, float, long long, x)
SIMT_CONVERT(__ll2double_rn, double, long long, x)
SIMT_CONVERT(__float2int_rn, int, float, rintf(x))
SIMT_CONVERT(__float2int_rd, int, float, floorf(x))
SIMT_CONVERT(__float2int_rz, int, float, truncf(x))
SIMT_CONVERT(__float2ll_rn, long long, float, rintf(x))
SIMT_CONVERT(__double2ll_rn, long long, double, rint(x))
#undef SIMT_CONVERT

/* ---- bits ---------------------------------------------------------------- */

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

inline int __clzll(long long x)
{
    return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}

inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

#endif
