/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A work: one collective of a ucx group in flight, from start to wait. Fields
 * are marked [o] (owner), [c] (driver) or atomic. */
#ifndef CDDP_COMM_UCX_WORK_H
#define CDDP_COMM_UCX_WORK_H

#include <stdatomic.h>

#include "comm/comm_ops.h"
#include "comm/comm_plan.h"
#include "comm/node/node.h"
#include "comm/ucx/ucx_task.h"

typedef struct ucx_work {
    comm_work_t base;
    uint64_t number;
    bool busy;              /* [o] returned by start, not yet waited for */
    bool queued;            /* [o] the driver has a part in it */
    atomic_int state;       /* comm_state_t of the driver's part */
    comm_request_t request; /* [o] until it is queued, then [c] */
    void *views[COMM_VIEWS_MAX];
    double started;   /* instant of the start */
    comm_plan_t plan; /* how it is carried out; [o] until it is queued */
    node_work_t node; /* active if the node stage has a part in it */
} ucx_work_t;

/* The plan of the last all-reduce. A training step repeats its all-reduces, and
 * the search in the table costs about as much as a small one-shot. */
typedef struct ucx_last_plan {
    size_t count; /* of its request; 0: there is no plan yet */
    comm_type_t type;
    bool arena; /* its data was in an arena */
    comm_plan_t plan;
} ucx_last_plan_t;

/* The algorithm that carries out the driver's part of [work]. Pure. */
ucx_algorithm_t ucx_work_algorithm(const ucx_work_t *work);

#endif
