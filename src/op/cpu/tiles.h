/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool whose windows lie side by side without gaps or padding, on plain
 * tensors and on those whose channels follow each other, all of them or in
 * blocks: one pass over x forward, one over dx backward. float32 or, but for
 * plain tensors, lying as bfloat16. A NaN wins its window.
 */
#ifndef CDDP_OP_CPU_TILES_H
#define CDDP_OP_CPU_TILES_H

#include "op/cpu/onednn.h"

#define CPU_TILE_TAPS 64

typedef struct cpu_tiles {
    bool used;
    int64_t images, run; /* run: channels that follow each other */
    int64_t in[OP_SPACE_MAX], out[OP_SPACE_MAX], kernel[OP_SPACE_MAX];
    int taps;
    int64_t tap[CPU_TILE_TAPS]; /* elements from a window's first */
} cpu_tiles_t;

/* Can [op], a pool from layout [x] to [y], go by tiles? If so, [*tiles] is
 * made. Its workspace is a byte for each element of y as that lies. */
err_code_t cpu_tiles_open(cpu_tiles_t *tiles, const op_t *op,
                          cpu_engine_t *engine, const cpu_md_t *x,
                          const cpu_md_t *y, err_t *err);

void cpu_tiles_forward(const cpu_tiles_t *tiles, const op_t *op,
                       const op_args_t *args);
void cpu_tiles_backward(const cpu_tiles_t *tiles, const op_t *op,
                        const op_args_t *args);

#endif
