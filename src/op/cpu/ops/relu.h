/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The gradient of relu, also for other ops that end with a relu. */
#ifndef CDDP_OP_CPU_OPS_RELU_H
#define CDDP_OP_CPU_OPS_RELU_H

#include "op/op_ops.h"

/* Write dy to [to] where y is above 0, else 0. y, dy and [to] have the layout
 * of op->out; [to] may be dy. */
void cpu_relu_gradient(const op_t *op, const op_args_t *args, void *to);

#endif
