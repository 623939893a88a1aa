/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Distributed data parallel training in a program's own loop: each rank
 * computes the gradients of its samples into one arena, and the reducer sums
 * them over ranks in buckets, overlapped with backward.
 *
 * One step: cddp_ddp_begin; cddp_ddp_ready once for each parameter, in any
 * order, as soon as its gradient is final; cddp_ddp_wait, after which the arena
 * holds the sums over ranks, with the same bits on all ranks. A rank without
 * samples, or with an error, calls cddp_ddp_skip before the wait: gradients
 * that were not ready count as zero. Divide gradients by the global number of
 * samples, so that the sum is the gradient of the global mean.
 *
 * On a GPU (cddp_run_config_t.device) the arena and the sums are in its memory.
 * A gradient is final there when the kernel that writes it is complete, so wait
 * for the kernel's stream before cddp_ddp_ready. cddp_device_copy copies from
 * and to the host's memory. The table of a hook says whether the hook works
 * in the GPU's memory, too, or on a copy in the host's memory (<cddp/hook.h>).
 *
 * Thread rule: one thread per rank; every rank makes the same calls in the same
 * order.
 */
#ifndef CDDP_DDP_H
#define CDDP_DDP_H

#include <stddef.h>

#include <cddp/hook.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cddp_ddp cddp_ddp_t;

/* Where one parameter is in the arena, in float32 elements. */
typedef struct cddp_view {
    const char *name;
    size_t offset, count;
} cddp_view_t;

typedef struct cddp_ddp_config {
    /* In the order of their offsets, not overlapping. Best is the order in
     * which backward finishes their gradients. */
    const cddp_view_t *views;
    int view_count;
    size_t elems; /* elements of the gradient arena */
    /* Number of float64 numbers that are summed with the gradients, such as
     * loss and correct answers. 0: none. */
    size_t sums;
    /* Options of the run file's `ddp` section as YAML, such as "{bucket_cap_mb:
     * 4}" or "{hook: bf16}". NULL: defaults. */
    const char *options;
    /* [view_count]: first dimension of each parameter that has several
     * dimensions, 0 for the others. Hooks treat the gradient of the former as a
     * matrix with that number of rows. NULL: all 0. */
    const int64_t *rows;
    /* Hooks besides the built-in ones, ended by NULL. They must outlive the
     * reducer. NULL: none. */
    const cddp_hook_t *const *hooks;
} cddp_ddp_config_t;

/* Open a reducer over [group]; collective. If one rank fails, all ranks
 * get the error of this rank. CDDP_CONFIG names the ranks whose views differ.
 * Only the hooks of [config] must stay valid after the call. Close the reducer
 * before the group.
 */
cddp_code_t cddp_ddp_open(cddp_group_t *group, const cddp_ddp_config_t *config,
                          cddp_ddp_t **out, cddp_error_t *error);
/* NULL allowed. After an error in a step it waits for what the step has
 * started. */
void cddp_ddp_close(cddp_ddp_t *ddp);

/* Memory of the group's device. */
float *cddp_ddp_grads(cddp_ddp_t *ddp); /* [elems], zeroed at first */
double *cddp_ddp_sums(cddp_ddp_t *ddp); /* [sums] */

/* Copy [bytes] bytes of the host's memory at [data] (initial parameters) from
 * rank 0 to all ranks. Collective. */
cddp_code_t cddp_ddp_broadcast(cddp_ddp_t *ddp, void *data, size_t bytes,
                               cddp_error_t *error);

/* Check that all ranks have the same [bytes] bytes at [data], which is in the
 * host's memory. CDDP_DIVERGED names the rank that differs from the majority.
 * Collective. */
cddp_code_t cddp_ddp_check(cddp_ddp_t *ddp, const void *data, size_t bytes,
                           cddp_error_t *error);

/* Tell the hook that [step] updates were made before (after a resume);
 * otherwise it counts from 0. CDDP_CONFIG, with the count unchanged, if [step]
 * is not from 0 to 2^61 - 1. */
cddp_code_t cddp_ddp_step_set(cddp_ddp_t *ddp, int64_t step,
                              cddp_error_t *error);

/* The calls of a step, as described at the top. [view] is the index of the
 * parameter's view. cddp_ddp_wait blocks. */
void cddp_ddp_begin(cddp_ddp_t *ddp);
cddp_code_t cddp_ddp_ready(cddp_ddp_t *ddp, int view, cddp_error_t *error);
cddp_code_t cddp_ddp_skip(cddp_ddp_t *ddp, cddp_error_t *error);
cddp_code_t cddp_ddp_wait(cddp_ddp_t *ddp, cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
