/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * partners: the ranks that send each other their parts of a local checkpoint
 * (hdf5io/nodeset_copy.h). Nodes are taken in pairs; with an odd number of
 * nodes the last three are taken together. In a pair, the ranks of one place on
 * their nodes are partners; if the nodes have different numbers of ranks, the
 * places are counted modulo the smallest of these numbers. So a part passes the
 * network once, whatever the number of nodes.
 *
 * Thread rule: one thread uses the votes, and none is in use when the partners
 * are closed.
 */
#ifndef CDDP_TRAIN_PARTNERS_H
#define CDDP_TRAIN_PARTNERS_H

#include "comm/comm.h"
#include "hdf5io/checkpoint.h"

typedef struct train_partners train_partners_t;

/* List in [members] the partners of [rank], which is one of them, in ascending
 * order; nodes[r], for [size] ranks, is the number of the node of rank r, from
 * 0 on in the order of the nodes' first ranks. Returns how many these are; 0 if
 * there is only one node. Pure. */
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
