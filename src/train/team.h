/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * team: the threads that run the model together, with an exec for each batch
 * size, an arena of activations, and a stream. A rank has one team. In
 * reproducible mode it may have several teams, which compute leaves side by
 * side and share the parameters. Thread rule: one thread per team.
 */
#ifndef CDDP_TRAIN_TEAM_H
#define CDDP_TRAIN_TEAM_H

#include "nn/nn.h"

typedef struct train_team_exec {
    int64_t batch;
    bool training;
    nn_exec_t *exec;
} train_team_exec_t;

#define TRAIN_TEAM_EXECS_MAX 16

typedef struct train_team {
    dev_device_t *dev; /* not owned */
    dev_stream_t *stream;
    /* Bindings of training execs; the execs of leaves have sums of their
     * own. */
    nn_bind_t bind;
    void *activations;
    size_t activation_bytes;
    train_team_exec_t execs[TRAIN_TEAM_EXECS_MAX];
    int exec_count;
} train_team_t;

/* Batch sizes of training and of evaluations. Zeros and repetitions are
 * allowed. */
typedef struct train_team_sizes {
    const int64_t *train, *eval;
    int train_count, eval_count;
} train_team_sizes_t;

/* Begin execs of [graph] for all [sizes]; [like] gives all other settings.
 * [team] is zeroed before; on failure, too, train_team_close frees it. */
err_code_t train_team_begin(const nn_graph_t *graph,
                            const nn_exec_config_t *like,
                            const train_team_sizes_t *sizes, train_team_t *team,
                            err_t *err);
/* Wait until their ops are prepared, and plan their memory (nn_exec_settle). No
 * exec of the device runs before. */
err_code_t train_team_settle(train_team_t *team, err_t *err);
/* Allocate the activations. */
err_code_t train_team_alloc(train_team_t *team, err_t *err);
void train_team_close(train_team_t *team);

/* Bind all execs to [bind], but with the team's own activations and stream, and
 * the execs of evaluations with [eval_params]. */
void train_team_bind(train_team_t *team, const nn_bind_t *bind,
                     const float *eval_params);

/* The exec for [batch] samples; never NULL for a size in the plan. */
nn_exec_t *train_team_exec(const train_team_t *team, int64_t batch,
                           bool training);

/* What training adds up; see nn_bind_t. */
typedef struct train_team_sums {
    float *grads;
    nn_result_t *results;
    double *moments;
} train_team_sums_t;

/* The exec for a leaf of [batch] samples, bound to the leaf's own [sums]. */
nn_exec_t *train_team_leaf(const train_team_t *team, int64_t batch,
                           const train_team_sums_t *sums);

#endif
