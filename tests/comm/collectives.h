/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Checks every collective on one group; used for each backend. */
#ifndef CDDP_TESTS_COMM_COLLECTIVES_H
#define CDDP_TESTS_COMM_COLLECTIVES_H

#include "comm/comm.h"

typedef struct collectives {
    const char *backend;
    bool large;      /* also 1e6 + 7 elements */
    bool plain;      /* ordinary memory instead of an arena */
    bool rank_order; /* reduce-scatter sums in rank order, at any size */
    /* One letter per rank; ranks of one letter are on one node. NULL: the real
     * hosts */
    const char *nodes;
    const struct comm_table *table; /* NULL: the built-in table */
} collectives_t;

/* A ranks_main_t; [argument] is a collectives_t. */
int collectives_run(const comm_oob_t *oob, void *argument);

#endif
