/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What linear in float32 and in bfloat16 share. */
#ifndef CDDP_OP_CPU_LINEAR_H
#define CDDP_OP_CPU_LINEAR_H

#include "op/cpu/port.h"

/* y [N,O] = x [N,F] w' + b, as products are described. */
cpu_matmul_spec_t cpu_linear_product(const op_config_t *config);

/* db [O] = the column sums of dy [N,O], which goes to [narrow] as bfloat16 in
 * the same pass, unless that is NULL. */
void cpu_linear_bias(const op_t *op, const op_args_t *args, uint16_t *narrow);

/* Products of numbers rounded to bfloat16, summed in float32. */
extern const op_kernel_t cpu_linear_bf16_kernel;

#endif
