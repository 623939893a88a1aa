/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The all-reduce of data in no arena over several nodes, staged in memory of
 * the node (node_stage.h). Segment i of a work belongs to local rank i % slices
 * of every node. The lanes of a rank go through its segments in turn: they wait
 * until all ranks of the node have copied the segment in, sum it, reduce the
 * sum with the owners on the other nodes, and mark the result as done.
 *
 * Messages use memory of the node only. So the ranks of a node copy and proceed
 * independently of the network.
 */
#include "comm/node/node_stage.h"
#include "comm/node/node_sum.h"
#include "comm/ucx/ucx_span.h"

enum { BEGIN, WAIT, REDUCE };

/* The number, among the segments of all works, of segment task->at of this
 * work. */
static uint64_t segment_of(const ucx_lane_t *lane)
{
    return lane->work->node.segment + lane->task.at;
}

bool ucx_span_staged_came(const ucx_lane_t *lane)
{
    return node_stage_arrived(lane->config.node, segment_of(lane));
}

static void segment_sum(ucx_lane_t *lane)
{
    const ucx_lane_config_t *config = &lane->config;
    const comm_request_t *what = lane->task.request;
    size_t most = lane->work->node.segment_bytes;
    size_t left = comm_request_bytes(what) - lane->task.at * most;
    size_t count = (left < most ? left : most) / comm_type_bytes(what->type);
    char **parts = config->parts;

    for (int i = 0; i < config->place->count; i++)
        parts[i] = node_stage_place(config->node, i, segment_of(lane));
    node_sum_into(parts, config->place->count, count, what->type, what->op,
                  parts[0]);
    ucx_lane_reduce_begin(lane, parts[0], count);
}

/* Sum the next segment if all ranks of the node have copied it in. False: no
 * segment is left. */
static bool segment_begin(ucx_lane_t *lane)
{
    if (lane->task.at >= node_stage_segments(&lane->work->node))
        return false;
    lane->idle = !ucx_span_staged_came(lane);
    if (lane->idle || !node_stage_agrees(lane->config.node, segment_of(lane)))
        return true;
    segment_sum(lane);
    lane->task.state = REDUCE;
    return true;
}

bool ucx_span_staged(ucx_task_t *task)
{
    ucx_lane_t *lane = task->context;
    size_t slices = (size_t)lane->work->plan.slices;

    switch (task->state) {
    case BEGIN:
        task->at =
            (size_t)lane->config.place->local + (size_t)task->index * slices;
        task->state = WAIT;
        return true;
    case WAIT:
        return segment_begin(lane);
    default:
        if (ucx_lane_reduce(lane))
            return true;
        node_stage_done(lane->config.node, segment_of(lane));
        task->at += slices * (size_t)task->lanes;
        task->state = WAIT;
        return true;
    }
}
