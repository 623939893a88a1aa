/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The bias of channels, added where a primitive has written y: in layouts whose
 * channels follow each other, all or in blocks, and in plain ones.
 */
#ifndef CDDP_OP_CPU_OPS_BIAS_H
#define CDDP_OP_CPU_OPS_BIAS_H

#include "op/cpu/onednn/onednn.h"

typedef struct cpu_bias {
    bool used; /* we know the layout */
    int64_t channels, run;
    int64_t items, blocks; /* of one item: positions x run elements */
    int64_t positions;
} cpu_bias_t;

/* For [op], whose float32 y lies in layout [y]. */
err_code_t cpu_bias_open(cpu_bias_t *bias, const op_t *op, cpu_engine_t *engine,
                         const cpu_md_t *y, err_t *err);

/* y += b; the padding of blocks stays as it is. */
void cpu_bias_add(const cpu_bias_t *bias, int threads, const float *b,
                  float *y);

#endif
