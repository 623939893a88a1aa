/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shared by the tests of comm hooks: a layout, pseudo-random gradients, and
 * runs of some steps over ranks that are threads. */
#ifndef CDDP_TESTS_DDP_HOOK_FIXTURE_H
#define CDDP_TESTS_DDP_HOOK_FIXTURE_H

#include "ddp/ddp.h"
#include "lib/ranks.h"

#define HOOK_RANKS 7

/* Two matrices large enough to compress (one with the shape of a convolution),
 * vectors and a small matrix, with padding between them. */
#define HOOK_VIEWS 5
#define HOOK_ELEMS (2656 + 32 * 54)
extern const view_t hook_views[HOOK_VIEWS];

/* The two hooks of 16-bit floats. */
extern const char *const hook_halves[2];

/* How gradients are made. HOOK_THIN: each rank's matrices are u v^T with a v
 * that all ranks share, so that their sum has rank 1, too. HOOK_EVEN: all
 * elements are equal. */
typedef enum kind { HOOK_RANDOM, HOOK_THIN, HOOK_EVEN } hook_kind_t;

typedef struct plan {
    const char *hook; /* YAML; NULL: no key "hook" */
    const ddp_hook_ops_t *const *hooks;
    hook_kind_t kind;
    float even; /* HOOK_EVEN: value of every gradient */
    /* HOOK_EVEN: number of steps with this value, then zeros; 0: all steps */
    int until;
    int steps;
    int skipper;                        /* rank without samples in odd steps */
    float sent[HOOK_RANKS][HOOK_ELEMS]; /* result of the last step, by rank */
    double used[HOOK_ELEMS];            /* sum over steps of rank 0's results */
    /* sum over steps of a rank's gradients */
    double given[HOOK_RANKS][HOOK_ELEMS];
    double rests[HOOK_RANKS][HOOK_ELEMS]; /* residuals at the end, by rank */
    /* gradients of the last step, by rank */
    float last[HOOK_RANKS][HOOK_ELEMS];
    int64_t bytes;       /* bytes that rank 0 sent in all steps */
    int64_t at;          /* number of the first step */
    err_code_t expected; /* expected result of ddp_open */
    char text[sizeof((err_t *)NULL)->text];
} hook_plan_t;

/* A plan with [hook] and [steps]; free() it. */
hook_plan_t *hook_plan_make(const char *hook, int steps);

/* Fill in the gradients of step [step] of [rank]. */
void hook_fill(const hook_plan_t *plan, int rank, int step, float *grads);

err_code_t hook_group_make(const comm_oob_t *oob, comm_group_t **group,
                           err_t *err);

/* Run the plan, and assert that all ranks end with equal bits. */
void hook_run(hook_plan_t *plan, int ranks);

/* Euclidean norm of x[HOOK_ELEMS]. */
double hook_norm(const double *x);

/* The largest difference between the last step's result and the exact sum, over
 * elements [from] to [to]. */
double hook_worst(const hook_plan_t *plan, int ranks, int from, int to);

/* Assert that results and residuals add up to the gradients, with a relative
 * error of at most [part]. */
void hook_nothing_is_lost(const hook_plan_t *plan, int ranks, double part);

#endif
