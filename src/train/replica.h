/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * replica: one rank's copy of the model with all that a step needs: parameter
 * and buffer arenas, optimizer, reducer, and one exec per batch size that the
 * plan of the run knows. What goes into a checkpoint is listed here, too.
 * Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_REPLICA_H
#define CDDP_TRAIN_REPLICA_H

#include "ddp/ddp.h"
#include "ddp/tree.h"
#include "hdf5io/checkpoint.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/config.h"

/* float64 sums that travel with each step's last bucket, in front of the
 * batch-norm moments: what all ranks must know at the step's end. */
enum {
    REPLICA_LOSS,    /* sum over samples */
    REPLICA_CORRECT, /* right answers */
    REPLICA_REQUEST, /* ranks that were asked to checkpoint and stop (USR1) */
    REPLICA_TERM,    /* ranks that were told to end (TERM) */
    REPLICA_DUE,     /* rank 0: the checkpoint's time has come */
    REPLICA_FAILED,  /* ranks that met an error in this step */
    REPLICA_TAIL     /* number of these */
};

typedef struct replica_exec {
    int64_t batch;
    bool training;
    nn_exec_t *exec;
} replica_exec_t;

#define REPLICA_EXECS_MAX 16

typedef struct replica {
    dev_device_t *dev;
    dev_stream_t *stream;
    nn_graph_t *graph; /* not owned */
    ddp_t *ddp;
    ddp_tree_t *tree; /* reproducible mode, else NULL */
    nn_bind_t bind;   /* of training execs, but for a leaf's own sums */
    optim_t *optim;
    optim_schedule_t *schedule;
    float *params;  /* [nn_graph_param_elems] */
    float *buffers; /* [nn_graph_buffer_elems] */
    void *activations;
    size_t activation_bytes;
    replica_exec_t execs[REPLICA_EXECS_MAX];
    int exec_count;
    hdf5io_tensor_t *tensors; /* of a checkpoint; data points into arenas */
    char **tensor_names;      /* owned */
    int tensor_count;
    bool last_micro; /* the backward under way is the step's last one */
} replica_t;

typedef struct replica_plan {
    const train_config_t *config;
    nn_graph_t *graph;
    comm_group_t *group;
    int threads;
    optim_span_t span;          /* of the run, for the schedule */
    const int64_t *train_sizes; /* micro-batch sizes that will occur; 0s and */
    int train_count;            /* repetitions are allowed */
    const int64_t *eval_sizes;
    int eval_count;
    int partials; /* partial arenas of the reproducible mode; 0: default mode */
} replica_plan_t;

/* Build what needs nobody else: arenas, optimizer, execs. Local, so that its
 * errors can be voted on before anybody waits. [replica] is zeroed before; on
 * failure, too, replica_close frees it. */
err_code_t replica_open(const replica_plan_t *plan, replica_t *replica,
                        err_t *err);

/* Meet the others: reducer, layout check, rank 0's initial state. Collective.
 * [replica] must not move afterwards. */
err_code_t replica_join(const replica_plan_t *plan, replica_t *replica,
                        err_t *err);

void replica_close(replica_t *replica);

/* The exec for [batch] samples; never NULL for a size of the plan. */
nn_exec_t *replica_exec(replica_t *replica, int64_t batch, bool training);

/* The exec for a leaf of [batch] samples, bound to the leaf's own sums. */
nn_exec_t *replica_leaf_exec(replica_t *replica, int64_t batch, float *grads,
                             double *moments);

#endif
