/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Element-wise sums, maxima and minima. No function here may depend on where a
 * range begins or on its caller: equal inputs give equal bits. `omp simd`
 * allows the compiler to vectorise even though [into] may be [a] or [b] (exact
 * overlap).
 */
#include <string.h>

#include "base/clones.h"
#include "base/half.h"
#include "comm/comm_ops.h"

typedef void (*reduce_t)(void *into, const void *a, const void *b,
                         size_t count);

#define DEFINE(name, real, result)                                         \
    BASE_CLONES static void name(void *into, const void *a, const void *b, \
                                 size_t count)                             \
    {                                                                      \
        const real *x = a, *y = b;                                         \
        real *to = into;                                                   \
                                                                           \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++) to[i] =     \
            (real)(result);                                                \
    }

/* x != x is true for NaN only, so that a NaN becomes the result. Integers wrap
 * around, which is defined for the unsigned type. */
#define SUM(wrapping) (wrapping) x[i] + (wrapping)y[i]
#define MAX x[i] >= y[i] || x[i] != x[i] ? x[i] : y[i]
#define MIN x[i] <= y[i] || x[i] != x[i] ? x[i] : y[i]
#define MAX_INT x[i] >= y[i] ? x[i] : y[i]
#define MIN_INT x[i] <= y[i] ? x[i] : y[i]

DEFINE(sum_float32, float, SUM(float))
DEFINE(max_float32, float, MAX)
DEFINE(min_float32, float, MIN)
DEFINE(sum_float64, double, SUM(double))
DEFINE(max_float64, double, MAX)
DEFINE(min_float64, double, MIN)
DEFINE(sum_int64, int64_t, SUM(uint64_t))
DEFINE(max_int64, int64_t, MAX_INT)
DEFINE(min_int64, int64_t, MIN_INT)
DEFINE(sum_int32, int32_t, SUM(uint32_t))
DEFINE(max_int32, int32_t, MAX_INT)
DEFINE(min_int32, int32_t, MIN_INT)

typedef struct type_row {
    const char *name;
    size_t bytes;
    /* For 16-bit floats: the functions of the wider type. */
    reduce_t reduce[COMM_OPS];
    void (*widen)(float *to, const uint16_t *from, size_t count);
    void (*round)(uint16_t *to, const float *from, size_t count);
} type_row_t;

static const type_row_t types[COMM_TYPES] = {
    [COMM_FLOAT32] = {.name = "float32",
                      .bytes = sizeof(float),
                      .reduce = {sum_float32, max_float32, min_float32}},
    [COMM_FLOAT64] = {.name = "float64",
                      .bytes = sizeof(double),
                      .reduce = {sum_float64, max_float64, min_float64}},
    [COMM_INT64] = {.name = "int64",
                    .bytes = sizeof(int64_t),
                    .reduce = {sum_int64, max_int64, min_int64}},
    [COMM_INT32] = {.name = "int32",
                    .bytes = sizeof(int32_t),
                    .reduce = {sum_int32, max_int32, min_int32}},
    [COMM_BFLOAT16] = {.name = "bfloat16",
                       .bytes = sizeof(uint16_t),
                       .reduce = {sum_float32, max_float32, min_float32},
                       .widen = half_widen_bf16,
                       .round = half_round_bf16},
    [COMM_FLOAT16] = {.name = "float16",
                      .bytes = sizeof(uint16_t),
                      .reduce = {sum_float32, max_float32, min_float32},
                      .widen = half_widen_fp16,
                      .round = half_round_fp16},
};

size_t comm_type_bytes(comm_type_t type)
{
    return types[type].bytes;
}

const char *comm_type_name(comm_type_t type)
{
    return types[type].name;
}

bool comm_type_rounds(comm_type_t type)
{
    return types[type].round != NULL;
}

/* ---- two parts ----------------------------------------------------------- */

void comm_reduce(void *into, const void *a, const void *b, size_t count,
                 comm_type_t type, comm_op_t op)
{
    const size_t whole = COMM_BLOCK_ELEMENTS;
    comm_block_t block;

    if (!comm_type_rounds(type)) {
        types[type].reduce[op](into, a, b, count);
        return;
    }
    for (size_t at = 0; at < count; at += whole) {
        size_t some = count - at < whole ? count - at : whole;

        comm_block_begin(&block, (const uint16_t *)a + at, some, type);
        comm_block_add(&block, (const uint16_t *)b + at, some, type, op);
        comm_block_end(&block, (uint16_t *)into + at, some, type);
    }
}

/* ---- many parts ---------------------------------------------------------- */

void comm_block_begin(comm_block_t *block, const void *part, size_t count,
                      comm_type_t type)
{
    if (comm_type_rounds(type))
        types[type].widen((float *)block->elements, part, count);
    else
        memcpy(block->elements, part, count * types[type].bytes);
}

void comm_block_add(comm_block_t *block, const void *part, size_t count,
                    comm_type_t type, comm_op_t op)
{
    float wide[COMM_BLOCK_ELEMENTS];

    if (comm_type_rounds(type)) {
        types[type].widen(wide, part, count);
        part = wide;
    }
    types[type].reduce[op](block->elements, block->elements, part, count);
}

void comm_block_end(const comm_block_t *block, void *into, size_t count,
                    comm_type_t type)
{
    if (comm_type_rounds(type))
        types[type].round(into, (const float *)block->elements, count);
    else
        memcpy(into, block->elements, count * types[type].bytes);
}
