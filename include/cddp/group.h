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

typedef enum cddp_type { CDDP_FLOAT32, CDDP_FLOAT64, CDDP_INT64 } cddp_type_t;
typedef enum cddp_op { CDDP_SUM, CDDP_MAX } cddp_op_t;
typedef enum cddp_state { CDDP_DONE, CDDP_PENDING, CDDP_FAILED } cddp_state_t;

/* Zeroed, it means the defaults. */
typedef struct cddp_run_config {
    /* N > 0: N ranks as threads of this process; 0: the ranks of the Slurm step
     * that `srun --mpi=pmix` has started, or one. */
    int local;
    double timeout;      /* seconds until a silent peer is given up; 0: 60 */
    const char *backend; /* "auto" (also NULL), "self", "threads", "ucx" */
} cddp_run_config_t;

/* What each rank does; its answer is the rank's. */
typedef cddp_code_t (*cddp_rank_t)(cddp_group_t *group, void *context,
                                   cddp_error_t *error);

/*
 * Open the group, run [rank] in each rank, close the group. With local ranks
 * [rank] runs in threads that share [context]; the error of the rank that
 * failed first is returned, a rank that only heard of it last of all. Under
 * Slurm each process returns its own. Blocks until this process's ranks have
 * returned.
 */
cddp_code_t cddp_run(const cddp_run_config_t *config, cddp_rank_t rank,
                     void *context, cddp_error_t *error);

int cddp_group_rank(const cddp_group_t *group);
int cddp_group_size(const cddp_group_t *group);
const char *cddp_group_backend(const cddp_group_t *group);
const char *cddp_group_host(const cddp_group_t *group, int rank);

/* Report progress: the step, and the name of a phase (which must stay valid).
 * Long work between two collectives calls it now and then, so that the others
 * do not take this rank for stuck. Never blocks. */
void cddp_group_report(cddp_group_t *group, int64_t step, const char *phase);

/* CDDP_OK while every peer is well. Never blocks. */
cddp_code_t cddp_group_check(cddp_group_t *group, cddp_error_t *error);

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

/* Start an all-reduce that completes later; [data] is left alone until then.
 * The work is released by cddp_work_wait, which must be called once for each
 * start that did not answer CDDP_FAILED; CDDP_DONE leaves NULL in *work. */
cddp_state_t cddp_allreduce_start(cddp_group_t *group, void *data, size_t count,
                                  cddp_type_t type, cddp_op_t op,
                                  cddp_work_t **work, cddp_error_t *error);
cddp_state_t cddp_work_poll(cddp_work_t *work); /* never blocks */
cddp_code_t cddp_work_wait(cddp_work_t *work, cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
