/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Adds the bias of each channel to y after a primitive has written y. Works
 * with channels last, with blocks of channels, and with plain layouts.
 */
#ifndef CDDP_OP_CPU_OPS_BIAS_H
#define CDDP_OP_CPU_OPS_BIAS_H

#include "op/cpu/onednn/onednn.h"

typedef struct cpu_bias {
    bool used; /* the layout is one that cpu_bias_add can handle */
    int64_t channels, run;
    /* items of positions x run elements each, and blocks of channels per
     * sample */
    int64_t items, blocks;
    int64_t positions;
} cpu_bias_t;

/* Prepare for [op], whose y is float32 in layout [y]. */
err_code_t cpu_bias_open(cpu_bias_t *bias, const op_t *op, cpu_engine_t *engine,
                         const cpu_md_t *y, err_t *err);

/* y += b; padding channels of the last block are unchanged. */
void cpu_bias_add(const cpu_bias_t *bias, int threads, const float *b,
                  float *y);

#endif
