/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * All-reduces over several nodes, by the ranks of each node together. They are
 * algorithms of ucx_task.h, but use the node stage, too, so their task must be
 * the task of a lane (ucx_lane.h).
 */
#ifndef CDDP_COMM_UCX_SPAN_H
#define CDDP_COMM_UCX_SPAN_H

#include "comm/ucx/ucx_lane.h"

bool ucx_span_arena(ucx_task_t *task);  /* of data in an arena */
bool ucx_span_staged(ucx_task_t *task); /* of other data */

/* Return whether the ranks of this node for which [lane] waits have posted. */
bool ucx_span_arena_came(const ucx_lane_t *lane);
bool ucx_span_staged_came(const ucx_lane_t *lane);

#endif
