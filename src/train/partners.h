/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * partners: the ranks that send each other their parts of a local checkpoint
 * (hdf5io/nodeset_copy.h). Nodes are taken in pairs; with an odd number of
 * nodes the last three are taken together. The place of a rank is its number
 * among the ranks of its node. Ranks of the two or three nodes that have the
 * same place are partners. If the nodes have different numbers of ranks, places
 * are counted modulo the smallest of these numbers. So a part passes the
 * network once, whatever the number of nodes.
 *
 * Thread rule: one thread uses the votes, and no thread uses them when the
 * partners are closed.
 */
#ifndef CDDP_TRAIN_PARTNERS_H
#define CDDP_TRAIN_PARTNERS_H

#include "comm/comm.h"
#include "hdf5io/checkpoint.h"

typedef struct train_partners train_partners_t;

/* List in [members] [rank] and its partners, in ascending order. nodes[r] is
 * the node of rank r, of [size] ranks; nodes are numbered from 0 on in the
 * order of their first ranks. Returns the number of members; 0 if there is only
 * one node. Pure. */
int train_partners_list(const int *nodes, int size, int rank, int *members);

/* Open the group of this rank's partners over [parent], a group of the host's
 * memory. *out is NULL if there is only one node. Collective; blocks, bounded
 * by the timeout. */
err_code_t train_partners_open(comm_group_t *parent, const int *nodes,
                               train_partners_t **out, err_t *err);
void train_partners_close(train_partners_t *partners); /* NULL allowed */

comm_group_t *train_partners_group(const train_partners_t *partners);
const hdf5io_votes_t *train_partners_votes(const train_partners_t *partners);
const int *train_partners_members(const train_partners_t *partners);

#endif
