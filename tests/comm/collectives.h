/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Every collective on one group, checked; the same for each backend. */
#ifndef CDDP_TESTS_COMM_COLLECTIVES_H
#define CDDP_TESTS_COMM_COLLECTIVES_H

#include "comm/comm.h"

typedef struct collectives {
    const char *backend;
    bool large;      /* 1e6 + 7 elements, too */
    bool plain;      /* ordinary memory instead of an arena */
    bool rank_order; /* reduce-scatter sums in rank order, whatever its size */
    /* A letter per rank: those of one letter are on one node. NULL: as it is */
    const char *nodes;
    const struct comm_table *table; /* NULL: the built-in one */
} collectives_t;

/* A ranks_main_t whose argument is a collectives_t. */
int collectives_run(const comm_oob_t *oob, void *argument);

#endif
