/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Boxes in a plane, the elements of one channel of one sample. Space has three
 * dimensions: missing leading ones have size 1. */
#ifndef CDDP_OP_CPU_OPS_BOX_H
#define CDDP_OP_CPU_OPS_BOX_H

#include "op/op_config.h"

/* Range [from, to) in each dimension of space. */
typedef struct cpu_box {
    int64_t from[OP_SPACE_MAX], to[OP_SPACE_MAX];
} cpu_box_t;

/* The sum over [box] of x, a plane of the sizes [in]. */
static inline float cpu_box_sum(const cpu_box_t *box, const int64_t *in,
                                const float *x)
{
    float sum = 0;

    for (int64_t d = box->from[0]; d < box->to[0]; d++)
        for (int64_t h = box->from[1]; h < box->to[1]; h++)
            for (int64_t w = box->from[2]; w < box->to[2]; w++)
                sum += x[(d * in[1] + h) * in[2] + w];
    return sum;
}

/* Add [value] to every element of [box] in x, a plane of the sizes [in]. */
static inline void cpu_box_add(const cpu_box_t *box, const int64_t *in,
                               float value, float *x)
{
    for (int64_t d = box->from[0]; d < box->to[0]; d++)
        for (int64_t h = box->from[1]; h < box->to[1]; h++)
            for (int64_t w = box->from[2]; w < box->to[2]; w++)
                x[(d * in[1] + h) * in[2] + w] += value;
}

#endif
