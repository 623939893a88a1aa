/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lowrank: the arithmetic of PowerSGD in the memory of a device, for the comm
 * hook (ddp/hook_powersgd.c, which explains it). ddp/lowrank.h has the same for
 * the host. Equal P and Q give the same bits of P Q^T here, there, and on each
 * GPU, and equal vectors the same orthonormal ones on each GPU: so ranks whose
 * sums are equal have equal gradients. The other products are the backend's.
 */
#ifndef CDDP_OP_OP_LOWRANK_H
#define CDDP_OP_OP_LOWRANK_H

#include "op/op.h"

/* A gradient M, and its factors. All pointers are memory of the device. */
typedef struct op_lowrank_matrix {
    int64_t rows, columns;
    float *m;        /* [rows, columns] */
    float *residual; /* [rows, columns]; NULL: none, for all matrices */
    float *p, *q;    /* [rank, rows] and [rank, columns] */
    uint64_t number; /* key of its random numbers */
} op_lowrank_matrix_t;

typedef struct op_lowrank_config {
    const op_lowrank_matrix_t *matrices; /* [count], memory of the host */
    int count, rank;
    bool warm; /* false: each step begins with a Q of random numbers */
} op_lowrank_config_t;

typedef enum op_lowrank_turn {
    /* M += residual; make Q orthonormal, where a vector that depends on those
     * before it is replaced by random numbers; P = M Q */
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
    uint64_t step; /* updates before this one: a key of random numbers */
} op_lowrank_part_t;

typedef struct op_lowrank op_lowrank_t;

/* Has [backend] this arithmetic? */
bool op_lowrank_offered(const op_backend_ops_t *backend);

/* Prepare the turns on [dev], the device of [backend]: plan products, and
 * allocate what they need. [config] is copied, the memory of the matrices must
 * stay. Blocks. */
err_code_t op_lowrank_open(const op_backend_ops_t *backend, dev_device_t *dev,
                           const op_lowrank_config_t *config,
                           op_lowrank_t **out, err_t *err);
/* When the turns are done; NULL allowed. */
void op_lowrank_close(op_lowrank_t *lowrank);

/* Enqueue a turn on [stream]; all turns on one stream. Allocates nothing. */
err_code_t op_lowrank_run(op_lowrank_t *lowrank, const op_lowrank_part_t *part,
                          dev_stream_t *stream, err_t *err);

#endif
