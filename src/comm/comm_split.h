/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sub-groups: groups over some ranks of another group, their parent, opened
 * over the parent without the launcher's help. A sub-group is a group of its
 * own: it has its own collectives, arenas and faults, and works of both groups
 * may be in flight together.
 *
 * Its faults use the rank numbers of the outermost parent, in messages and in
 * err_t.culprit. It may outlive its parent. But the parent watches the same
 * ranks, so close sub-groups first: then no rank leaves a group early.
 */
#ifndef CDDP_COMM_COMM_SPLIT_H
#define CDDP_COMM_COMM_SPLIT_H

#include "comm/comm.h"

typedef enum comm_split {
    COMM_SPLIT_NODE, /* the ranks on this rank's node (comm_group_host) */
    /* The ranks with this rank's index among the ranks of their nodes; nodes
     * with fewer ranks are missing. */
    COMM_SPLIT_ACROSS
} comm_split_t;

/* Parents work on the host's memory (comm_group_dev is NULL). */

/* Open a group of all ranks of [parent], in their order, with [config]: for
 * example the group of a device beside that of the host. config.beside is
 * ignored: it becomes [parent]. All ranks call this at the same time. If a rank
 * cannot open its part, no rank gets a group, and all ranks get its error.
 * Collective; blocks, bounded by the timeouts. */
err_code_t comm_split_whole(comm_group_t *parent, const comm_config_t *config,
                            comm_group_t **out, err_t *err);

/* List in [ranks] the ranks of [group] that would be in a sub-group with this
 * rank, which is one of them, in rank order. Returns their number. [ranks] has
 * size elements. Pure. */
int comm_split_ranks(const comm_group_t *group, comm_split_t how, int *ranks);

/*
 * Open a group of [count] ranks of [parent], in which rank i is the parent's
 * rank ranks[i]. The order is arbitrary; this rank is in the list once. All
 * ranks of [parent] call this at the same time, each with the list of its own
 * sub-group; several sub-groups may be opened in one call. A rank that passes
 * count 0 is in none and gets NULL. Backend and timeout are the parent's
 * ("self" for one rank). ERR_CONFIG if a list is wrong, or differs between
 * members: then no member gets a group. If a rank of [parent] has no memory for
 * its part, no rank gets a group, and all ranks get its error. Collective;
 * blocks, bounded by the timeout.
 */
err_code_t comm_split_open(comm_group_t *parent, const int *ranks, int count,
                           comm_group_t **out, err_t *err);

#endif
