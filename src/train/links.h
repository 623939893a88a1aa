/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* links: how long messages from each host to the others take. */
#ifndef CDDP_TRAIN_LINKS_H
#define CDDP_TRAIN_LINKS_H

#include "comm/comm.h"

/* Bytes of a message. At most so many hosts are measured: they send one after
 * the other. */
#define TRAIN_LINKS_BYTES 32768
#define TRAIN_LINKS_HOSTS 128

/*
 * The first ranks of the [count] hosts, leads[0] to leads[count - 1], open a
 * group, in which each of them in turn broadcasts a message. On these ranks
 * seconds[h] becomes the median time of a few such broadcasts by leads[h],
 * until those who get it directly have answered; 0 if the group could not be
 * opened, which is logged. The other ranks only agree not to be in that group.
 * ERR_PEER. All ranks of [group] call this; blocks.
 */
err_code_t train_links_measure(comm_group_t *group, const int *leads, int count,
                               double *seconds, err_t *err);

#endif
