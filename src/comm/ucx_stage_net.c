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
#include "comm/ucx_group.h"

/* ---- a work -------------------------------------------------------------- */

int ucx_stage_lanes(const ucx_work_t *work)
{
    uint64_t slices = (uint64_t)work->span.slices;

    return node_stage_segments(&work->node) > slices ? UCX_LANES : 1;
}

/* ---- a lane -------------------------------------------------------------- */

enum { BEGIN, COME, REDUCE };

bool ucx_stage_lane_came(const ucx_lane_t *lane)
{
    return node_stage_arrived(lane->group->node,
                              lane->work->node.segment + lane->at);
}

static void segment_sum(ucx_group_t *group, ucx_lane_t *lane)
{
    const ucx_work_t *work = lane->work;
    size_t width = comm_type_bytes(work->request.type);
    size_t most = work->node.segment_bytes;
    size_t left = work->request.count * width - lane->at * most;
    char **parts = group->span_parts;

    for (int i = 0; i < group->place.count; i++)
        parts[i] =
            node_stage_place(group->node, i, work->node.segment + lane->at);
    lane->span.data = parts[0];
    lane->span.count = (left < most ? left : most) / width;
    node_sum_into(parts, group->place.count, lane->span.count,
                  work->request.type, work->request.op, parts[0]);
}

/* The next segment, lane->at of its work, if it has come. */
static bool segment_begin(ucx_group_t *group, ucx_lane_t *lane)
{
    if (lane->at >= node_stage_segments(&lane->work->node))
        return false;
    lane->idle = !ucx_stage_lane_came(lane);
    if (lane->idle)
        return true;
    if (!node_stage_agrees(group->node, lane->work->node.segment + lane->at)) {
        node_control_differ(group->node, lane->number);
        return true;
    }
    segment_sum(group, lane);
    ucx_span_net_begin(lane);
    lane->state = REDUCE;
    return true;
}

bool ucx_stage_span(ucx_group_t *group, ucx_lane_t *lane)
{
    size_t slices = (size_t)lane->work->span.slices;

    switch (lane->state) {
    case BEGIN:
        lane->at = (size_t)group->place.local + (size_t)lane->index * slices;
        lane->state = COME;
        return true;
    case COME:
        return segment_begin(group, lane);
    default:
        if (ucx_span_net(group, lane))
            return true;
        node_stage_done(group->node, lane->work->node.segment + lane->at);
        lane->at += slices * (size_t)lane->lanes;
        lane->state = COME;
        return true;
    }
}
