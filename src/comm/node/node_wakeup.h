/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Wake the comm thread of another rank of this node, through a pipe. */
#ifndef CDDP_COMM_NODE_WAKEUP_H
#define CDDP_COMM_NODE_WAKEUP_H

#include <stdbool.h>

typedef struct node node_t;

/* Make this rank's pipe and have its comm thread watch it. False if that is not
 * possible. */
bool node_wakeup_open(node_t *node);
/* Open the pipes of the other ranks, after all ranks have made theirs. False if
 * one cannot be opened. */
bool node_wakeup_connect(node_t *node);
void node_wakeup_close(node_t *node);

/* Wake the comm thread of rank [local] of this node if it sleeps. Any thread.
 */
void node_wakeup_send(node_t *node, int local);
/* Tell whether this rank's comm thread, or the owner that drives instead of it,
 * is about to sleep. */
void node_wakeup_asleep(node_t *node, bool asleep);
/* Empty the pipe, after the thread was woken by it. */
void node_wakeup_clear(node_t *node);

#endif
