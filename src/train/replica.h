/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * replica: one rank's copy of the model, with all that a step needs: the arenas
 * of parameters and buffers, the optimizer, the reducer, and the teams of
 * threads that run the model. Thread rule: one thread, which is a thread of the
 * first team.
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
#include "train/mirror.h"
#include "train/shard.h"
#include "train/step_io.h"
#include "train/sync.h"
#include "train/tail.h"
#include "train/team.h"
#include "train/touch.h"

typedef struct train_replica {
    dev_device_t *dev;               /* not owned */
    const op_backend_ops_t *backend; /* of the execs */
    nn_graph_t *graph;               /* not owned */
    ddp_t *ddp;
    ddp_tree_t *tree;    /* reproducible mode, else NULL */
    int64_t *ranges;     /* reproducible mode: see train_leaves_ranges */
    train_team_t *teams; /* [team_count], which work side by side */
    int team_count;      /* 1 in the default mode */
    crew_t *crew;        /* runs one thread of each team */
    optim_t *optim;
    optim_schedule_t *schedule;
    train_shard_t *shard; /* NULL unless ddp.zero is 1 */
    /* Sums of syncbatchnorm layers; NULL if there are none. */
    train_sync_t *sync;
    /* Arena of [params] if they are sharded, else NULL. */
    comm_arena_t *param_arena;
    float *params;      /* [nn_graph_param_elems of graph] */
    float *buffers;     /* [nn_graph_buffer_elems of graph] */
    train_step_io_t io; /* what host and device tell each other in a step */
    uint64_t *hash;     /* memory of [dev], for train_replica_hash */
    view_t *views;      /* [view_count]: the parameters */
    int view_count;
    /* The host's view of params, buffers and the optimizer's slots. */
    train_mirror_t *mirror;
    train_kept_t kept; /* tensors of a checkpoint, in the mirror */
    /* Touches the pages of the arenas early; NULL: no idle core. */
    train_touch_t *touch;
    /* [team_count]: traces of the teams, not owned; NULL: none */
    trace_t *const *traces;
    bool last_micro; /* the current backward is the last one of its step */
} train_replica_t;

typedef struct train_replica_plan {
    const train_config_t *config;
    nn_graph_t *graph;
    comm_group_t *group, *data; /* see train_world_t */
    int rank, ranks; /* this rank, and the number of ranks that will join */
    int threads;     /* threads of the optimizer */
    int cores; /* cores to use before the first step, if more than [threads] */
    int teams, team_threads; /* teams that run the model, and threads of each */
    dev_device_t *dev;       /* not owned */
    op_type_t compute_type;  /* of products: the outcome of train.precision */
    bool dry;                /* for a plan only: allocate nothing on [dev] */
    optim_span_t span;       /* length of the run, for the schedule */
    train_team_sizes_t sizes; /* micro-batch sizes that will occur */
    int64_t samples;          /* of this rank in a batch, at most */
    int partials; /* partial arenas of the reproducible mode; 0: default mode */
} train_replica_plan_t;

/* Begin to make the parts that need no other rank: the execs, whose ops a
 * thread may still prepare when this returns (op_begin). [replica] is zeroed
 * before; on failure, too, train_replica_close frees it. */
err_code_t train_replica_begin(const train_replica_plan_t *plan,
                               train_replica_t *replica, err_t *err);

/* Finish these parts: wait for the thread, and make arenas and optimizer.
 * Local, so ranks can vote on its errors before one of them waits for the
 * others. */
err_code_t train_replica_open(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err);

/* Make the parts that all ranks share: the reducer, and the list of a
 * checkpoint's tensors. Collective; a single rank may run out of memory, so
 * vote before train_replica_start. */
err_code_t train_replica_join(const train_replica_plan_t *plan,
                              train_replica_t *replica, err_t *err);

/* Copy rank 0's initial state to all ranks, unless a checkpoint was read into
 * the mirror ([restored], equal on all ranks), and to the device. Collective.
 * [replica] must not move after this call. */
err_code_t train_replica_start(const train_replica_plan_t *plan, bool restored,
                               train_replica_t *replica, err_t *err);

/* Wait until the device has done what it was told. After an error of the device
 * it does nothing any more. */
void train_replica_idle(train_replica_t *replica);

void train_replica_close(train_replica_t *replica);

/* The first team's exec for [batch] samples; never NULL for a size in the plan.
 */
nn_exec_t *train_replica_exec(const train_replica_t *replica, int64_t batch,
                              bool training);

/* The first team's stream, on which the optimizer works, too. */
dev_stream_t *train_replica_stream(const train_replica_t *replica);

/* The layout of the gradients for the reducer. */
static inline ddp_layout_t train_replica_layout(const train_replica_t *replica)
{
    const nn_graph_t *graph = replica->graph;

    return (ddp_layout_t){.views = replica->views,
                          .view_count = replica->view_count,
                          .grad_elems = nn_graph_param_elems(graph),
                          .tail_doubles = train_tail_doubles(graph),
                          .shards = replica->shard != NULL ? replica->shard->cut
                                                           : NULL};
}

/* Set *out to a hash of the parameters, which is computed on the device. Equal
 * parameters have equal hashes on devices of one kind. Blocks; the errors are
 * those of the device. */
err_code_t train_replica_hash(train_replica_t *replica, uint64_t *out,
                              err_t *err);

/* Bytes of activations of all teams. */
static inline size_t train_replica_activations(const train_replica_t *replica)
{
    return (size_t)replica->team_count * replica->teams[0].activation_bytes;
}

#endif
