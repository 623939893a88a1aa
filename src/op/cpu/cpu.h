/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The CPU backend. It uses oneDNN where oneDNN is fast (conv, small or
 * bfloat16 products, average pools, reorders), and loops of its own for
 * everything else. Arithmetic is float32, or products of numbers rounded to
 * bfloat16. Tensors may be stored as bfloat16. Private layouts are oneDNN's
 * (cpu_md_t): conv chooses a layout, the ops after it use the same, and
 * flatten and the losses convert to plain.
 */
#ifndef CDDP_OP_CPU_CPU_H
#define CDDP_OP_CPU_CPU_H

#include "op/op_ops.h"

/* Declares cpu_linear_kernel and so on, one for each name in the table of ops.
 */
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    extern const op_kernel_t cpu_##cpu##_kernel;
#include "op/op_table.inc"
#undef OP

/* Describe space as three dimensions: the [space] numbers of [from] are last,
 * and [fill] stands for each missing dimension. */
static inline void cpu_space_three(const int64_t *from, int space, int64_t fill,
                                   int64_t to[OP_SPACE_MAX])
{
    for (int i = 0; i < OP_SPACE_MAX; i++) {
        const int d = i - (OP_SPACE_MAX - space);

        to[i] = d < 0 ? fill : from[d];
    }
}

#endif
