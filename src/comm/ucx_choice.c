/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which algorithm a ucx group carries a collective out with: what its table
 * says, unless that needs more scratch than there is. Pure; the same on all
 * ranks.
 */
#include "comm/ucx_group.h"

/* From so many bytes in all on, direct exchanges go in two lanes. */
#define LANES_BYTES ((size_t)64 << 10)

comm_query_t ucx_query(const ucx_group_t *group, const comm_request_t *what)
{
    comm_query_t query = {.where = group->place.nodes == 1 ? COMM_WHERE_LOCAL
                                                           : COMM_WHERE_NET,
                          .ranks = group->base.size,
                          .bytes = what->count};

    switch (what->kind) {
    case COMM_REDUCE_SCATTER:
        query.choice = COMM_CHOICE_REDUCE_SCATTER;
        break;
    case COMM_GATHER_RANGES:
        query.choice = COMM_CHOICE_GATHER_RANGES;
        break;
    case COMM_ALLGATHER:
        query.choice = COMM_CHOICE_ALLGATHER;
        return query;
    default:
        query.choice = COMM_CHOICE_ALLREDUCE;
        break;
    }
    query.half = comm_type_rounds(what->type);
    query.bytes *= comm_type_bytes(what->type);
    return query;
}

comm_algorithm_t ucx_asked(const ucx_group_t *group, const comm_request_t *what)
{
    comm_query_t query = ucx_query(group, what);

    return comm_table_find(group->base.table, &query);
}

comm_algorithm_t ucx_choice(const ucx_group_t *group,
                            const comm_request_t *what)
{
    comm_algorithm_t found = ucx_asked(group, what);
    size_t scratch = ucx_query(group, what).bytes;

    /* There is no board, or it is too much. */
    if (found == COMM_BY_STAGE && comm_type_rounds(what->type))
        found = COMM_BY_DIRECT;
    if (found == COMM_BY_SHOT || found == COMM_BY_STAGE)
        found = COMM_BY_DOUBLING;
    if (found == COMM_BY_BRUCK)
        scratch *= (size_t)group->base.size;
    else if (found != COMM_BY_DOUBLING)
        return found;
    return scratch <= ucx_task_scratch(group->base.size) ? found : COMM_BY_RING;
}

static ucx_algorithm_t allreduce_of(comm_algorithm_t choice)
{
    return choice == COMM_BY_DOUBLING ? ucx_doubling
           : choice == COMM_BY_DIRECT ? ucx_direct_reduce
                                      : ucx_ring_reduce;
}

static ucx_algorithm_t chosen(const ucx_group_t *group,
                              const comm_request_t *what, int *lanes)
{
    comm_algorithm_t choice = ucx_choice(group, what);
    size_t bytes =
        what->count *
        (what->kind == COMM_ALLGATHER ? 1 : comm_type_bytes(what->type));
    bool direct = choice == COMM_BY_DIRECT;

    *lanes = bytes > (direct ? LANES_BYTES : UCX_CHUNK_BYTES) ? UCX_LANES : 1;
    switch (what->kind) {
    case COMM_REDUCE_SCATTER:
        return direct ? ucx_direct_scatter : ucx_ring_scatter;
    case COMM_GATHER_RANGES:
        return direct ? ucx_direct_gather : ucx_ring_gather;
    case COMM_ALLGATHER:
        *lanes = choice == COMM_BY_BRUCK ? 1 : *lanes;
        return choice == COMM_BY_BRUCK ? ucx_bruck : ucx_ring_gather;
    default:
        *lanes = choice == COMM_BY_DOUBLING ? 1
                 : choice == COMM_BY_RING   ? UCX_LANES
                                            : *lanes;
        return allreduce_of(choice);
    }
}

ucx_algorithm_t ucx_choose(const ucx_group_t *group, const ucx_work_t *work,
                           int *lanes)
{
    const comm_request_t *what = &work->request;

    *lanes = 1;
    if (node_work_is_active(&work->node) &&
        atomic_load(&work->node.way) == NODE_STAGED) {
        *lanes = ucx_stage_lanes(work);
        return ucx_stage_span;
    }
    if (node_work_is_active(&work->node)) {
        *lanes = work->span.lanes;
        return ucx_span;
    }
    switch (what->kind) {
    case COMM_TREE:
        return ucx_tree;
    case COMM_BROADCAST:
        *lanes = what->count > UCX_CHUNK_BYTES ? UCX_LANES : 1;
        return ucx_broadcast;
    case COMM_BARRIER:
        return ucx_barrier;
    default:
        return chosen(group, what, lanes);
    }
}
