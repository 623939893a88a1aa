/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Decides how a collective is carried out: see comm_plan.h. */
#include "comm/comm_plan.h"

#include "base/check.h"

/* Minimum bytes of a slice; a smaller one is not worth a message of its own. */
#define SLICE_LEAST ((size_t)4 << 10)

/* A slice has a multiple of this number of elements, so that it begins at a
 * cache line, whatever the type. */
#define SLICE_ELEMENTS ((size_t)16)

/* A direct exchange of more bytes uses two lanes. */
#define DIRECT_BYTES ((size_t)64 << 10)

/* ---- what the table says ------------------------------------------------- */

static size_t bytes_of(const comm_request_t *request)
{
    return request->kind == COMM_ALLGATHER || request->kind == COMM_BROADCAST
               ? request->count
               : comm_request_bytes(request);
}

static comm_choice_t choice_of(const comm_request_t *request)
{
    return request->kind == COMM_REDUCE_SCATTER  ? COMM_CHOICE_REDUCE_SCATTER
           : request->kind == COMM_GATHER_RANGES ? COMM_CHOICE_GATHER_RANGES
           : request->kind == COMM_ALLGATHER     ? COMM_CHOICE_ALLGATHER
                                                 : COMM_CHOICE_ALLREDUCE;
}

static comm_algorithm_t asked(const comm_place_t *place,
                              const comm_table_t *table,
                              const comm_request_t *request, comm_where_t where)
{
    comm_query_t query = {.choice = choice_of(request),
                          .where = where,
                          .half = request->kind != COMM_ALLGATHER &&
                                  comm_type_rounds(request->type),
                          .ranks = place->ranks,
                          .bytes = bytes_of(request)};

    return comm_table_find(table, &query);
}

/* ---- memory of the node -------------------------------------------------- */

/* Return whether the table's row for arenas sends [request] through memory of
 * the node. Over several nodes sums of 16-bit floats never go that way: they
 * must be rounded once, and not on each of two levels. */
static bool by_node(const comm_place_t *place, const comm_table_t *table,
                    const comm_request_t *request)
{
    bool reduces = request->kind == COMM_ALLREDUCE;
    bool ranges = request->kind == COMM_REDUCE_SCATTER ||
                  request->kind == COMM_GATHER_RANGES;

    if (place->nodes > 1 ? !reduces || comm_type_rounds(request->type)
                         : !reduces && !ranges)
        return false;
    return asked(place, table, request, COMM_WHERE_ARENA) == COMM_BY_NODE;
}

/* The way on one node. [local] is the table's algorithm for memory outside
 * arenas. */
static comm_way_t way_on_node(const comm_place_t *place,
                              const comm_table_t *table,
                              const comm_request_t *request,
                              comm_algorithm_t local, bool arena)
{
    bool reduces = request->kind == COMM_ALLREDUCE;

    if (request->kind == COMM_BARRIER || (reduces && local == COMM_BY_SHOT &&
                                          bytes_of(request) <= place->oneshot))
        return COMM_WAY_ONESHOT;
    if (arena && by_node(place, table, request))
        return COMM_WAY_ZCOPY;
    /* Requests that are too large for one-shot slots are staged, too. */
    return reduces && place->staged > 0 && request->count > 0 &&
                   (local == COMM_BY_STAGE || local == COMM_BY_SHOT)
               ? COMM_WAY_STAGED
               : COMM_WAY_NET;
}

static comm_way_t way_over_nodes(const comm_place_t *place,
                                 const comm_table_t *table,
                                 const comm_request_t *request, bool arena)
{
    if (!by_node(place, table, request))
        return COMM_WAY_NET;
    if (arena)
        return COMM_WAY_ZCOPY;
    return place->staged > 0 && request->count > 0 ? COMM_WAY_STAGED
                                                   : COMM_WAY_NET;
}

/* ---- over several nodes -------------------------------------------------- */

/* The algorithm between nodes for a slice of [bytes] bytes: recursive doubling,
 * halving or a ring. */
static comm_algorithm_t between_nodes(const comm_place_t *place,
                                      const comm_table_t *table, size_t bytes,
                                      bool half)
{
    comm_query_t query = {.choice = COMM_CHOICE_ALLREDUCE,
                          .where = COMM_WHERE_SLICE,
                          .half = half,
                          .ranks = place->nodes,
                          .bytes = bytes};
    comm_algorithm_t found = comm_table_find(table, &query);

    return found == COMM_BY_DOUBLING || found == COMM_BY_HALVING ? found
                                                                 : COMM_BY_RING;
}

/* Number of lanes for staging; a staged segment is a part of a slice. Two lanes
 * are worth it if a rank owns more than one segment. */
static int staged_lanes(const comm_place_t *place, const comm_plan_t *plan,
                        const comm_request_t *request)
{
    size_t bytes = comm_request_bytes(request);
    size_t slice = plan->slice * comm_type_bytes(request->type);
    size_t segment = slice < place->staged ? slice : place->staged;
    size_t segments = (bytes + segment - 1) / segment;

    return segments > (size_t)plan->slices ? COMM_LANES : 1;
}

