/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * vote: ranks tell each other whether they are well, before a collective that a
 * rank with an error would not enter. So no rank waits for such a rank.
 */
#ifndef CDDP_COMM_COMM_VOTE_H
#define CDDP_COMM_COMM_VOTE_H

#include "comm/comm.h"

/*
 * Tell all ranks of [group], a group of the host's memory, whether this rank is
 * well: [mine] has its error, or none. Returns ERR_OK if all ranks are well.
 * Otherwise all ranks get the error of the lowest rank that has one. If other
 * ranks are well, the sentence begins with the name of that rank and its host.
 * A fault of the group is returned, too. Collective; blocks until all ranks
 * have called this function, or until a fault is found. Allocates nothing.
 */
err_code_t comm_vote(comm_group_t *group, const err_t *mine, err_t *err);

#endif
