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

/* Fill [data] with the values of [rank]: sums of floats depend on the order of
 * summation. */
void collectives_fill(void *data, size_t count, comm_type_t type, int rank);
/* Check the all-reduce of what [size] ranks have filled. Sums of floats are
 * close to the serial sum; maxima, minima and integers are exact. Returns 0 for
 * success. */
int collectives_check(const void *data, size_t count, comm_type_t type,
                      comm_op_t op, int size);

#endif