static void plan_slices(const comm_place_t *place, const comm_table_t *table,
                        const comm_request_t *request, comm_plan_t *plan)
{
    size_t width = comm_type_bytes(request->type), count = request->count;
    size_t worth = count * width / SLICE_LEAST, part;
    size_t segment = COMM_CHUNK_BYTES;

    plan->slices = place->least;
    if (worth < (size_t)plan->slices)
        plan->slices = worth > 1 ? (int)worth : 1;
    part = (count + (size_t)plan->slices - 1) / (size_t)plan->slices;
    plan->slice = (part + SLICE_ELEMENTS - 1) / SLICE_ELEMENTS * SLICE_ELEMENTS;
    plan->algorithm = between_nodes(place, table, plan->slice * width,
                                    comm_type_rounds(request->type));
    if (plan->algorithm == COMM_BY_RING)
        /* Half a chunk for each node. */
        segment = segment / 2 * (size_t)place->nodes;
    plan->segment = segment / width;
    plan->lanes = plan->way == COMM_WAY_STAGED
                      ? staged_lanes(place, plan, request)
                  : plan->slice > plan->segment ? COMM_LANES
                                                : 1;
    check(plan->slices >= 1 && plan->slices <= place->least &&
              plan->slice * (size_t)plan->slices >= count && plan->segment > 0,
          "%d slices of %zu elements, of %zu", plan->slices, plan->slice,
          count);
}

/* ---- messages between all ranks ------------------------------------------ */

/* The algorithm [found] in the table, unless it needs memory of the node, or
 * more scratch than there is. */
static comm_algorithm_t by_messages(const comm_place_t *place,
                                    const comm_request_t *request,
                                    comm_algorithm_t found)
{
    size_t scratch = bytes_of(request);

    if (found == COMM_BY_STAGE && comm_type_rounds(request->type))
        found = COMM_BY_DIRECT;
    if (found == COMM_BY_SHOT || found == COMM_BY_STAGE)
        found = COMM_BY_DOUBLING;
    if (found == COMM_BY_BRUCK)
        scratch *= (size_t)place->ranks;
    else if (found != COMM_BY_DOUBLING)
        return found;
    return scratch <= place->scratch ? found : COMM_BY_RING;
}

static int message_lanes(const comm_request_t *request,
                         comm_algorithm_t algorithm)
{
    size_t bytes = bytes_of(request);
    size_t least =
        algorithm == COMM_BY_DIRECT ? DIRECT_BYTES : COMM_CHUNK_BYTES;

    switch (request->kind) {
    case COMM_TREE:
    case COMM_BARRIER:
        return 1;
    case COMM_ALLREDUCE:
        if (algorithm != COMM_BY_DIRECT)
            return algorithm == COMM_BY_DOUBLING ? 1 : COMM_LANES;
        break;
    case COMM_ALLGATHER:
        if (algorithm == COMM_BY_BRUCK)
            return 1;
        break;
    default:
        break;
    }
    return bytes > least ? COMM_LANES : 1;
}

/* ---- both ---------------------------------------------------------------- */

static bool is_in_table(comm_kind_t kind)
{
    return kind != COMM_TREE && kind != COMM_BROADCAST && kind != COMM_BARRIER;
}

comm_plan_t comm_plan(const comm_place_t *place, const comm_table_t *table,
                      const comm_request_t *request, bool arena)
{
    comm_plan_t plan = {.way = COMM_WAY_NET, .algorithm = COMM_BY_RING};
    comm_algorithm_t found = COMM_BY_RING;

    if (place->shared && place->nodes > 1)
        plan.way = way_over_nodes(place, table, request, arena);
    if (plan.way != COMM_WAY_NET) {
        plan_slices(place, table, request, &plan);
        return plan;
    }
    if (is_in_table(request->kind))
        found = asked(place, table, request,
                      place->nodes == 1 ? COMM_WHERE_LOCAL : COMM_WHERE_NET);
    if (place->shared && place->nodes == 1)
        plan.way = way_on_node(place, table, request, found, arena);
    if (plan.way != COMM_WAY_NET)
        return plan;
    if (is_in_table(request->kind))
        plan.algorithm = by_messages(place, request, found);
    plan.lanes = message_lanes(request, plan.algorithm);
    return plan;
}

const char *comm_plan_name(const comm_plan_t *plan)
{
    bool staged = plan->way == COMM_WAY_STAGED;

    if (plan->way == COMM_WAY_NET)
        return comm_algorithm_name(plan->algorithm);
    if (plan->way == COMM_WAY_ONESHOT)
        return "shot";
    if (plan->slices == 0)
        return staged ? "stage" : "node";
    switch (plan->algorithm) {
    case COMM_BY_DOUBLING:
        return staged ? "stage+doubling" : "node+doubling";
    case COMM_BY_HALVING:
        return staged ? "stage+halving" : "node+halving";
    default:
        return staged ? "stage+ring" : "node+ring";
    }
}
