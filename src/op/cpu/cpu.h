/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The CPU backend: oneDNN for what it does well (conv, products that are small
 * or of bfloat16, average pools, reorders), own loops for the rest. Arithmetic
 * is float32, or products of numbers rounded to bfloat16; tensors may lie as
 * bfloat16. Private layouts are those of oneDNN (cpu_md_t): conv chooses, the
 * ops behind it follow, flatten and the losses go back to plain.
 */
#ifndef CDDP_OP_CPU_CPU_H
#define CDDP_OP_CPU_CPU_H

#include "op/op_ops.h"

/* cpu_linear_kernel and so on, as the table of ops names them. */
#define OP(kind, name, shape, params, flops, ref, cpu, bf16) \
    extern const op_kernel_t cpu_##cpu##_kernel;
#include "op/op_table.inc"
#undef OP

/* Space as three dimensions: numbers of its [space] dimensions go last, [fill]
 * stands for those that are not there. */
static inline void cpu_space_three(const int64_t *from, int space, int64_t fill,
                                   int64_t to[OP_SPACE_MAX])
{
    for (int i = 0; i < OP_SPACE_MAX; i++) {
        const int d = i - (OP_SPACE_MAX - space);

        to[i] = d < 0 ? fill : from[d];
    }
}

#endif
