/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which ranks of a group share a node. Pure; the same on all ranks, as all have
 * the same table of who can see whose memory. Nodes are numbered by their
 * lowest ranks, the ranks of a node by their rank: [local] is that number.
 */
#ifndef CDDP_COMM_NODE_PLACE_H
#define CDDP_COMM_NODE_PLACE_H

#include <stdbool.h>

#include "base/err.h"

typedef struct node_place {
    int nodes;  /* of the group */
    int here;   /* this rank's node */
    int count;  /* ranks of this node */
    int local;  /* this rank among them */
    int least;  /* ranks of the node that has the fewest */
    bool whole; /* all ranks of a node see each other, and nobody else */
    int *order; /* [size]: the ranks, node by node */
    int *first; /* [nodes + 1]: where a node begins in it */
} node_place_t;

/* sees[a * size + b]: rank a can map memory of rank b. */
err_code_t node_place_open(const char *sees, int size, int rank,
                           node_place_t *out, err_t *err);
void node_place_close(node_place_t *place);

/* Do [a] and [b] see each other? Everybody sees itself. */
bool node_place_mates(const char *sees, int size, int a, int b);

int node_place_count(const node_place_t *place, int node);
int node_place_rank(const node_place_t *place, int node, int local);

#endif
