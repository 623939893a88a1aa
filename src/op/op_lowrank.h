/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lowrank: the arithmetic of PowerSGD in the memory of a device, for the comm
 * hook (ddp/hook_powersgd.c explains this arithmetic). ddp/lowrank.h has the
 * arithmetic for the host. Equal P and Q give the same bits of P Q^T on the
 * host and on each GPU. Equal vectors give the same orthonormal vectors on each
 * GPU. So ranks whose sums are equal have equal gradients. The other products
 * may have other bits on other devices.
 */
#ifndef CDDP_OP_OP_LOWRANK_H
#define CDDP_OP_OP_LOWRANK_H

#include "op/op.h"

/* A gradient M, and its factors. All pointers are memory of the device. */
typedef struct op_lowrank_matrix {
    int64_t rows, columns;
    float *m;        /* [rows, columns] */
    float *residual; /* [rows, columns]; NULL, in all matrices: none */
    float *p, *q;    /* [rank, rows] and [rank, columns] */
    uint64_t number; /* key of its random numbers */
} op_lowrank_matrix_t;

typedef struct op_lowrank_config {
    const op_lowrank_matrix_t *matrices; /* [count], memory of the host */
    int count, rank;
    bool warm; /* false: each step begins with a Q of random numbers */
} op_lowrank_config_t;

typedef enum op_lowrank_turn {
    /* M += residual; make Q orthonormal; P = M Q. If a vector of Q depends on
     * the vectors before it, random numbers replace it first. */
    OP_LOWRANK_P,
    /* Make P orthonormal; Q = M^T P; residual = M - P Q^T */
    OP_LOWRANK_Q,
    /* M = P Q^T */
    OP_LOWRANK_M
} op_lowrank_turn_t;

/* A turn for the matrices first .. first + count - 1. */
typedef struct op_lowrank_part {
    op_lowrank_turn_t turn;
    int first, count;
    uint64_t step; /* number of updates so far, a key of random numbers */
} op_lowrank_part_t;

typedef struct op_lowrank op_lowrank_t;

/* Has [backend] this arithmetic? */
bool op_lowrank_offered(const op_backend_ops_t *backend);

/* Prepare the turns on [dev], a device of [backend]: plan the products, and
 * allocate their scratch. Copies [config]; the memory of the matrices must
 * stay. Blocks. */
err_code_t op_lowrank_open(const op_backend_ops_t *backend, dev_device_t *dev,
                           const op_lowrank_config_t *config,
                           op_lowrank_t **out, err_t *err);
/* Call it when the device has finished all turns. NULL allowed. */
void op_lowrank_close(op_lowrank_t *lowrank);

/* Enqueue a turn on [stream]. All turns need the same stream. Allocates
 * nothing.
 */
err_code_t op_lowrank_run(op_lowrank_t *lowrank, const op_lowrank_part_t *part,
                          dev_stream_t *stream, err_t *err);

#endif
