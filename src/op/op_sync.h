/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* syncbatchnorm: its sums over the ranks, shared by the backends
 * (op_shape_norm.c). */
#ifndef CDDP_OP_OP_SYNC_H
#define CDDP_OP_OP_SYNC_H

#include "op/op.h"

/* Call args->reduce.small, if there is one. */
err_code_t op_reduce_small(const op_args_t *args, double *sums, size_t count,
                           err_t *err);

/* On entry, kept[c] and kept[C + c] are the sums of x and of x * x over the
 * kept[2C] elements of channel [c]. Replaces them by the mean and 1 /
 * sqrt(variance + epsilon). */
void op_sync_moments(double *kept, int64_t C, int64_t c, double epsilon);

#endif
