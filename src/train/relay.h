/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* relay: passes the bytes of a checkpoint between the ranks of a group, for
 * hdf5io_votes_t. */
#ifndef CDDP_TRAIN_RELAY_H
#define CDDP_TRAIN_RELAY_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm.h"

/* See hdf5io_votes_t.spread. [group] is one for host memory. After ERR_MEMORY,
 * which happens on one rank alone, the group has failed. Collective; blocks. */
err_code_t train_relay(comm_group_t *group, void *data, const size_t *cuts,
                       err_t *err);

/* Are the ranks of [group] threads of one process? See hdf5io_votes_t.together.
 */
bool train_relay_together(const comm_group_t *group);

#endif
