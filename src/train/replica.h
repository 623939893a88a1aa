/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * replica: one rank's copy of the model, with all that a step needs: the arenas
 * of parameters and buffers, the optimizer, the reducer, and the teams of
 * threads that run the model. It also lists the tensors of a checkpoint. Thread
 * rule: one thread, which is that of the first team.
 */
#ifndef CDDP_TRAIN_REPLICA_H
#define CDDP_TRAIN_REPLICA_H

#include "base/crew.h"
#include "ddp/ddp.h"
#include "ddp/tree.h"
#include "hdf5io/checkpoint.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/config.h"
#include "train/kept.h"
#include "train/shard.h"
#include "train/sync.h"
#include "train/team.h"
#include "train/touch.h"

/* The tail: float64 sums over ranks that are reduced with each step's
 * gradients. They tell all ranks what they must know at the end of the step.
 * First flags, which are whole numbers: */
enum {
    TRAIN_REPLICA_REQUEST, /* ranks that were asked (USR1) to checkpoint and
                              stop */
    TRAIN_REPLICA_TERM,    /* ranks that were told to end (TERM) */
    TRAIN_REPLICA_DUE,     /* rank 0: the checkpoint's time has come */
    TRAIN_REPLICA_FAILED,  /* ranks that met an error in this step */
    TRAIN_REPLICA_FLAGS    /* number of these */
};

/* Then, for each loss: */
enum {
    TRAIN_REPLICA_LOSS,    /* sum over samples */
    TRAIN_REPLICA_CORRECT, /* correct answers */
    TRAIN_REPLICA_SUMS     /* number of these */
};

/* Index of the first sum of [loss]. For the number of losses: index of the
 * batch-norm moments, which follow the losses. */
static inline size_t train_replica_sums(int loss)
{
    return TRAIN_REPLICA_FLAGS + TRAIN_REPLICA_SUMS * (size_t)loss;
}

typedef struct train_replica {
    dev_device_t *dev;
    nn_graph_t *graph; /* not owned */
    ddp_t *ddp;
    ddp_tree_t *tree;    /* reproducible mode, else NULL */
    train_team_t *teams; /* [team_count], which work side by side */
    int team_count;      /* 1 in the default mode */
    crew_t *crew;        /* a thread of each team */
    optim_t *optim;
    optim_schedule_t *schedule;
    train_shard_t *shard;      /* ddp.zero: 1, else NULL */
    train_sync_t *sync;        /* of syncbatchnorm layers; NULL: none */
    comm_arena_t *param_arena; /* of params, with shards; else NULL */
    float *params;             /* [nn_graph_param_elems of graph] */
    float *buffers;            /* [nn_graph_buffer_elems of graph] */
    hdf5io_tensor_t *tensors;  /* of a checkpoint; data points into arenas */
    char **tensor_names;       /* owned */
    int tensor_count;
    view_t *views; /* [view_count]: the parameters */
    int view_count;
    train_kept_t kept;    /* those tensors, and the comm hook's */
    train_touch_t *touch; /* of the arenas; NULL: no core to spare */
    bool last_micro;      /* the current backward is the last one of its step */
} train_replica_t;

typedef struct train_replica_plan {
    const train_config_t *config;
    nn_graph_t *graph;
    comm_group_t *group;
    int rank, ranks; /* of all that will join */
    int threads;     /* of the optimizer */
    int cores;       /* before the first step, too, if more than threads */
    int teams, team_threads;  /* that run the model */
    bool bf16;                /* what train.precision came to */
    optim_span_t span;        /* of the run, for the schedule */
    train_team_sizes_t sizes; /* micro-batch sizes that will occur */
    int partials; /* partial arenas of the reproducible mode; 0: default mode */
} train_replica_plan_t;

/* Does train.precision mean bf16 on this machine? ERR_UNAVAILABLE: bf16 is
 * requested, but this CPU has no bf16 products. Local. */
err_code_t train_bf16_choose(const train_config_t *config, bool *bf16,
                             err_t *err);

/* Make the parts that need no other rank: arenas, optimizer, execs. Local, so
 * ranks can vote on its errors before one of them waits for the others.
 * [replica] is zeroed before; on failure, too, train_replica_close frees it. */
err_code_t train_replica_open(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err);

/* Make the parts that all ranks share: the reducer, and the list of a
 * checkpoint's tensors. Collective; a single rank may run out of memory, so
 * vote before train_replica_start. */
err_code_t train_replica_join(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err);

/* Copy rank 0's initial state to all ranks, unless a checkpoint was read
 * ([restored], the same on all ranks). Collective. [replica] must not move from
 * here on. */
err_code_t train_replica_start(const train_replica_plan_t *plan, bool restored,
                               train_replica_t *replica, err_t *err);

void train_replica_close(train_replica_t *replica);

/* The first team's exec for [batch] samples; never NULL for a size in the plan.
 */
nn_exec_t *train_replica_exec(const train_replica_t *replica, int64_t batch,
                              bool training);

/* The gradients as the reducer sees them. */
ddp_layout_t train_replica_layout(const train_replica_t *replica);

/* Bytes of activations of all teams. */
size_t train_replica_activations(const train_replica_t *replica);

#endif
