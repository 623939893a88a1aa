/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The node stage (node.h) as a part of a ucx group: which requests go through
 * it, how they are divided over several nodes, and arenas. All functions are
 * for the owner.
 */
#ifndef CDDP_COMM_UCX_NODE_H
#define CDDP_COMM_UCX_NODE_H

#include "comm/ucx/ucx_group.h"

/* Allocate group->node and group->parts, when group->local is known and no comm
 * thread runs yet. Not collective. */
err_code_t ucx_node_new(ucx_group_t *group, err_t *err);
/* Open the node stage. If that is not possible, a warning is logged, and the
 * group does without. Collective; blocks. */
err_code_t ucx_node_open(ucx_group_t *group, err_t *err);
/* Free what ucx_node_new allocated. */
void ucx_node_close(ucx_group_t *group);

/* The plan for [request]; the same on all ranks. */
comm_plan_t ucx_node_plan(const ucx_group_t *group,
                          const comm_request_t *request);
/* Store this plan in [work], whose request is set. */
void ucx_node_choose(ucx_group_t *group, ucx_work_t *work);
/* Start [work], which goes through the node by its plan. Returns whether the
 * driver has a part in it, so that it must be queued. */
bool ucx_node_start(ucx_group_t *group, ucx_work_t *work);

/* The arenas of comm.h: shared with the ranks of the node if possible, or else
 * plain memory. To open one is collective and blocks. */
err_code_t ucx_arena_open(comm_group_t *group, size_t bytes, comm_arena_t **out,
                          err_t *err);
void ucx_arena_close(comm_arena_t *arena);

#endif
