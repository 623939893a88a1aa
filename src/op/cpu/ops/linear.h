/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What linear in float32 and in bfloat16 share. */
#ifndef CDDP_OP_CPU_OPS_LINEAR_H
#define CDDP_OP_CPU_OPS_LINEAR_H

#include "op/cpu/onednn/reorder.h"

/* Describe the product y [N,O] = x [N,F] w' + b. */
cpu_matmul_spec_t cpu_linear_product(const op_config_t *config);

/* y = activation of [h] [N,O]. [h] may be y. */
void cpu_linear_activate(const op_t *op, const op_args_t *args, const float *h);

/* One pass over dy [N,O]. With an activation, dy is first multiplied by the
 * activation's derivative at [h]. Writes the result to [floats] and, rounded
 * to bfloat16, to [halves], and its column sums to db [O]. [floats] and
 * [halves] may be NULL. */
void cpu_linear_pass_dy(const op_t *op, const op_args_t *args, const float *h,
                        float *floats, uint16_t *halves);

/* linear with factors rounded to bfloat16 and sums in float32. */
extern const op_kernel_t cpu_linear_bf16_kernel;

#endif
