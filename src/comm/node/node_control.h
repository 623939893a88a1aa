/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The control block: memory that all ranks of a node map and through which they
 * coordinate. It contains a futex on which owners sleep, the slots of
 * node_zcopy.h, for each rank the means to wake its comm thread
 * (node_wakeup.h), and, in a group on one node, the slots of node_oneshot.h.
 */
#ifndef CDDP_COMM_NODE_CONTROL_H
#define CDDP_COMM_NODE_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

typedef struct node node_t;

typedef struct node_wakeup { /* how to wake one rank's comm thread */
    _Alignas(MEM_ALIGN) atomic_bool asleep;
    int64_t pid; /* process that opened the pipe */
    int64_t fd;  /* descriptor of the pipe's write end in that process */
} node_wakeup_t;

typedef struct node_control {
    _Alignas(MEM_ALIGN) atomic_uint sleepers; /* number of owners that sleep */
    _Alignas(MEM_ALIGN) atomic_uint futex; /* incremented when they are woken */
    _Alignas(MEM_ALIGN) char slots[];
} node_control_t;

/* Map the control block. Collective over the group. */
err_code_t node_control_open(node_t *node, err_t *err);
void node_control_close(node_t *node);

/* The wakeups of the ranks of this node. */
node_wakeup_t *node_control_wakeups(const node_t *node);

/* Fail the group: a rank of this node requests something else in collective
 * [number] than this rank, where the collective is in flight. Any thread. */
void node_control_differ(node_t *node, uint64_t number);

#endif
