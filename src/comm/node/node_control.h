/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The control block: memory that all ranks of a node map, in which they tell
 * each other what they do. It has a futex on which owners sleep, the slots of
 * node_zcopy.h, for each rank what wakes its comm thread (node_wakeup.h), and,
 * in a group on one node, the slots of node_oneshot.h.
 */
#ifndef CDDP_COMM_NODE_CONTROL_H
#define CDDP_COMM_NODE_CONTROL_H

#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"

typedef struct node_wakeup { /* of one rank's comm thread */
    _Alignas(MEM_ALIGN) atomic_bool asleep;
    int64_t pid; /* process that has the pipe */
    int64_t fd;  /* end of the pipe to write to, in that process */
} node_wakeup_t;

typedef struct node_control {
    _Alignas(MEM_ALIGN) atomic_uint sleepers; /* owners that sleep */
    _Alignas(MEM_ALIGN) atomic_uint futex;    /* grows when they are woken */
    _Alignas(MEM_ALIGN) char slots[];
} node_control_t;

/* Map it. Collective over the group. */
err_code_t node_control_open(node_t *node, err_t *err);
void node_control_close(node_t *node);

/* Wakeups of the ranks of this node. */
node_wakeup_t *node_control_wakeups(const node_t *node);

/* A rank of this node asks for something else in collective [number], which is
 * under way here: fail the group. Any thread. */
void node_control_differ(node_t *node, uint64_t number);

#endif
