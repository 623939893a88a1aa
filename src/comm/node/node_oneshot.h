/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One-shot collectives of the node stage: small all-reduces of any memory, and
 * barriers, in a group on one node.
 *
 * They have sequence numbers of their own. Each rank has a ring of
 * ONESHOT_SLOTS slots in the control block; number s uses slot s %
 * ONESHOT_SLOTS. A rank that starts a one-shot copies its data into its slot
 * and then raises the flag, which shares a cache line with the first bytes of
 * the data. A rank that waits sums the slots of all ranks in rank order into
 * its own buffer. So one cache line travels between cores, no rank owns the
 * sum, and no rank depends on what another rank does after its start. All ranks
 * add in the same order, so they get the same bits.
 *
 * Each rank publishes the number of one-shots that it has consumed. A slot is
 * written again when all ranks have consumed its contents. Until then a later
 * number is not posted, and the next wait or poll tries again. Numbers are
 * posted and consumed in order, under node.lock.
 */
#ifndef CDDP_COMM_NODE_ONESHOT_H
#define CDDP_COMM_NODE_ONESHOT_H

#include <stdbool.h>

typedef struct node node_t;
typedef struct node_work node_work_t;

/* Start [work]. Owner. */
void node_oneshot_start(node_t *node, node_work_t *work);
/* Post and consume what is possible. Returns whether anything was consumed.
 * Owner. */
bool node_oneshot_progress(node_t *node);
/* Return whether this rank has started one-shots that it has not consumed. Any
 * thread. */
bool node_oneshot_busy(const node_t *node);
/* Return whether the next one-shot can be consumed. Any thread. */
bool node_oneshot_ready(const node_t *node);

#endif
