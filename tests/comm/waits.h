/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Waits of tests for which there is no event, and the time that this machine
 * needs. */
#ifndef CDDP_TESTS_COMM_WAITS_H
#define CDDP_TESTS_COMM_WAITS_H

#include "comm/comm.h"

/* Poll [work] until it is over. */
comm_state_t waits_poll(comm_work_t *work);
/* Check [group] until it has failed; the fault is stored in [err]. */
void waits_fault(comm_group_t *group, err_t *err);

/* At least [seconds]; more where that is less than several times what a small
 * run (open a ucx group, reduce, close) takes on this machine now. For timeouts
 * that no rank of a working group may miss. */
double waits_timeout(double seconds);

/* How long ranks whose timeout waits_timeout gave may take until they count as
 * hanging, in seconds. */
double waits_deadline(double timeout);

#endif
