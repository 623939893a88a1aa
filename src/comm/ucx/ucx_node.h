/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The node stage (node.h) as a part of a ucx group: which requests go through
 * it, how they are cut over several nodes, and arenas.
 */
#ifndef CDDP_COMM_UCX_NODE_H
#define CDDP_COMM_UCX_NODE_H

#include "comm/comm_ops.h"
#include "comm/comm_plan.h"
#include "comm/node/node.h"

typedef struct ucx_group ucx_group_t;
typedef struct ucx_work ucx_work_t;

/* The plan of the last all-reduce. A training step repeats its all-reduces, and
 * the search in the table costs about as much as a small one-shot. */
typedef struct ucx_last_plan {
    size_t count; /* of its request; 0: there is no plan yet */
    comm_type_t type;
    bool arena; /* its data was in an arena */
    comm_plan_t plan;
} ucx_last_plan_t;

/* Allocate group->node, once the place is known and before the comm thread
 * runs. */
err_code_t ucx_node_new(ucx_group_t *group, err_t *err);
/* Collective; without the means there is no node stage (a warning). */
err_code_t ucx_node_open(ucx_group_t *group, err_t *err);
void ucx_node_close(ucx_group_t *group);

/* How [request] is carried out; the same on all ranks. Owner. */
comm_plan_t ucx_node_plan(const ucx_group_t *group,
                          const comm_request_t *request);
/* Store this plan in [work], whose request is set. Owner. */
void ucx_node_choose(ucx_group_t *group, ucx_work_t *work);
/* Post [work], which goes through the node by its plan. True: the driver has a
 * part in it, so that it must be queued. Owner. */
bool ucx_node_start(ucx_group_t *group, ucx_work_t *work);

/* The arena of comm.h: shared with the node, or plain memory. */
err_code_t ucx_arena_open(comm_group_t *group, size_t bytes, comm_arena_t **out,
                          err_t *err);
void ucx_arena_close(comm_arena_t *arena);

#endif
