/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The all-reduce of data in an arena over several nodes (Bayatpour et al.,
 * "Scalable reduction collectives with data partitioning-based multi-leader
 * design", SC17). The buffer is divided into at most as many slices as the
 * smallest node has ranks, so that every slice has an owner on every node. An
 * owner goes through its slice in segments: it sums the segment over its node,
 * reduces it with the owners on the other nodes, and stores the result to all
 * ranks of its node. Two lanes do so side by side: one sums while the messages
 * of the other are under way.
 *
 * All ranks get the same bits: one thread sums over a node, in rank order, and
 * the reduction between nodes gives the same result to all owners.
 */
#include "comm/ucx/ucx_span.h"

#include <string.h>

#include "base/check.h"
#include "comm/node/node_sum.h"
#include "comm/node/node_zcopy.h"

/* WAIT: for the ranks of this node; SUM: over the node; REDUCE: between
 * nodes. */
enum { WAIT, SUM, REDUCE };

/* task->at and task->end are elements. */
static void slice_begin(const ucx_lane_t *lane, ucx_task_t *task)
{
    const comm_plan_t *plan = &lane->work->plan;
    int local = lane->config.place->local;
    size_t begin = (size_t)local * plan->slice;
    size_t count = task->request->count;

    check(local < plan->slices, "rank %d of its node owns none of %d slices",
          local, plan->slices);
    task->at = begin + (size_t)task->index * plan->segment;
    task->end = begin + plan->slice < count ? begin + plan->slice : count;
}

/* The addresses of the current segment, one for each rank of the node. */
static char **segment_parts(const ucx_lane_t *lane)
{
    const ucx_task_t *task = &lane->task;
    char **parts = lane->config.parts;

    node_zcopy_buffers(lane->config.node, task->number, parts);
    for (int i = 0; i < lane->config.place->count; i++)
        parts[i] += task->at * comm_type_bytes(task->request->type);
    return parts;
}

static void segment_sum(ucx_lane_t *lane)
{
    const node_place_t *place = lane->config.place;
    const comm_request_t *what = lane->task.request;
    size_t left = lane->task.end - lane->task.at;
    size_t most = lane->work->plan.segment;
    size_t count = left < most ? left : most;
    char **parts = segment_parts(lane);
    char *mine = parts[place->local];

    node_sum_into(parts, place->count, count, what->type, what->op, mine);
    ucx_lane_reduce_begin(lane, mine, count);
}

/* Store the result of the current segment to the other ranks of the node. */
static void segment_share(const ucx_lane_t *lane)
{
    const comm_request_t *reduced = &lane->part_request;
    char **parts = segment_parts(lane);

    for (int i = 0; i < lane->config.place->count; i++)
        if (i != lane->config.place->local)
            memcpy(parts[i], reduced->data, comm_request_bytes(reduced));
}

bool ucx_span_arena_came(const ucx_lane_t *lane)
{
    return node_zcopy_arrived(lane->config.node, lane->task.number);
}

bool ucx_span_arena(ucx_task_t *task)
{
    ucx_lane_t *lane = task->context;

    switch (task->state) {
    case WAIT:
        lane->idle = !ucx_span_arena_came(lane);
        if (lane->idle)
            return true;
        slice_begin(lane, task);
        task->state = SUM;
        return true;
    case SUM:
        if (task->at >= task->end) {
            node_zcopy_lane_done(lane->config.node, task->number);
            return false;
        }
        segment_sum(lane);
        task->state = REDUCE;
        return true;
    default:
        if (ucx_lane_reduce(lane))
            return true;
        segment_share(lane);
        task->at += lane->work->plan.segment * (size_t)task->lanes;
        task->state = SUM;
        return true;
    }
}
