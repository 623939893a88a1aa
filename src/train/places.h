/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * places: the nodes that may have local checkpoints of a run, and where. They
 * are a text with a line "HOST DIRECTORY" for each place, as in RUNDIR/local
 * (line.h). Lines of another form are ignored. All functions are local. The
 * caller frees, with free(), the text that a function returns or sets [out] to.
 */
#ifndef CDDP_TRAIN_PLACES_H
#define CDDP_TRAIN_PLACES_H

#include "comm/comm.h"

/* The nodes of a start, and where they write local checkpoints. */
typedef struct train_places_start {
    const comm_group_t *group;
    const int *nodes; /* node of each rank: see train_hosts_number */
    const char *where;
} train_places_start_t;

/* *out becomes [places], and after them the place of each node of [start] that
 * [places] does not have. ERR_MEMORY. */
err_code_t train_places_add(const char *places,
                            const train_places_start_t *start, char **out,
                            err_t *err);

/* *out becomes the lines of [places] whose nodes have no rank of [group].
 * ERR_MEMORY. */
err_code_t train_places_rest(const char *places, const comm_group_t *group,
                             char **out, err_t *err);

/* Return the directories of [places], and [where] unless it is "". Each of them
 * is one line of the text, and no two lines are equal. */
char *train_places_dirs(const char *places, const char *where);

#endif
