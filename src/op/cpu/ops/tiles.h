/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * maxpool with adjacent windows, without gaps or padding
 * (cpu_windows_t.tiled): one pass over x in forward, one over dx in backward.
 * Tensors and winners are stored as in windows.h.
 */
#ifndef CDDP_OP_CPU_OPS_TILES_H
#define CDDP_OP_CPU_OPS_TILES_H

#include "op/cpu/ops/windows.h"

void cpu_tiles_forward(const cpu_windows_t *tiles, const op_t *op,
                       const op_args_t *args);
void cpu_tiles_backward(const cpu_windows_t *tiles, const op_t *op,
                        const op_args_t *args);

#endif
