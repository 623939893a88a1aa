/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Bells: wake the comm thread of another rank of this node. */
#ifndef CDDP_COMM_NODE_BELL_H
#define CDDP_COMM_NODE_BELL_H

#include <stdbool.h>

typedef struct node node_t;

/* Make this rank's bell and have the comm thread watch it; false: it cannot be
 * made. */
bool node_bell_hang(node_t *node);
/* Open those of the others, who have made them; false: one is out of reach. */
bool node_bell_reach(node_t *node);
void node_bell_close(node_t *node);

/* Wake the comm thread of rank [local] of this node if it sleeps. Any thread.
 */
void node_bell_ring(node_t *node, int local);
/* This rank's comm thread, or who drives in its place, is about to sleep, or
 * has woken. */
void node_bell_asleep(node_t *node, bool asleep);
/* It has woken because the bell rang. */
void node_bell_clear(node_t *node);

#endif
