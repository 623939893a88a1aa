/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* clocks: what the clocks of ranks (base/clock.h) differ by. */
#ifndef CDDP_TRAIN_CLOCKS_H
#define CDDP_TRAIN_CLOCKS_H

#include "comm/comm.h"

typedef struct train_clock {
    double shift; /* seconds to be added to this rank's instants, to get those
                     of rank 0 */
    double doubt; /* seconds by which the shift may be wrong */
} train_clock_t;

/*
 * Compare this rank's clock with that of rank 0. Ranks on the host of rank 0
 * have its clock, without doubt. For the others, the ranks all-gather their
 * instants some times. If a message took the same time in both directions, the
 * shift is exact. The doubt is the error of the shift if one direction took no
 * time. All ranks of a host have one clock, so all get the shift with the
 * smallest doubt. If a doubt is larger than 0.25 ms, as on a busy machine, the
 * ranks compare again, for about [patience] seconds; 0: they compare once.
 * [patience] must be equal on all ranks. [room] is scratch for 3 numbers a
 * rank. ERR_PEER. Collective; blocks; allocates nothing.
 */
err_code_t train_clocks_compare(comm_group_t *group, double patience,
                                double *room, train_clock_t *out, err_t *err);

#endif
