/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Staging over several nodes: what ucx_span.c does for arenas, of memory that
 * lies in none. Segment i of a work belongs to rank i % slices of every node
 *, whose lanes go through its segments in turn: wait until all
 * of the node have copied theirs in (node_stage.c), sum them, reduce the sum
 * with the owners on the other nodes, and say that it can be taken.
 *
 * Nothing but memory of the node is sent from and received into: so a rank may
 * copy, and others of its node go on, whatever the network does.
 */
#include "comm/node/node_control.h"
#include "comm/node/node_stage.h"
#include "comm/node/node_sum.h"
#include "comm/ucx/ucx_group.h"

/* ---- a lane -------------------------------------------------------------- */

enum { BEGIN, WAIT, REDUCE };

/* The segment, of those of the node, that is segment task->at of its work. */
static uint64_t segment_of(const ucx_lane_t *lane)
{
    return lane->work->node.segment + lane->task.at;
}

bool ucx_stage_lane_came(const ucx_lane_t *lane)
{
    return node_stage_arrived(lane->group->node, segment_of(lane));
}

static void segment_sum(ucx_lane_t *lane)
{
    const ucx_group_t *group = lane->group;
    const comm_request_t *what = lane->task.request;
    size_t most = lane->work->node.segment_bytes;
    size_t left = comm_request_bytes(what) - lane->task.at * most;
    size_t count = (left < most ? left : most) / comm_type_bytes(what->type);
    char **parts = group->span_parts;

    for (int i = 0; i < group->place.count; i++)
        parts[i] = node_stage_place(group->node, i, segment_of(lane));
    node_sum_into(parts, group->place.count, count, what->type, what->op,
                  parts[0]);
    ucx_lane_reduce_begin(lane, parts[0], count);
}

/* The next segment, if all ranks of the node have copied theirs. */
static bool segment_begin(ucx_lane_t *lane)
{
    if (lane->task.at >= node_stage_segments(&lane->work->node))
        return false;
    lane->idle = !ucx_stage_lane_came(lane);
    if (lane->idle)
        return true;
    if (!node_stage_agrees(lane->group->node, segment_of(lane))) {
        node_control_differ(lane->group->node, lane->task.number);
        return true;
    }
    segment_sum(lane);
    lane->task.state = REDUCE;
    return true;
}

bool ucx_stage_span(ucx_task_t *task)
{
    ucx_lane_t *lane = task->context;
    size_t slices = (size_t)lane->work->plan.slices;

    switch (task->state) {
    case BEGIN:
        task->at =
            (size_t)lane->group->place.local + (size_t)task->index * slices;
        task->state = WAIT;
        return true;
    case WAIT:
        return segment_begin(lane);
    default:
        if (ucx_lane_reduce(lane))
            return true;
        node_stage_done(lane->group->node, segment_of(lane));
        task->at += slices * (size_t)task->lanes;
        task->state = WAIT;
        return true;
    }
}
