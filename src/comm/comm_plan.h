/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_plan: how a collective is carried out. One decision, made once when a
 * collective starts. It is a pure function of where the ranks are, of the table
 * of algorithms and of the request, and therefore the same on all ranks.
 */
#ifndef CDDP_COMM_COMM_PLAN_H
#define CDDP_COMM_COMM_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm_ops.h"
#include "comm/comm_table.h"

/* Lanes that one rank carries out a collective in, at most. */
#define COMM_LANES 2

/* Bytes of one message of a segmented algorithm. Over TCP several times as many
 * on the wire of both lanes took up to four times as long. */
#define COMM_CHUNK_BYTES ((size_t)64 << 10)

/* Where the ranks of a group are, and what their nodes can do for them. */
typedef struct comm_place {
    int ranks;      /* of the group */
    int nodes;      /* that they are on */
    int least;      /* ranks of the node that has the fewest */
    size_t scratch; /* bytes of scratch memory of a lane */
    bool shared;    /* the ranks of a node share memory */
    size_t oneshot; /* most bytes of a one-shot all-reduce on one node */
    size_t staged;  /* most bytes of a staged segment; 0: no staging */
} comm_place_t;

typedef enum comm_way {
    COMM_WAY_NET,     /* messages between all ranks */
    COMM_WAY_ONESHOT, /* one-shot slots of the node */
    COMM_WAY_ZCOPY,   /* arenas, which the ranks of the node map */
    COMM_WAY_STAGED   /* copies in memory of the node */
} comm_way_t;

typedef struct comm_plan {
    comm_way_t way;
    /* COMM_WAY_NET: among all ranks; else over several nodes: between them. It
     * means nothing where there is only one: tree, broadcast, barrier, within a
     * node. */
    comm_algorithm_t algorithm;
    int lanes; /* of a rank that takes part by messages */
    /* Over several nodes, for the ways of the node: */
    int slices;     /* slice s belongs to rank s of every node; 0: one node */
    size_t slice;   /* elements of all slices but the last */
    size_t segment; /* COMM_WAY_ZCOPY: elements that a lane reduces at a time */
} comm_plan_t;

/* [arena]: the data of [request] lies in an arena that the ranks of a node
 * map. */
comm_plan_t comm_plan(const comm_place_t *place, const comm_table_t *table,
                      const comm_request_t *request, bool arena);

/* A static name for people: "shot", "stage+ring", "doubling". */
const char *comm_plan_name(const comm_plan_t *plan);

#endif
