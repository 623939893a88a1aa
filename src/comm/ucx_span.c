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

/* ---- a lane -------------------------------------------------------------- */

enum { COME, SUM, REDUCE };

/* Where the slice of this lane begins and ends. */
static void lane_begin(const ucx_group_t *group, ucx_lane_t *lane)
{
    const ucx_span_plan_t *plan = &lane->work->span;
    size_t begin = (size_t)group->place.local * plan->slice;
    size_t count = lane->request->count;

    lane->at = begin + (size_t)lane->index * plan->segment;
    lane->span.end = begin + plan->slice < count ? begin + plan->slice : count;
}

/* The places of the current segment, one per rank of the node. */
static char **segment_parts(ucx_group_t *group, const ucx_lane_t *lane)
{
    char **parts = group->span_parts;

    node_zcopy_buffers(group->node, lane->number, parts);
    for (int i = 0; i < group->place.count; i++)
        parts[i] += lane->at * comm_type_bytes(lane->request->type);
    return parts;
}

static void segment_sum(ucx_group_t *group, ucx_lane_t *lane)
{
    size_t left = lane->span.end - lane->at;
    size_t most = lane->work->span.segment;
    char **parts = segment_parts(group, lane);

    lane->span.data = parts[group->place.local];
    lane->span.count = left < most ? left : most;
    node_sum_into(parts, group->place.count, lane->span.count,
                  lane->request->type, lane->request->op, lane->span.data);
}

static void segment_share(ucx_group_t *group, ucx_lane_t *lane)
{
    size_t bytes = lane->span.count * comm_type_bytes(lane->request->type);
    char **parts = segment_parts(group, lane);

    for (int i = 0; i < group->place.count; i++)
        if (i != group->place.local)
            memcpy(parts[i], lane->span.data, bytes);
}

bool ucx_span(ucx_group_t *group, ucx_lane_t *lane)
{
    switch (lane->state) {
    case COME:
        lane->idle = !node_zcopy_arrived(group->node, lane->number);
        if (lane->idle)
            return true;
        lane_begin(group, lane);
        lane->state = SUM;
        return true;
    case SUM:
        if (lane->at >= lane->span.end) {
            node_zcopy_lane_done(group->node, lane->number);
            return false;
        }
        segment_sum(group, lane);
        ucx_span_net_begin(lane);
        lane->state = REDUCE;
        return true;
    default:
        if (ucx_span_net(group, lane))
            return true;
        segment_share(group, lane);
        lane->at += lane->work->span.segment * (size_t)lane->lanes;
        lane->state = SUM;
        return true;
    }
}
