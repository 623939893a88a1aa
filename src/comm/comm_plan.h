/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_plan: how a collective is carried out. The decision is made once, when
 * the collective starts. It is a pure function of the place of the ranks, the
 * table of algorithms and the request, and therefore equal on all ranks.
 */
#ifndef CDDP_COMM_COMM_PLAN_H
#define CDDP_COMM_COMM_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm_ops.h"
#include "comm/comm_table.h"

/* Maximum number of lanes in which a rank carries out one collective. */
#define COMM_LANES 2

/* Bytes of one message of a segmented algorithm. Over TCP, messages several
 * times as large took up to four times as long when both lanes sent at a
 * time. */
#define COMM_CHUNK_BYTES ((size_t)64 << 10)

/* The place of the ranks of a group, and what their nodes offer. */
typedef struct comm_place {
    int ranks;      /* ranks of the group */
    int nodes;      /* nodes with ranks of the group */
    int least;      /* ranks on the node with the fewest ranks */
    size_t scratch; /* bytes of scratch memory of a lane */
    bool shared;    /* the ranks of a node share memory */
    size_t oneshot; /* maximum bytes of a one-shot all-reduce on one node */
    size_t staged;  /* maximum bytes of a staged segment; 0: no staging */
} comm_place_t;

typedef enum comm_way {
    COMM_WAY_NET,     /* messages between all ranks */
    COMM_WAY_ONESHOT, /* one-shot slots in memory of the node */
    COMM_WAY_ZCOPY,   /* arenas, which all ranks of the node have mapped */
    COMM_WAY_STAGED   /* copies through memory of the node */
} comm_way_t;

typedef struct comm_plan {
    comm_way_t way;
    /* With COMM_WAY_NET the algorithm among all ranks. With other ways and
     * several nodes the algorithm between nodes. Not used for tree, broadcast
     * and barrier, nor within one node. */
    comm_algorithm_t algorithm;
    int lanes; /* lanes of a rank that sends messages */
    /* With several nodes, for ways through memory of the node: */
    /* Number of slices; slice s belongs to rank s of every node; 0: one
     * node. */
    int slices;
    size_t slice;   /* elements of each slice except the last */
    size_t segment; /* COMM_WAY_ZCOPY: elements that a lane reduces together */
} comm_plan_t;

/* Decide how [request] is carried out. [arena]: its data is in an arena that
 * the ranks of a node have mapped. */
comm_plan_t comm_plan(const comm_place_t *place, const comm_table_t *table,
                      const comm_request_t *request, bool arena);

/* A static name for messages: "shot", "stage+ring", "doubling". */
const char *comm_plan_name(const comm_plan_t *plan);

#endif
