/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Element-wise sums and maxima. No function here may depend on where a range
 * begins or who calls it: equal inputs give equal bits. `omp simd` only allows
 * the compiler to vectorise although into may be a or b (exact overlap).
 */
#include "comm/comm_ops.h"

#define DEFINE_SUM(name, real, calc)                                         \
    static void name(real *into, const real *a, const real *b, size_t count) \
    {                                                                        \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) into[i] =     \
            (real)((calc)a[i] + (calc)b[i]);                                 \
    }

/* x != x is true of NaN only (and of no integer). */
#define DEFINE_MAX(name, real)                                               \
    static void name(real *into, const real *a, const real *b, size_t count) \
    {                                                                        \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) into[i] =     \
            a[i] >= b[i] || a[i] != a[i] ? a[i] : b[i];                      \
    }

DEFINE_SUM(sum_float32, float, float)
DEFINE_SUM(sum_float64, double, double)
DEFINE_SUM(sum_int64, int64_t, uint64_t) /* wraps, defined */
DEFINE_MAX(max_float32, float)
DEFINE_MAX(max_float64, double)

static void max_int64(int64_t *into, const int64_t *a, const int64_t *b,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = a[i] >= b[i] ? a[i] : b[i];
}

size_t comm_type_bytes(comm_type_t type)
{
    return type == COMM_FLOAT32 ? sizeof(float) : sizeof(int64_t);
}

void comm_reduce(void *into, const void *a, const void *b, size_t count,
                 comm_type_t type, comm_op_t op)
{
    switch (type) {
    case COMM_FLOAT32:
        (op == COMM_SUM ? sum_float32 : max_float32)(into, a, b, count);
        break;
    case COMM_FLOAT64:
        (op == COMM_SUM ? sum_float64 : max_float64)(into, a, b, count);
        break;
    case COMM_INT64:
        (op == COMM_SUM ? sum_int64 : max_int64)(into, a, b, count);
        break;
    }
}
