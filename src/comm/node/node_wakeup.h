/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Wake the comm thread of another rank of this node, through a pipe. */
#ifndef CDDP_COMM_NODE_WAKEUP_H
#define CDDP_COMM_NODE_WAKEUP_H

#include <stdbool.h>

typedef struct node node_t;

/* Make this rank's pipe and have its comm thread watch it; false: that is not
 * possible. */
bool node_wakeup_open(node_t *node);
/* Open the pipes of the other ranks, which have made them; false: one cannot be
 * opened. */
bool node_wakeup_connect(node_t *node);
void node_wakeup_close(node_t *node);

/* Wake the comm thread of rank [local] of this node if it sleeps. Any thread.
 */
void node_wakeup_send(node_t *node, int local);
/* This rank's comm thread, or the owner who drives in its place, is about to
 * sleep, or has woken. */
void node_wakeup_asleep(node_t *node, bool asleep);
/* It has woken because its pipe can be read: empty the pipe. */
void node_wakeup_clear(node_t *node);

#endif
