/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Chooses the function that carries out a plan. */
#include "base/check.h"
#include "comm/ucx/ucx_span.h"
#include "comm/ucx/ucx_work.h"

static ucx_algorithm_t allreduce_of(comm_algorithm_t algorithm)
{
    return algorithm == COMM_BY_DOUBLING ? ucx_doubling
           : algorithm == COMM_BY_DIRECT ? ucx_direct_reduce
                                         : ucx_ring_reduce;
}

/* The algorithm with messages between all ranks. */
static ucx_algorithm_t by_messages(comm_kind_t kind, comm_algorithm_t algorithm)
{
    bool direct = algorithm == COMM_BY_DIRECT;

    switch (kind) {
    case COMM_TREE:
        return ucx_tree;
    case COMM_BROADCAST:
        return ucx_broadcast;
    case COMM_BARRIER:
        return ucx_barrier;
    case COMM_REDUCE_SCATTER:
        return direct ? ucx_direct_scatter : ucx_ring_scatter;
    case COMM_GATHER_RANGES:
        return direct ? ucx_direct_gather : ucx_ring_gather;
    case COMM_ALLGATHER:
        return algorithm == COMM_BY_BRUCK ? ucx_bruck : ucx_ring_gather;
    default:
        return allreduce_of(algorithm);
    }
}

ucx_algorithm_t ucx_work_algorithm(const ucx_work_t *work)
{
    const comm_plan_t *plan = &work->plan;

    check(plan->way == COMM_WAY_NET || plan->slices > 0,
          "collective %llu is carried out within the node, and queued",
          (unsigned long long)work->number);
    if (plan->way == COMM_WAY_NET)
        return by_messages(work->request.kind, plan->algorithm);
    return plan->way == COMM_WAY_STAGED ? ucx_span_staged : ucx_span_arena;
}
