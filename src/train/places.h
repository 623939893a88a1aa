/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * places: the nodes that may have local checkpoints of a run, and where. They
 * are a text with a line "HOST DIRECTORY" for each place, as in RUNDIR/local
 * (line.h). Lines of another form are ignored. All functions are pure; the
 * caller frees what they return.
 */
#ifndef CDDP_TRAIN_PLACES_H
#define CDDP_TRAIN_PLACES_H

#include "comm/comm.h"

/* [places], and [where] on each node of [group], if it is not among them.
 * nodes[r] is the number of the node of rank r (train_hosts_number). */
char *train_places_add(const char *places, const comm_group_t *group,
                       const int *nodes, const char *where);

/* The lines of [places] whose nodes have no rank of [group]. */
char *train_places_rest(const char *places, const comm_group_t *group);

/* The directories of [places], and [where] unless it is "": each of them once,
 * in a line of its own. */
char *train_places_dirs(const char *places, const char *where);

#endif
