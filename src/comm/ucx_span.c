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
#include "comm/ucx_span.h"

#include <string.h>

#include "base/check.h"
#include "comm/node/node_sum.h"
#include "comm/node/node_zcopy.h"
#include "comm/ucx_group.h"

/* A slice of less is not worth a message of its own. */
#define SLICE_LEAST ((size_t)4 << 10)

/* Slices begin at a cache line, whatever the type. */
#define SLICE_ELEMENTS ((size_t)16)

/* ---- plan ---------------------------------------------------------------- */

static ucx_span_kind_t kind_of(const node_place_t *place,
                               const comm_table_t *table, size_t bytes,
                               bool half)
{
    comm_query_t query = {.choice = COMM_CHOICE_ALLREDUCE,
                          .where = COMM_WHERE_SLICE,
                          .half = half,
                          .ranks = place->nodes,
                          .bytes = bytes};

    switch (comm_table_find(table, &query)) {
    case COMM_BY_DOUBLING:
        return SPAN_DOUBLING;
    case COMM_BY_HALVING:
        return SPAN_HALVING;
    default:
        return SPAN_RING;
    }
}

ucx_span_plan_t ucx_span_plan(const node_place_t *place,
                              const comm_table_t *table, size_t count,
                              comm_type_t type)
{
    size_t width = comm_type_bytes(type), worth = count * width / SLICE_LEAST;
    size_t nodes = (size_t)place->nodes, segment = UCX_CHUNK_BYTES;
    ucx_span_plan_t plan = {.slices = place->least};
    size_t part;

    if (worth < (size_t)plan.slices)
        plan.slices = worth > 1 ? (int)worth : 1;
    part = (count + (size_t)plan.slices - 1) / (size_t)plan.slices;
    plan.slice = (part + SLICE_ELEMENTS - 1) / SLICE_ELEMENTS * SLICE_ELEMENTS;
    plan.kind =
        kind_of(place, table, plan.slice * width, comm_type_rounds(type));
    if (plan.kind == SPAN_RING)
        segment = segment / 2 * nodes; /* messages of half a chunk */
    plan.segment = segment / width;
    plan.lanes = plan.slice > plan.segment ? UCX_LANES : 1;
    return plan;
}

const char *ucx_span_name(ucx_span_kind_t kind, bool arena)
{
    static const char *const names[][2] = {
        [SPAN_DOUBLING] = {"stage+doubling", "node+doubling"},
        [SPAN_HALVING] = {"stage+halving", "node+halving"},
        [SPAN_RING] = {"stage+ring", "node+ring"}};

    return names[kind][arena];
}

ucx_algorithm_t ucx_span_algorithm(ucx_span_kind_t kind)
{
    return kind == SPAN_DOUBLING  ? ucx_doubling
           : kind == SPAN_HALVING ? ucx_halving
                                  : ucx_ring_even;
}

/* ---- a lane -------------------------------------------------------------- */

/* WAIT: for the ranks of this node; SUM: over the node; REDUCE: over nodes. */
enum { WAIT, SUM, REDUCE };

/* task->at and task->end are elements. */
static void slice_begin(const ucx_lane_t *lane, ucx_task_t *task)
{
    const ucx_span_plan_t *plan = &lane->work->span;
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
    size_t most = lane->work->span.segment;
    size_t count = left < most ? left : most;
    char **parts = segment_parts(lane);
    char *mine = parts[group->place.local];

    node_sum_into(parts, group->place.count, count, what->type, what->op, mine);
    ucx_lane_reduce_begin(lane, ucx_span_algorithm(lane->work->span.kind), mine,
                          count);
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
        task->at += lane->work->span.segment * (size_t)task->lanes;
        task->state = SUM;
        return true;
    }
}
