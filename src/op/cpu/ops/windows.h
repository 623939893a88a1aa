/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool of any windows: they may overlap, be padded or leave gaps. Supports
 * plain tensors, channels last, and blocks of channels. Elements are float32
 * or bfloat16; bfloat16 only if the tensor is not plain and a window has at
 * most INT16_MAX taps. A NaN wins its window. tiles.h is faster for adjacent
 * windows.
 */
#ifndef CDDP_OP_CPU_OPS_WINDOWS_H
#define CDDP_OP_CPU_OPS_WINDOWS_H

#include "op/op_ops.h"

#define CPU_WINDOW_TAPS 256 /* taps that a byte can number */

/*
 * Space always has three dimensions here: missing leading ones are 1. An image
 * is all channels of a sample (channels last), one block of channels, or one
 * channel (plain). The winner of a window is stored as the number of its tap.
 */
typedef struct cpu_windows {
    bool tiled;          /* windows are adjacent, without gaps: use tiles.h */
    int64_t images, run; /* run: channels that are adjacent in memory */
    int64_t in[OP_SPACE_MAX], out[OP_SPACE_MAX], kernel[OP_SPACE_MAX],
        stride[OP_SPACE_MAX], pad[OP_SPACE_MAX];
    int64_t taps;
    /* Offset in x of each tap, relative to tap 0; unset if there are more than
     * CPU_WINDOW_TAPS taps. */
    int64_t tap[CPU_WINDOW_TAPS];
} cpu_windows_t;

/* Set up the windows of the maxpool [op]. [lanes] is how its channels are
 * stored (result of cpu_md_lanes; not -1). */
void cpu_windows_open(cpu_windows_t *windows, const op_t *op, int lanes);

/* Bytes of workspace for the winners of [elems] elements of y. */
size_t cpu_windows_bytes(const cpu_windows_t *windows, size_t elems);

/* Forward reads x of [args] and writes y; in training it also writes the
 * winners to the workspace. Backward reads dy and the winners and writes dx. */
void cpu_windows_forward(const cpu_windows_t *windows, const op_t *op,
                         const op_args_t *args);
void cpu_windows_backward(const cpu_windows_t *windows, const op_t *op,
                          const op_args_t *args);

#endif
