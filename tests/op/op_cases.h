/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The one table of op cases: op x shape x options. All modes (check, grad,
 * support, alloc, perf) use it. */
#ifndef CDDP_TESTS_OP_OP_CASES_H
#define CDDP_TESTS_OP_OP_CASES_H

#include "op/op.h"

typedef struct op_case {
    const char *name;
    op_config_t config; /* kind, sizes, in.dims; the rig sets the rest */
    bool blocked; /* x is in a private layout, for backends that have one */
    /* the inputs after the first are in a private layout */
    bool others_blocked;
    /* in backends with private layouts all inputs are stored as bfloat16, and y
     * may be; for all backends the inputs' values are rounded to bfloat16 */
    bool bf16;
    bool large; /* too slow for finite differences */
    bool no_bias, no_dx, evaluation;
    bool weighed; /* losses: each sample has its own weight */
    double range; /* x is in (-range, range); 0 means 1 */
    /* of cpu compared with ref, relative to the largest value */
    double tolerance;
} op_case_t;

extern const op_case_t op_cases[];
extern const int op_case_count;

/* Shapes of real networks, for the mode perf. */
extern const op_case_t op_perf_cases[];
extern const int op_perf_case_count;

#endif
