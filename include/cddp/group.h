/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A group of ranks and collective operations on it.
 *
 * Every collective is started by all ranks in the same order with the same
 * arguments (buffers aside). All ranks get the same bits. Every wait has a
 * deadline: a peer that is dead or makes no progress for the timeout ends it
 * with CDDP_PEER, which names the culprit.
 *
 * Thread rule: one thread per rank calls everything here; cddp_work_poll may be
 * called from any.
 */
#ifndef CDDP_GROUP_H
#define CDDP_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <cddp/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cddp_group cddp_group_t;
typedef struct cddp_work cddp_work_t;

typedef enum cddp_type {
    CDDP_FLOAT32,
    CDDP_FLOAT64,
    CDDP_INT64,
    CDDP_INT32,
    CDDP_BFLOAT16, /* sums are formed in 32 bits and rounded once */
    CDDP_FLOAT16   /* the same */
} cddp_type_t;
/* A maximum or minimum with a NaN is NaN; integer sums wrap. */
typedef enum cddp_op { CDDP_SUM, CDDP_MAX, CDDP_MIN } cddp_op_t;
typedef enum cddp_state { CDDP_DONE, CDDP_PENDING, CDDP_FAILED } cddp_state_t;

/* Zeroed, it means the defaults. */
typedef struct cddp_run_config {
    /* N > 0: N ranks as threads of this process; 0: the ranks of the Slurm step
     * that `srun --mpi=pmix` has started, or one. */
    int local;
    double timeout;      /* seconds until a silent rank has failed; 0: 60 */
    const char *backend; /* "auto" (also NULL), "self", "threads", "ucx" */
} cddp_run_config_t;

/* The program of each rank; its result is that of the rank. */
typedef cddp_code_t (*cddp_rank_t)(cddp_group_t *group, void *context,
                                   cddp_error_t *error);

/*
 * Open the group, run [rank] in each rank, close the group. Local ranks are
 * threads that share [context]; the error of the lowest failed rank is
 * returned, with CDDP_PEER (another rank failed) only if no rank has another
 * error. Under Slurm each process returns its own result. Blocks until the
 * ranks of this process have returned.
 */
cddp_code_t cddp_run(const cddp_run_config_t *config, cddp_rank_t rank,
                     void *context, cddp_error_t *error);

int cddp_group_rank(const cddp_group_t *group);
int cddp_group_size(const cddp_group_t *group);
const char *cddp_group_backend(const cddp_group_t *group);
const char *cddp_group_host(const cddp_group_t *group, int rank);

/* Report progress: the step, and the name of a phase (which must stay valid).
 * Call it now and then during long work between two collectives; otherwise the
 * other ranks conclude that this rank has failed. Never blocks. */
void cddp_group_report(cddp_group_t *group, int64_t step, const char *phase);

/* CDDP_OK while every peer is well. Never blocks. */
cddp_code_t cddp_group_check(cddp_group_t *group, cddp_error_t *error);

/* ---- sub-groups ---------------------------------------------------------- */

typedef enum cddp_split {
    CDDP_SPLIT_NODE,  /* the ranks of this rank's node */
    CDDP_SPLIT_ACROSS /* those with this rank's place on their nodes */
} cddp_split_t;

/* The ranks of [group] that this rank is with, in rank order into ranks[size of
 * group]; returns how many. Local. */
int cddp_group_ranks(const cddp_group_t *group, cddp_split_t how, int *ranks);

/* Open the group of [count] ranks of [group], in which rank i is ranks[i]: with
 * collectives of its own, which go on beside those of [group]. All ranks of
 * [group] call this at the same time, each with the list of the group that it
 * is to be in; with count 0 a rank is in none and gets NULL. Collective. Close
 * it ahead of [group]. */
cddp_code_t cddp_group_split(cddp_group_t *group, const int *ranks, int count,
                             cddp_group_t **out, cddp_error_t *error);
void cddp_group_close(cddp_group_t *group); /* of a split only; NULL allowed */

/* ---- collectives --------------------------------------------------------- */

/* In-place all-reduce of [count] elements at [data]. */
cddp_code_t cddp_allreduce(cddp_group_t *group, void *data, size_t count,
                           cddp_type_t type, cddp_op_t op, cddp_error_t *error);

/* [bytes] bytes at [data] from rank [root] to all. */
cddp_code_t cddp_broadcast(cddp_group_t *group, void *data, size_t bytes,
                           int root, cddp_error_t *error);

/* [bytes] bytes at [mine] of each rank to [all] (size * bytes), by rank. */
cddp_code_t cddp_allgather(cddp_group_t *group, const void *mine, size_t bytes,
                           void *all, cddp_error_t *error);

cddp_code_t cddp_barrier(cddp_group_t *group, cddp_error_t *error);

/* The two halves of an all-reduce: of the elements at [data], rank r owns those
 * from cuts[r] to cuts[r + 1] - 1 (size + 1 numbers, from 0 on, never falling,
 * the same on all ranks). Reduce-scatter leaves the reduced elements in this
 * rank's range, all others are spent; all-gather of ranges takes that and fills
 * the others. */
cddp_code_t cddp_reduce_scatter(cddp_group_t *group, void *data,
                                const size_t *cuts, cddp_type_t type,
                                cddp_op_t op, cddp_error_t *error);
cddp_code_t cddp_allgather_ranges(cddp_group_t *group, void *data,
                                  const size_t *cuts, cddp_type_t type,
                                  cddp_error_t *error);

/* Start a collective that completes later; its memory ([cuts] too) is left
 * alone until then. The work is released by cddp_work_wait, which must be
 * called once for each start that did not answer CDDP_FAILED; CDDP_DONE leaves
 * NULL in *work. */
cddp_state_t cddp_broadcast_start(cddp_group_t *group, void *data, size_t bytes,
                                  int root, cddp_work_t **work,
                                  cddp_error_t *error);
cddp_state_t cddp_allgather_start(cddp_group_t *group, const void *mine,
                                  size_t bytes, void *all, cddp_work_t **work,
                                  cddp_error_t *error);
cddp_state_t cddp_reduce_scatter_start(cddp_group_t *group, void *data,
                                       const size_t *cuts, cddp_type_t type,
                                       cddp_op_t op, cddp_work_t **work,
                                       cddp_error_t *error);
cddp_state_t cddp_allgather_ranges_start(cddp_group_t *group, void *data,
                                         const size_t *cuts, cddp_type_t type,
                                         cddp_work_t **work,
                                         cddp_error_t *error);
cddp_state_t cddp_barrier_start(cddp_group_t *group, cddp_work_t **work,
                                cddp_error_t *error);
cddp_state_t cddp_allreduce_start(cddp_group_t *group, void *data, size_t count,
                                  cddp_type_t type, cddp_op_t op,
                                  cddp_work_t **work, cddp_error_t *error);
cddp_state_t cddp_work_poll(cddp_work_t *work); /* never blocks */
cddp_code_t cddp_work_wait(cddp_work_t *work, cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
