/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the losses share: their state and the sum of the losses. The state has
 * plain x and dx and, in scratch, a double and a byte per item. An item is a
 * sample, unless the op divides samples further. The losses of the items are
 * added one after the other, so that the result does not depend on the number
 * of threads.
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

/* cpu_loss_items: the array of the items' losses during a call; their hits,
 * one byte each, follow it. cpu_loss_sum: their sum, each multiplied by the
 * weight of its sample. All samples have the same number of items, stored
 * sample by sample. */
double *cpu_loss_items(const op_t *op, const op_args_t *args);
double cpu_loss_sum(const op_t *op, const op_args_t *args);

/* Last step of backward: multiply [dx], the buffer that cpu_reorder_place
 * returned, by the samples' weights, and convert it to args->dx. */
err_code_t cpu_loss_flush(op_t *op, const op_args_t *args, float *dx,
                          err_t *err);

#endif
