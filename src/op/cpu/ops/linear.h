/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What linear in float32 and in bfloat16 share. */
#ifndef CDDP_OP_CPU_OPS_LINEAR_H
#define CDDP_OP_CPU_OPS_LINEAR_H

#include "op/cpu/onednn/reorder.h"

/* y [N,O] = x [N,F] w' + b, as products are described. */
cpu_matmul_spec_t cpu_linear_product(const op_config_t *config);

/* y = the activation of [h] [N,O], which may be y. */
void cpu_linear_activate(const op_t *op, const op_args_t *args, const float *h);

/* One pass over dy [N,O]: with an activation it becomes the gradient of [h]
 * and, if [wide] is not NULL, goes there; db [O] = its column sums; it goes to
 * [narrow] as bfloat16, unless that is NULL. */
void cpu_linear_pass_dy(const op_t *op, const op_args_t *args, const float *h,
                        float *wide, uint16_t *narrow);

/* Products of numbers rounded to bfloat16, summed in float32. */
extern const op_kernel_t cpu_linear_bf16_kernel;

#endif
