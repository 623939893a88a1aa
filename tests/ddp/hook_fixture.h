/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the tests of comm hooks share: a layout, gradients made up from
 * counters, and runs of some steps over ranks that are threads. */
#ifndef CDDP_TESTS_DDP_HOOK_FIXTURE_H
#define CDDP_TESTS_DDP_HOOK_FIXTURE_H

#include "ddp/ddp.h"
#include "lib/ranks.h"

#define HOOK_RANKS 7

/* Two matrices worth compressing (one of a convolution's shape), vectors, a
 * small matrix; gaps between them. */
#define HOOK_VIEWS 5
#define HOOK_ELEMS (2656 + 32 * 54)
extern const view_t hook_views[HOOK_VIEWS];

/* The hooks of 16-bit floats; two. */
extern const char *const hook_halves[2];

/* HOOK_THIN: each rank's matrices are u v^T with a v that all ranks share, so
 * that their sum is of rank 1, too. HOOK_EVEN: all the same number. */
typedef enum kind { HOOK_RANDOM, HOOK_THIN, HOOK_EVEN } hook_kind_t;

typedef struct plan {
    const char *hook; /* YAML; NULL: no hook key */
    const ddp_hook_ops_t *const *hooks;
    hook_kind_t kind;
    float even; /* HOOK_EVEN: every gradient */
    int until;  /* HOOK_EVEN: steps with it, then zeros; 0: all */
    int steps;
    int skipper; /* rank that has no samples in odd steps */
    float sent[HOOK_RANKS][HOOK_ELEMS];   /* last step's result */
    double used[HOOK_ELEMS];              /* sum over steps, of rank 0 */
    double given[HOOK_RANKS][HOOK_ELEMS]; /* sum over steps of the gradients */
    double rests[HOOK_RANKS][HOOK_ELEMS]; /* residuals at the end */
    float last[HOOK_RANKS][HOOK_ELEMS];   /* last step's gradients */
    int64_t bytes;                        /* of rank 0, over all steps */
    int64_t at;                           /* first step of the run */
    err_code_t expected;                  /* of opening */
    char text[sizeof((err_t *)NULL)->text];
} hook_plan_t;

/* free() it. */
hook_plan_t *hook_plan_make(const char *hook, int steps);

/* Gradients of one step of [rank]. */
void hook_fill(const hook_plan_t *plan, int rank, int step, float *grads);

err_code_t hook_group_make(const comm_oob_t *oob, comm_group_t **group,
                           err_t *err);

/* Run, and see that all ranks ended with the same bits. */
void hook_run(hook_plan_t *plan, int ranks);

/* Euclidean, of x[HOOK_ELEMS]. */
double hook_norm(const double *x);

/* The largest difference between the last step's result and the true sum. */
double hook_worst(const hook_plan_t *plan, int ranks, int from, int to);

/* What was used and what is still owed are all that was given, but for [part]
 * of it. */
void hook_nothing_is_lost(const hook_plan_t *plan, int ranks, double part);

#endif
