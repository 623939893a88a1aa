/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The state of the hook powersgd, for hook_powersgd.c and powersgd_device.c. */
#ifndef CDDP_DDP_POWERSGD_H
#define CDDP_DDP_POWERSGD_H

#include "ddp/hook_priv.h"
#include "ddp/lowrank.h"
#include "op/op_lowrank.h"

typedef struct powersgd_options {
    int64_t rank, start_step;
    double min_compression;
    bool error_feedback, warm_start;
} powersgd_options_t;

/* A matrix that is compressed. */
typedef struct powersgd_matrix {
    lowrank_t shape;
    size_t grad; /* index of its first gradient in the arena */
    size_t p, q; /* indices of P in the message buffer, of Q in the Q arena */
    uint64_t number; /* key of its random numbers */
} powersgd_matrix_t;

/* The places of a bucket's numbers: its message (gradients that are not
 * compressed, then all P), and its Q. */
typedef struct powersgd_part {
    int first, count; /* its matrices: index of the first one, number */
    size_t message, message_count;
    size_t q, q_count;
} powersgd_part_t;

typedef struct powersgd {
    powersgd_options_t options;
    const ddp_hook_plan_t *plan;
    powersgd_matrix_t *matrices;
    int matrix_count;
    powersgd_part_t *parts; /* [bucket_count] */
    /* In the memory that has the gradients: of the host, or of plan->dev. */
    float *messages, *q, *residual;
    size_t message_count, q_count;
    int64_t step;
    op_lowrank_t *device; /* computes on plan->dev; NULL: the host does */
} powersgd_t;

/* powersgd_device.c: the arithmetic on plan->dev. Copy and run only enqueue, on
 * the stream of the wire. If the device fails then, all ranks learn that this
 * rank cannot go on. */

/* Can the backend of a device compute the hook? */
bool powersgd_device_fits(const op_backend_ops_t *backend);
/* Open sgd->device. Call it when all other memory has been allocated. */
err_code_t powersgd_device_open(powersgd_t *sgd, err_t *err);
/* Copy [count] numbers. */
err_code_t powersgd_device_copy(float *to, const float *from, size_t count,
                                const ddp_wire_t *wire, err_t *err);
/* Compute a turn of [part]. */
err_code_t powersgd_device_run(powersgd_t *sgd, const powersgd_part_t *part,
                               op_lowrank_turn_t turn, const ddp_wire_t *wire,
                               err_t *err);

#endif
