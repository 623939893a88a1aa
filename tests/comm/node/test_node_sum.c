/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The arithmetic of the node stage has the bits of a serial loop, for 1 to 17
 * ranks, every type and operation, odd sizes and any alignment. The test needs
 * only src/comm/node/node_sum.c, reduce.c and src/base/half.c, so that it can
 * be compiled for another processor and run in an emulator (HACKING.md).
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "comm/node/node_sum.h"

TestSuite(node_sum, .timeout = 120);

#define RANKS 17
#define MOST 5003 /* elements; several blocks and a remainder */
#define SLACK 64

typedef union element {
    float f;
    double d;
    int64_t l;
    int32_t i;
} element_t;

static unsigned char inputs[RANKS][MOST * sizeof(double) + SLACK];
static unsigned char work[RANKS][MOST * sizeof(double) + SLACK];
static unsigned char outside[MOST * sizeof(double) + SLACK];

/* A float of either sign and of varying magnitude: sums of these depend on the
 * order of summation. */
static double number(int rank, size_t i)
{
    uint64_t mix = (i + 3) * UINT64_C(0x9e3779b97f4a7c15) ^
                   (uint64_t)(rank + 1) * UINT64_C(0xbf58476d1ce4e5b9);

    mix ^= mix >> 29;
    mix *= UINT64_C(0x94d049bb133111eb);
    mix ^= mix >> 32;
    return ((double)(mix & 0xffffff) - 8388608.0) /
           (double)(1u << (mix >> 32 & 15));
}

static void element_set(unsigned char *at, comm_type_t type, double to)
{
    float f = (float)to;
    int64_t l = (int64_t)to * INT64_C(0x100000001);
    int32_t i = (int32_t)to;
    uint16_t half;

    switch (type) {
    case COMM_FLOAT32:
        memcpy(at, &f, sizeof f);
        return;
    case COMM_FLOAT64:
        memcpy(at, &to, sizeof to);
        return;
    case COMM_INT64:
        memcpy(at, &l, sizeof l);
        return;
    case COMM_INT32:
        memcpy(at, &i, sizeof i);
        return;
    case COMM_BFLOAT16:
        half_round_bf16(&half, &f, 1);
        break;
    case COMM_FLOAT16:
        f /= 1024;
        half_round_fp16(&half, &f, 1);
        break;
    }
    memcpy(at, &half, sizeof half);
}

static element_t element_get(const unsigned char *at, comm_type_t type)
{
    element_t one = {0};
    uint16_t half;

    memcpy(&half, at, sizeof half);
    if (type == COMM_BFLOAT16)
        half_widen_bf16(&one.f, &half, 1);
    else if (type == COMM_FLOAT16)
        half_widen_fp16(&one.f, &half, 1);
    else
        memcpy(&one, at, comm_type_bytes(type));
    return one;
}

#define PICK(field, wrapping)                                             \
    (op == COMM_SUM ? (wrapping)a.field + (wrapping)b.field               \
     : op == COMM_MAX                                                     \
         ? (a.field >= b.field || a.field != a.field ? a.field : b.field) \
         : (a.field <= b.field || a.field != a.field ? a.field : b.field))

static element_t combine(element_t a, element_t b, comm_type_t type,
                         comm_op_t op)
{
    switch (type) {
    case COMM_FLOAT64:
        a.d = PICK(d, double);
        break;
    case COMM_INT64:
        a.l = op == COMM_SUM ? (int64_t)((uint64_t)a.l + (uint64_t)b.l)
                             : PICK(l, int64_t);
        break;
    case COMM_INT32:
        a.i = op == COMM_SUM ? (int32_t)((uint32_t)a.i + (uint32_t)b.i)
                             : PICK(i, int32_t);
        break;
    case COMM_FLOAT32:
    case COMM_BFLOAT16:
    case COMM_FLOAT16:
        a.f = PICK(f, float);
        break;
    }
    return a;
}

/* Write element [i] of the serial loop's result to [into], in the format of
 * [type]. */
