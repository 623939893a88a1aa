/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* nodes: the nodes of a job, and which of them a restart of the step must not
 * use. */
#ifndef CDDP_SLURM_NODES_H
#define CDDP_SLURM_NODES_H

#include <stdbool.h>

#include "base/err.h"

typedef struct slurm_node {
    char name[64];
    bool down;  /* Slurm says that it is down or does not respond */
    bool gone;  /* it failed, and the job has gone on without it (--no-kill) */
    int faults; /* steps in a row that failed because of it */
} slurm_node_t;

typedef struct slurm_nodes {
    slurm_node_t *list;
    int count;
} slurm_nodes_t;

/* Expand [list] ("n[1-3]") by `scontrol show hostnames`. ERR_UNAVAILABLE,
 * ERR_MEMORY. slurm_nodes_free frees it; an empty object may be freed. */
err_code_t slurm_nodes_read(const char *list, slurm_nodes_t *out, err_t *err);
void slurm_nodes_free(slurm_nodes_t *nodes);

/* Fill nodes->list from names that are separated by newlines. ERR_MEMORY. */
err_code_t slurm_nodes_take(const char *names, slurm_nodes_t *out, err_t *err);

/* Set which nodes of [list] are down (by `sinfo`), and which nodes [job] has
 * lost (by `squeue`). ERR_UNAVAILABLE: a question failed; what it asks for is
 * unchanged. */
err_code_t slurm_nodes_ask(slurm_nodes_t *nodes, const char *list,
                           const char *job, err_t *err);

/* Set which nodes the job has lost: those that are not among [names], separated
 * by newlines. */
void slurm_nodes_held(slurm_nodes_t *nodes, const char *names);

/* Set which nodes are down from lines "NAME STATE" of sinfo's formats %N and
 * %t. Down are the states down, fail and inval, and every state with a '*': the
 * node does not respond. A draining node still serves this job. */
void slurm_nodes_states(slurm_nodes_t *nodes, const char *lines);

/* A step failed because of the node [name]; "": because of none. */
void slurm_nodes_fault(slurm_nodes_t *nodes, const char *name);

/* Is the node down or gone, or did two steps in a row fail because of it? */
bool slurm_node_avoided(const slurm_node_t *node);

#endif
