/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The gradient of relu, for ops that have one behind them, too. */
#ifndef CDDP_OP_CPU_OPS_RELU_H
#define CDDP_OP_CPU_OPS_RELU_H

#include "op/op_ops.h"

/* What relu lets through of dy: where y is above 0. y, dy and [to] lie as
 * op->out; [to] may be dy. */
void cpu_relu_let(const op_t *op, const op_args_t *args, void *to);

#endif
