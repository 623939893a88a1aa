/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* hosts: which ranks of a group are on the same host. All functions are pure.
 */
#ifndef CDDP_TRAIN_HOSTS_H
#define CDDP_TRAIN_HOSTS_H

#include "comm/comm.h"

/* Of the ranks [from] to [rank], return the first one on the host of [rank]. */
int train_hosts_first(const comm_group_t *group, int from, int rank);

/* Number the hosts from 0 on, in the order of their first ranks: hosts[r]
 * becomes the number of the host of rank r. Returns the number of hosts. */
int train_hosts_number(const comm_group_t *group, int *hosts);

#endif
