/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Comparisons of what ops of two backends give, or one in several calls. A
 * difference is an assertion of Criterion.
 */
#ifndef CDDP_TESTS_OP_OP_COMPARE_H
#define CDDP_TESTS_OP_OP_COMPARE_H

#include "op_rig.h"

/* Forward and, in training, backward; all that they write is NaN before. */
void op_compare_run(op_rig_t *rig);

/* Check each element of all results against those of [ref], within the case's
 * tolerance, relative to the largest. Both have run. */
void op_compare_ref(const op_case_t *test, op_rig_t *rig, op_rig_t *ref);
/* Check that the norm of the difference of each result is at most [limit] times
 * the norm of ref's. */
void op_compare_norms(op_rig_t *rig, op_rig_t *ref, double limit);
/* Check that the bits of both are equal; [what] is said if they are not. */
void op_compare_bits(op_rig_t *a, op_rig_t *b, const char *what);
/* Run [turns] more times, and check that the bits are equal. */
void op_compare_repeat(const op_case_t *test, op_rig_t *rig, int turns);
/* With y in the memory of x, and dx in that of dy, the bits are those with
 * separate memory. */
void op_compare_in_place(const op_case_t *test, op_rig_t *rig);
/* A NaN in x must reach y, so that a diverging run is noticed. */
void op_compare_nan(const op_case_t *test, const char *backend);

#endif
