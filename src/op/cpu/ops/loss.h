/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the losses share: the state (plain x and dx, a double and a byte of
 * scratch for each item, which is a sample unless the op cuts finer), and the
 * sum of the items' losses, which are added one after the other, so that the
 * number of threads does not show in the result.
 */
#ifndef CDDP_OP_CPU_OPS_LOSS_H
#define CDDP_OP_CPU_OPS_LOSS_H

#include "op/cpu/onednn/reorder.h"

typedef struct cpu_loss {
    cpu_scratch_t scratch;
    cpu_plain_t plain;
    int64_t items;
    size_t items_at; /* offset in scratch of the items' losses */
} cpu_loss_t;

err_code_t cpu_loss_open(op_t *op, err_t *err); /* an item is a sample */
err_code_t cpu_loss_open_items(op_t *op, int64_t items, err_t *err);
void cpu_loss_close(op_t *op);

/* Where the items' losses are kept in a call, before their bytes; their sum,
 * each with its sample's weight. Samples have as many items each, in order. */
double *cpu_loss_items(const op_t *op, const op_args_t *args);
double cpu_loss_sum(const op_t *op, const op_args_t *args);

/* Backward ends: give the gradients [dx], which is where cpu_reorder_place
 * said, their samples' weights, and bring them to args->dx. */
err_code_t cpu_loss_flush(op_t *op, const op_args_t *args, float *dx,
                          err_t *err);

#endif
