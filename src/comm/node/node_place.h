/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which ranks of a group share a node. Pure. All ranks get equal results, as
 * all have the same table of which rank can map whose memory. Nodes are
 * numbered in the order of their lowest ranks. The ranks of a node have local
 * ranks, 0 to count - 1, in the order of their ranks in the group.
 */
#ifndef CDDP_COMM_NODE_PLACE_H
#define CDDP_COMM_NODE_PLACE_H

#include <stdbool.h>

#include "base/err.h"

typedef struct node_place {
    int nodes;  /* number of nodes of the group */
    int here;   /* number of this rank's node */
    int count;  /* number of ranks on this node */
    int local;  /* local rank of this rank */
    int least;  /* number of ranks on the node with the fewest */
    bool whole; /* all ranks of a node see each other and see no other rank */
    int *order; /* [size]: ranks of the group, node by node */
    int *first; /* [nodes + 1]: index in [order] of each node's first rank */
} node_place_t;

/* Find the nodes. sees[a * size + b]: rank a can map memory of rank b. */
err_code_t node_place_open(const char *sees, int size, int rank,
                           node_place_t *out, err_t *err);
void node_place_close(node_place_t *place);

/* Return whether ranks [a] and [b] are on one node: both see each other, or
 * they are one rank. */
bool node_place_together(const char *sees, int size, int a, int b);

/* Number of ranks on [node]. */
int node_place_count(const node_place_t *place, int node);
/* The rank of the group that has local rank [local] on [node]. */
int node_place_rank(const node_place_t *place, int node, int local);

#endif
