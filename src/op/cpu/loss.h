/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the losses share: the state (plain x and dx, a double of scratch for
 * each sample), and the sum of the samples' losses, which are added one after
 * the other, so that the number of threads does not show in the result.
 */
#ifndef CDDP_OP_CPU_LOSS_H
#define CDDP_OP_CPU_LOSS_H

#include "op/cpu/port.h"

typedef struct cpu_loss {
    cpu_room_t room;
    cpu_plain_t plain;
    size_t samples_at; /* offset in scratch of the samples' losses */
} cpu_loss_t;

err_code_t cpu_loss_open(op_t *op, err_t *err);
void cpu_loss_close(op_t *op);

/* Where the samples' losses are kept in a call; their sum. */
double *cpu_loss_samples(const op_t *op, const op_args_t *args);
double cpu_loss_sum(const op_t *op, const op_args_t *args);

#endif
