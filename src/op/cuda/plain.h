/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Ops whose kernels know plain tensors only, on inputs with channels last
 * (channels.h). Such an op has another one inside, for plain inputs, and copies
 * in scratch: of its inputs before each call and of their gradients after it. A
 * kind that is OP_BF16_KEPT also stores y in the layout if x has it.
 *
 * The table of the backend has this kernel for every kind that takes such
 * inputs. With plain inputs, and for the kinds that know the layout themselves,
 * open puts the kind's own kernel in its place.
 */
#ifndef CDDP_OP_CUDA_PLAIN_H
#define CDDP_OP_CUDA_PLAIN_H

#include "op/op_ops.h"

extern const op_kernel_t cuda_plain_kernel;

#endif
