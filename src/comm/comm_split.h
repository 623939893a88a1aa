/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sub-groups: groups over some ranks of another one, their parent, opened over
 * it without the launcher's help. A sub-group is a group of its own: it has its
 * own collectives, arenas and faults, and works go on in both side by side.
 *
 * Its faults name ranks as the outermost parent numbers them, in the sentence
 * and in err_t.culprit. It may outlive its parent, but as the parent watches
 * the same ranks, close sub-groups first: then no rank leaves a group early.
 */
#ifndef CDDP_COMM_COMM_SPLIT_H
#define CDDP_COMM_COMM_SPLIT_H

#include "comm/comm.h"

typedef enum comm_split {
    COMM_SPLIT_NODE,  /* the ranks of this rank's node (comm_group_host) */
    COMM_SPLIT_ACROSS /* those with this rank's place among the ranks of their
                       * nodes; nodes with fewer ranks are not in all of them */
} comm_split_t;

/* The ranks of [group] that this rank is with, itself among them, in rank order
 * into ranks[size]. Returns how many. Pure. */
int comm_split_ranks(const comm_group_t *group, comm_split_t how, int *ranks);

/*
 * Open the group of [count] ranks of [parent] in which rank i is the parent's
 * ranks[i]; in any order, this rank among them once. All ranks of [parent] call
 * this at the same time, each with the list of the group it is to be in
 * (several such groups are opened side by side); with count 0 a rank is in
 * none, and gets NULL. Backend and timeout are the parent's, "self" for one
 * rank. ERR_CONFIG for a wrong list, or one that the members do not have in
 * common: then no member gets a group. Collective; blocks, bounded by the
 * timeout.
 */
err_code_t comm_split_open(comm_group_t *parent, const int *ranks, int count,
                           comm_group_t **out, err_t *err);

#endif
