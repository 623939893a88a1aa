/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The all-reduce of an arena over several nodes (Bayatpour et al., "Scalable
 * reduction collectives with data partitioning-based multi-leader design",
 * SC17). The buffer is cut into as many slices as the smallest node has ranks,
 * so that every slice has an owner on every node. An owner goes through its
 * slice in segments: sum over the node, reduce with the owners on the other
 * nodes, store to all ranks of the node. Two lanes do so side by side: one sums
 * while the other is on the wire.
 *
 * Bits: a node's sum is made in rank order by one thread; the stage between
 * nodes gives its result to all owners; so all ranks hold the same.
 */
#include <string.h>

#include "base/check.h"
#include "comm/node/node_sum.h"
#include "comm/node/node_zcopy.h"
#include "comm/ucx/ucx_group.h"

/* ---- a lane -------------------------------------------------------------- */

/* WAIT: for the ranks of this node; SUM: over the node; REDUCE: over nodes. */
enum { WAIT, SUM, REDUCE };

/* task->at and task->end are elements. */
static void slice_begin(const ucx_lane_t *lane, ucx_task_t *task)
{
    const comm_plan_t *plan = &lane->work->plan;
    size_t begin = (size_t)lane->group->place.local * plan->slice;
    size_t count = task->request->count;

    check(lane->group->place.local < plan->slices,
          "rank %d of its node owns none of %d slices",
          lane->group->place.local, plan->slices);
    task->at = begin + (size_t)task->index * plan->segment;
    task->end = begin + plan->slice < count ? begin + plan->slice : count;
}

/* Where the current segment lies, for each rank of the node. */
static char **segment_parts(const ucx_lane_t *lane)
{
    const ucx_group_t *group = lane->group;
    const ucx_task_t *task = &lane->task;
    char **parts = group->span_parts;

    node_zcopy_buffers(group->node, task->number, parts);
    for (int i = 0; i < group->place.count; i++)
        parts[i] += task->at * comm_type_bytes(task->request->type);
    return parts;
}

static void segment_sum(ucx_lane_t *lane)
{
    const ucx_group_t *group = lane->group;
    const comm_request_t *what = lane->task.request;
    size_t left = lane->task.end - lane->task.at;
    size_t most = lane->work->plan.segment;
    size_t count = left < most ? left : most;
    char **parts = segment_parts(lane);
    char *mine = parts[group->place.local];

    node_sum_into(parts, group->place.count, count, what->type, what->op, mine);
    ucx_lane_reduce_begin(lane, mine, count);
}

static void segment_share(const ucx_lane_t *lane)
{
    const ucx_group_t *group = lane->group;
    char **parts = segment_parts(lane);

    for (int i = 0; i < group->place.count; i++)
        if (i != group->place.local)
            memcpy(parts[i], lane->segment.data,
                   comm_request_bytes(&lane->segment));
}

bool ucx_span(ucx_task_t *task)
{
    ucx_lane_t *lane = task->context;

    switch (task->state) {
    case WAIT:
        lane->idle = !node_zcopy_arrived(lane->group->node, task->number);
        if (lane->idle)
            return true;
        slice_begin(lane, task);
        task->state = SUM;
        return true;
    case SUM:
        if (task->at >= task->end) {
            node_zcopy_lane_done(lane->group->node, task->number);
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