static void expect(unsigned char *into, size_t i, int size, comm_type_t type,
                   comm_op_t op, size_t skip)
{
    size_t width = comm_type_bytes(type), at = skip + i * width;
    element_t sum = element_get(inputs[0] + at, type);
    uint16_t half;

    for (int rank = 1; rank < size; rank++)
        sum = combine(sum, element_get(inputs[rank] + at, type), type, op);
    memcpy(into, &sum, width);
    if (type == COMM_BFLOAT16)
        half_round_bf16(&half, &sum.f, 1);
    if (type == COMM_FLOAT16)
        half_round_fp16(&half, &sum.f, 1);
    if (comm_type_rounds(type))
        memcpy(into, &half, sizeof half);
}

static void fill(int size, size_t count, comm_type_t type, size_t skip)
{
    size_t width = comm_type_bytes(type);

    for (int rank = 0; rank < size; rank++) {
        for (size_t i = 0; i < count; i++)
            element_set(inputs[rank] + skip + i * width, type, number(rank, i));
        memcpy(work[rank], inputs[rank], sizeof work[rank]);
    }
}

static void check(const unsigned char *found, int size, size_t first,
                  size_t count, comm_type_t type, comm_op_t op, size_t skip)
{
    size_t width = comm_type_bytes(type);

    for (size_t i = first; i < first + count; i++) {
        unsigned char one[sizeof(double)];

        expect(one, i, size, type, op, skip);
        cr_assert_eq(memcmp(one, found + skip + i * width, width), 0,
                     "%d ranks, %s, operation %d, element %zu", size,
                     comm_type_name(type), (int)op, i);
    }
}

static void sums_check(int size, size_t count, comm_type_t type, comm_op_t op,
                       size_t skip)
{
    size_t width = comm_type_bytes(type), first = count / 3;
    size_t some = count - first - count / 5;
    char *parts[RANKS];

    fill(size, count, type, skip);
    for (int rank = 0; rank < size; rank++)
        parts[rank] = (char *)work[rank] + skip;
    memset(outside, 0xee, sizeof outside);
    node_sum_into(parts, size, count, type, op, (char *)outside + skip);
    check(outside, size, 0, count, type, op, skip);
    node_sum_part(parts, size, first * width, some, type, op, parts[size - 1]);
    check(work[size - 1], size, first, some, type, op, skip);
    cr_assert_eq(
        memcmp(work[size - 1] + skip, inputs[size - 1] + skip, first * width),
        0, "what lies before a part");
    memcpy(work[size - 1], inputs[size - 1], sizeof work[size - 1]);
    node_sum(parts, size, count, type, op);
    for (int rank = 0; rank < size; rank++)
        check(work[rank], size, 0, count, type, op, skip);
    cr_assert_eq(outside[skip + count * width], 0xee, "what lies behind");
}

static void types_check(int size, const size_t *counts, int many)
{
    for (int type = 0; type < COMM_TYPES; type++)
        for (int op = 0; op < COMM_OPS; op++)
            for (int i = 0; i < many; i++)
                sums_check(size, counts[i], (comm_type_t)type, (comm_op_t)op,
                           (size_t)(size + i) % 4 * 8);
}

Test(node_sum, two_ranks)
{
    static const size_t counts[] = {0,  1,  2,   3,    15,   16,  17,
                                    31, 33, 100, 1023, 1025, MOST};

    types_check(2, counts, sizeof counts / sizeof *counts);
}

Test(node_sum, one_to_seventeen_ranks)
{
    static const size_t counts[] = {1, 7, 1030};

    for (int size = 1; size <= RANKS; size++)
        types_check(size, counts, sizeof counts / sizeof *counts);
}

/* A sum, maximum or minimum with a NaN on either side is NaN. */
Test(node_sum, nan_comes_through)
{
    for (int op = 0; op < COMM_OPS; op++)
        for (int odd = 0; odd < 3; odd++) {
            float data[3][40], into[40];
            char *parts[3] = {(char *)data[0], (char *)data[1],
                              (char *)data[2]};

            for (int rank = 0; rank < 3; rank++)
                for (int i = 0; i < 40; i++)
                    data[rank][i] = (float)(rank * i);
            data[odd][21] = __builtin_nanf("");
            for (int size = 2; size <= 3; size++) {
                node_sum_into(parts, size, 40, COMM_FLOAT32, (comm_op_t)op,
                              (char *)into);
                for (int i = 0; i < 40; i++)
                    cr_assert_eq(into[i] != into[i], i == 21 && odd < size);
            }
        }
}
