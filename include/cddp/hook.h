/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Comm hooks of a program. A hook replaces the plain sum of a bucket's
 * gradients by another reduction. A hook is a constant table that
 * cddp_ddp_config_t.hooks lists; the option `hook: NAME` chooses one of these
 * or of the built-in ones.
 *
 * A hook works on a bucket (a contiguous part of the gradient arena) in turns.
 * Turn 0 begins as soon as the gradients of the bucket are final, overlapped
 * with backward. After backward comes turn 1 of all buckets, in order, then
 * turn 2 of all, and so on. All ranks take the same turns in the same order, so
 * a turn may start collectives through its wire, and a later turn of the bucket
 * waits for them. After its last turn the bucket must hold the sum over ranks,
 * or the hook's approximation, with the same bits on all ranks.
 *
 * The member `place` of the table (cddp_hook_t) says in which memory the hook
 * wants the gradients:
 * - CDDP_HOOK_HOST, the default. In a run on GPUs the hook gets a copy of the
 *   gradients in the host's memory. So the same functions work for CPUs and
 *   GPUs. In a run on GPUs, turn 0 of a bucket begins in cddp_ddp_wait.
 * - CDDP_HOOK_DEVICE. The hook gets the gradients in the memory of the GPU
 *   (cddp_run_config_t.device), and the buffers of its collectives must be in
 *   this memory, too. A turn must not wait for the GPU: it only enqueues its
 *   kernels and copies, on the stream that cddp_wire_stream returns. A
 *   collective begins when the GPU has finished the work that the stream had
 *   when the collective was started. cddp_wire_wait makes the stream wait for
 *   the collectives: work that is enqueued after this call finds their results.
 *   cddp_ddp_wait waits until the GPU has finished all turns. In a run on CPUs,
 *   cddp_ddp_open refuses such a hook with CDDP_CONFIG.
 *
 * Thread rule: one thread per rank.
 */
#ifndef CDDP_HOOK_H
#define CDDP_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include <cddp/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- collectives of a turn ----------------------------------------------- */

/* The collectives in flight of one bucket. The reducer owns it, and waits for
 * the collectives after a failure. */
typedef struct cddp_wire cddp_wire_t;

#define CDDP_WIRE_WORKS 4 /* maximum of collectives that one turn may start */

int cddp_wire_rank(const cddp_wire_t *wire);
int cddp_wire_size(const cddp_wire_t *wire);

/* Start the sum over ranks of [count] elements, in place; [data] must stay
 * until cddp_wire_wait. */
cddp_code_t cddp_wire_sum(cddp_wire_t *wire, void *data, size_t count,
                          cddp_type_t type, cddp_error_t *error);

/* Start gathering [bytes] at [mine] of each rank to [all] (size * bytes). */
cddp_code_t cddp_wire_gather(cddp_wire_t *wire, const void *mine, size_t bytes,
                             void *all, cddp_error_t *error);

/* Wait for all collectives of the wire. With CDDP_HOOK_DEVICE the stream waits
 * for them, and this call may return before they are complete. */
cddp_code_t cddp_wire_wait(cddp_wire_t *wire, cddp_error_t *error);

/* With CDDP_HOOK_DEVICE: return the cudaStream_t on which a turn enqueues, and
 * make the GPU of this stream the current GPU of the calling thread. With
 * CDDP_HOOK_HOST: return NULL. */
void *cddp_wire_stream(const cddp_wire_t *wire);

/* ---- what a hook sees ---------------------------------------------------- */

/* One parameter's gradient: a matrix of rows x columns, or rows is 0. */
typedef struct cddp_hook_view {
    size_t offset, count; /* in elements of the arena */
    int64_t rows, columns;
} cddp_hook_view_t;

typedef struct cddp_hook_bucket {
    int index;
    float *grads;         /* [count], in the arena; gaps are zeros */
    size_t offset, count; /* in elements of the arena */
    const cddp_hook_view_t *views;
    int view_count;
} cddp_hook_bucket_t;

typedef struct cddp_hook_plan {
    void *context; /* context of the hook's table */
    const cddp_hook_bucket_t *buckets;
    int bucket_count;
    size_t elems; /* elements of the gradient arena */
    int rank, size;
} cddp_hook_plan_t;

/* The memory in which a hook wants the gradients. */
typedef enum cddp_hook_place {
    CDDP_HOOK_HOST,
    CDDP_HOOK_DEVICE
} cddp_hook_place_t;

typedef struct cddp_hook {
    const char *name; /* name that the option `hook` chooses */
    void *context;    /* for the program's use, handed to open */
    int turns;        /* >= 1 */

    /* Allocate all memory that steps need. The plan and all that it points to
     * outlive the state. With CDDP_HOOK_DEVICE the buffers of collectives
     * must be in the memory of the group's GPU (cddp_group_device). */
    cddp_code_t (*open)(const cddp_hook_plan_t *plan, void **state,
                        cddp_error_t *error);
    /* With CDDP_HOOK_DEVICE this is not called after an error that leaves the
     * GPU at work for ever: a call of CUDA might not return. */
    void (*close)(void *state);

    /* (optional) A step begins; [step] updates were made before it. */
    void (*begin)(void *state, int64_t step);

    /* Carry out turn [turn] of [bucket]. */
    cddp_code_t (*turn)(void *state, const cddp_hook_bucket_t *bucket, int turn,
                        cddp_wire_t *wire, cddp_error_t *error);

    cddp_hook_place_t place; /* 0: CDDP_HOOK_HOST */
} cddp_hook_t;

#ifdef __cplusplus
}
#endif
#endif
