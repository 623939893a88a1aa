/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool of any windows: they may overlap, be padded or leave gaps. On plain
 * tensors and on those whose channels follow each other, all of them or in
 * blocks; float32 or, but for plain tensors and windows of more than INT16_MAX
 * taps, bfloat16. A NaN wins its window.
 * tiles.h is faster where windows lie side by side.
 */
#ifndef CDDP_OP_CPU_OPS_WINDOWS_H
#define CDDP_OP_CPU_OPS_WINDOWS_H

#include "op/op_ops.h"

#define CPU_WINDOW_TAPS 256 /* that a byte can number */

/*
 * Space is seen as three dimensions, the first of which may be 1. An image is
 * all channels of a sample, one block of them, or one channel. The winner of a
 * window is kept as the number of its tap.
 */
typedef struct cpu_windows {
    bool aside;          /* windows lie side by side: for tiles.h */
    int64_t images, run; /* run: channels that follow each other */
    int64_t in[OP_SPACE_MAX], out[OP_SPACE_MAX], kernel[OP_SPACE_MAX],
        stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    int64_t taps;
    int64_t tap[CPU_WINDOW_TAPS]; /* where each tap lies, in elements after tap
                                     0; unset if there are more taps */
} cpu_windows_t;

/* The windows of the maxpool [op], whose channels lie as [lanes] says
 * (cpu_md_lanes; not -1). */
void cpu_windows_open(cpu_windows_t *windows, const op_t *op, int lanes);

/* Bytes of the winners of [elems] elements of y. */
size_t cpu_windows_bytes(const cpu_windows_t *windows, size_t elems);

/* Forward reads x of [args] and writes y and, in training, the winners to the
 * workspace; backward reads dy and the winners and writes dx. */
void cpu_windows_forward(const cpu_windows_t *windows, const op_t *op,
                         const op_args_t *args);
void cpu_windows_backward(const cpu_windows_t *windows, const op_t *op,
                          const op_args_t *args);

#endif
