/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The one table of op cases: op x shape x options. Every mode (check, grad,
 * support, alloc, perf) walks it. */
#ifndef CDDP_TESTS_OP_OP_CASES_H
#define CDDP_TESTS_OP_OP_CASES_H

#include "op/op.h"

typedef struct op_case {
    const char *name;
    op_config_t config;  /* kind, sizes, in.dims; the rig fills the rest */
    bool blocked;        /* backends with private layouts get x in one */
    bool others_blocked; /* the same for the inputs after the first */
    bool bf16;           /* in such backends all inputs lie as bfloat16, and y
                            may; all backends get numbers of that type */
    bool large;          /* too slow for finite differences */
    bool no_bias, no_dx, evaluation;
    bool weighed;     /* losses: each sample has a weight of its own */
    double range;     /* x lies in (-range, range); 0: 1 */
    double tolerance; /* of cpu against ref, relative to the largest value */
} op_case_t;

extern const op_case_t op_cases[];
extern const int op_case_count;

/* Shapes of real networks, for perf. */
extern const op_case_t op_perf_cases[];
extern const int op_perf_case_count;

#endif
