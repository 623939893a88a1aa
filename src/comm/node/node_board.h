/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The board: memory that all ranks of a node map, with what they tell each
 * other. It has a futex on which owners sleep, the slots of node_slot.h, a seat
 * of each rank's comm thread (node_bell.h), and, in a group on one node, the
 * slots of node_shot.h.
 */
#ifndef CDDP_COMM_NODE_BOARD_H
#define CDDP_COMM_NODE_BOARD_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"

typedef struct node_seat { /* of one rank's comm thread */
    _Alignas(MEM_ALIGN) atomic_bool asleep;
    int64_t pid, fd; /* the end of its bell to write to */
} node_seat_t;

typedef struct node_board {
    _Alignas(MEM_ALIGN) atomic_uint sleepers; /* owners, on the bell */
    _Alignas(MEM_ALIGN) atomic_uint bell;     /* futex */
    _Alignas(MEM_ALIGN) char slots[];
} node_board_t;

/* Map it; collective over the group. */
err_code_t node_board_open(node_t *node, err_t *err);
void node_board_close(node_t *node);

/* Seats of the ranks of this node. */
node_seat_t *node_board_seats(const node_t *node);

/* A rank of this node asks for something else in collective [number], which is
 * under way here: fail the group. Any thread. */
void node_board_disagree(node_t *node, uint64_t number);

#endif
