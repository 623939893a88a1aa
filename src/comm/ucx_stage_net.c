/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Staging over several nodes: what ucx_span.c does for arenas, of memory that
 * lies in none. Segment i of a work belongs to rank i % slices of every node
 * (ucx_span_plan), whose lanes go through its segments in turn: wait until all
 * of the node have copied theirs in (ucx_stage.c), sum them, reduce the sum
 * with the owners on the other nodes, and say that it can be taken.
 *
 * Nothing but memory of the node is sent from and received into: so a rank may
 * copy, and others of its node go on, whatever the network does.
 */
#include "comm/node_sum.h"
#include "comm/ucx_group.h"
#include "comm/ucx_span.h"

/* ---- plan ---------------------------------------------------------------- */

static ucx_span_plan_t plan_of(const ucx_group_t *group,
                               const comm_request_t *request)
{
    return ucx_span_plan(&group->place, request->count, request->type);
}

size_t ucx_stage_part(const ucx_group_t *group, const comm_request_t *request)
{
    size_t most = group->node.stages.segment, slice;

    if (group->place.nodes == 1)
        return most;
    slice = plan_of(group, request).slice * comm_type_bytes(request->type);
    return slice < most ? slice : most;
}

uint64_t ucx_stage_segments(const ucx_work_t *work)
{
    size_t bytes = comm_request_bytes(&work->request);

    return (bytes + work->part - 1) / work->part;
}

bool ucx_stage_owns(const ucx_group_t *group, const comm_request_t *request)
{
    return group->place.nodes > 1 &&
           group->place.local < plan_of(group, request).slices;
}

int ucx_stage_lanes(const ucx_group_t *group, const ucx_work_t *work)
{
    uint64_t slices = (uint64_t)plan_of(group, &work->request).slices;

    return ucx_stage_segments(work) > slices ? UCX_LANES : 1;
}

int ucx_stage_owner(const ucx_group_t *group, const ucx_work_t *work,
                    uint64_t segment)
{
    uint64_t slices = (uint64_t)plan_of(group, &work->request).slices;

    return (int)((segment - work->segment) % slices);
}

/* ---- a lane -------------------------------------------------------------- */

enum { BEGIN, COME, REDUCE };

bool ucx_stage_lane_came(const ucx_lane_t *lane)
{
    return ucx_stage_came(lane->group, lane->work->segment + lane->at);
}

static void segment_sum(ucx_group_t *group, ucx_lane_t *lane)
{
    const ucx_work_t *work = lane->work;
    size_t width = comm_type_bytes(work->request.type);
    size_t left = work->request.count * width - lane->at * work->part;
    char **parts = group->node.span_parts;

    for (int i = 0; i < group->place.count; i++)
        parts[i] = ucx_stage_place(group, i, work->segment + lane->at);
    lane->span.data = parts[0];
    lane->span.count = (left < work->part ? left : work->part) / width;
    node_sum_into(parts, group->place.count, lane->span.count,
                  work->request.type, work->request.op, parts[0]);
}

/* The next segment, lane->at of its work, if it has come. */
static bool segment_begin(ucx_group_t *group, ucx_lane_t *lane)
{
    if (lane->at >= ucx_stage_segments(lane->work))
        return false;
    lane->idle = !ucx_stage_lane_came(lane);
    if (lane->idle)
        return true;
    if (!ucx_stage_agrees(group, lane->work->segment + lane->at)) {
        ucx_node_disagree(group, lane->number);
        return true;
    }
    segment_sum(group, lane);
    ucx_span_net_begin(lane);
    lane->state = REDUCE;
    return true;
}

bool ucx_stage_span(ucx_group_t *group, ucx_lane_t *lane)
{
    size_t slices = (size_t)plan_of(group, lane->request).slices;

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
        ucx_stage_done(group, lane->work->segment + lane->at);
        lane->at += slices * (size_t)lane->lanes;
        lane->state = COME;
        return true;
    }
}
