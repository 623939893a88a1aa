/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An all-reduce of an arena over several nodes: how it is cut, and which rank
 * of a node has which segments of a staged one. Pure; the same on all ranks.
 */
#ifndef CDDP_COMM_UCX_SPAN_H
#define CDDP_COMM_UCX_SPAN_H

#include "comm/comm_ops.h"
#include "comm/node/node_place.h"
#include "comm/ucx_task.h"

typedef enum ucx_span_kind {
    SPAN_DOUBLING, /* recursive doubling: all of a segment log2(nodes) times */
    SPAN_HALVING,  /* Rabenseifner: halves, then doubles */
    SPAN_RING
} ucx_span_kind_t;

typedef struct ucx_span_plan {
    ucx_span_kind_t kind; /* between the nodes */
    int slices;           /* slice s belongs to rank s of every node */
    int lanes;            /* of each slice */
    size_t slice;         /* elements of a slice */
    size_t segment;       /* elements that a lane reduces at a time */
} ucx_span_plan_t;

ucx_span_plan_t ucx_span_plan(const node_place_t *place,
                              const comm_table_t *table, size_t count,
                              comm_type_t type);
/* What carries out an all-reduce between the nodes. */
ucx_algorithm_t ucx_span_algorithm(ucx_span_kind_t kind);
/* A static name for people, of data in an arena or of staged data. */
const char *ucx_span_name(ucx_span_kind_t kind, bool arena);

#endif
