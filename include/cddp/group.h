/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A group of ranks and collective operations on it.
 *
 * Every collective is started by all ranks in the same order with the same
 * arguments, except the addresses and contents of buffers. All ranks get the
 * same bits. Every wait has a deadline: if a peer is dead, or makes no progress
 * for the timeout, the wait ends with CDDP_PEER, which names that rank.
 *
 * Thread rule: one thread per rank calls these functions; cddp_work_poll may be
 * called from any thread.
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
    CDDP_BFLOAT16, /* sums are formed in float32 and rounded */
    CDDP_FLOAT16   /* sums are formed in float32 and rounded */
} cddp_type_t;
/* If an element is NaN, the maximum and the minimum are NaN. Integer sums wrap.
 */
typedef enum cddp_op { CDDP_SUM, CDDP_MAX, CDDP_MIN } cddp_op_t;
typedef enum cddp_state { CDDP_DONE, CDDP_PENDING, CDDP_FAILED } cddp_state_t;

/* Fields that are 0 have their defaults. */
typedef struct cddp_run_config {
    /* N > 0: run N ranks as threads of this process. 0: be one of the ranks
     * that `srun --mpi=pmix` has started, or the only rank. */
    int local;
    /* seconds after which a silent rank counts as failed; 0: 60 */
    double timeout;
    /* How the ranks communicate: "self" (one rank), "threads" or "ucx". "auto"
     * (also NULL): what fits the ranks. With a device, "nccl" means that NCCL
     * sums the gradients; all else is as with "auto". <cddp/device.h> says
     * when "auto" means that, too. */
    const char *backend;
    /* "cpu" (also NULL). "cuda": a GPU; the ranks of a host take its GPUs in
     * turn. "cuda:1": the GPU with this index. See <cddp/device.h>. */
    const char *device;
} cddp_run_config_t;

/* The function that each rank runs. It returns the result of the rank. */
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

/* Rank of the caller, number of ranks, name of the backend ("nccl": that is how
 * gradients are summed, and the other collectives use "ucx"), and name of the
 * host of [rank]. The texts live as long as the group. */
int cddp_group_rank(const cddp_group_t *group);
int cddp_group_size(const cddp_group_t *group);
const char *cddp_group_backend(const cddp_group_t *group);
const char *cddp_group_host(const cddp_group_t *group, int rank);

/* Report progress: the step, and the name of a phase (which must stay valid).
 * Call it now and then during long work between two collectives; otherwise the
 * other ranks conclude that this rank has failed. Never blocks. */
void cddp_group_report(cddp_group_t *group, int64_t step, const char *phase);

/* CDDP_OK while no peer has failed, then CDDP_PEER. Never blocks. */
cddp_code_t cddp_group_check(cddp_group_t *group, cddp_error_t *error);

/* ---- sub-groups ---------------------------------------------------------- */

typedef enum cddp_split {
    CDDP_SPLIT_NODE,  /* the ranks of this rank's node */
    CDDP_SPLIT_ACROSS /* one rank per node: those with this rank's number on its
                         node */
} cddp_split_t;

/* Write the ranks that are in this rank's sub-group, in rank order, to [ranks]
 * (room for all ranks of [group]); returns their number. Local. */
int cddp_group_ranks(const cddp_group_t *group, cddp_split_t how, int *ranks);

/* Open a sub-group of [group]: [count] of its ranks, of which ranks[i] becomes
 * rank i. Its collectives are independent of those of [group]. All ranks of
 * [group] call this at the same time, each with the list of its own sub-group;
 * a rank with count 0 is in none and gets NULL. Collective. Close the sub-group
 * before [group]. */
cddp_code_t cddp_group_split(cddp_group_t *group, const int *ranks, int count,
                             cddp_group_t **out, cddp_error_t *error);
void cddp_group_close(cddp_group_t *group); /* sub-groups only; NULL allowed */

/* ---- collectives --------------------------------------------------------- */

/* In-place all-reduce of [count] elements at [data]. */
cddp_code_t cddp_allreduce(cddp_group_t *group, void *data, size_t count,
                           cddp_type_t type, cddp_op_t op, cddp_error_t *error);

/* Copy [bytes] bytes at [data] from rank [root] to all ranks. */
cddp_code_t cddp_broadcast(cddp_group_t *group, void *data, size_t bytes,
                           int root, cddp_error_t *error);

/* Gather [bytes] bytes at [mine] of each rank to [all] (size * bytes), in rank
 * order. */
cddp_code_t cddp_allgather(cddp_group_t *group, const void *mine, size_t bytes,
                           void *all, cddp_error_t *error);

/* Wait until all ranks have called this. */
cddp_code_t cddp_barrier(cddp_group_t *group, cddp_error_t *error);

/* The two halves of an all-reduce. Of the elements at [data], rank r owns those
 * from cuts[r] to cuts[r + 1] - 1. [cuts] has size + 1 numbers, the first 0,
 * none smaller than the one before, and is the same on all ranks.
 * Reduce-scatter leaves the reduced elements in the range that this rank owns;
 * the other elements are then undefined. All-gather of ranges takes the range
 * of each rank and fills the others. */
cddp_code_t cddp_reduce_scatter(cddp_group_t *group, void *data,
                                const size_t *cuts, cddp_type_t type,
                                cddp_op_t op, cddp_error_t *error);
cddp_code_t cddp_allgather_ranges(cddp_group_t *group, void *data,
                                  const size_t *cuts, cddp_type_t type,
                                  cddp_error_t *error);

/* Start a collective that completes later. Until then its memory, [cuts]
 * included, must not be touched. If the start returns CDDP_PENDING, call
 * cddp_work_wait once, which releases the work. CDDP_DONE leaves NULL in *work,
 * for which cddp_work_wait does nothing. */
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
