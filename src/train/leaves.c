/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reproducible mode. Leaf k of a step is its samples [kM, (k+1)M), M being
 * train.microbatch; each is computed alone, by one thread, into sums of its
 * own, which are added along one fixed tree over leaf numbers, here and between
 * ranks (ddp/tree.h). Who holds a leaf changes no bit. Flags are whole numbers,
 * whose sum has no order, so they travel in front in a plain sum; when a rank
 * has failed, nobody enters the tree.
 */
#include <string.h>

#include "base/clock.h"
#include "comm/comm_fold.h"
#include "train/run_priv.h"

/* Samples of the leaf that begins at my sample [from]. */
static int64_t leaf_size(const train_state_t *run, const hdf5io_batch_t *batch,
                         int64_t from)
{
    int64_t leaf = run->config->train.microbatch;

    return batch->count - from < leaf ? batch->count - from : leaf;
}

/* ---- training ----------------------------------------------------------- */

static err_code_t leaf_compute(train_state_t *run, const hdf5io_batch_t *batch,
                               int64_t from, double scale, train_times_t *times,
                               err_t *err)
{
    train_replica_t *replica = &run->replica;
    nn_batch_t part = train_batch_part(run, batch, from);
    double begin = clock_now();
    nn_result_t result;
    nn_exec_t *exec;
    double middle;
    double *tail;
    float *grads;
    err_code_t rc;

    ddp_tree_leaf(replica->tree, &grads, &tail);
    exec = train_replica_leaf_exec(replica, leaf_size(run, batch, from), grads,
                                   tail + TRAIN_REPLICA_TAIL);
    /* A sign of life: the step of a large batch may take long. */
    train_phase_set(run, "forward and backward");
    rc = nn_exec_forward(exec, &part, &result, err);
    middle = clock_now();
    times->forward += middle - begin;
    if (rc != ERR_OK)
        return rc;
    tail[TRAIN_REPLICA_LOSS] = result.loss_sum;
    tail[TRAIN_REPLICA_CORRECT] = (double)result.correct;
    rc = nn_exec_backward(exec, &part, scale, false, err);
    if (rc == ERR_OK)
        ddp_tree_fold(replica->tree);
    times->backward += clock_now() - middle;
    return rc;
}

static err_code_t leaves_compute(train_state_t *run,
                                 const hdf5io_batch_t *batch,
                                 train_times_t *times, err_t *err)
{
    const train_config_t *config = run->config;
    train_leaves_t mine = train_leaves_of(&run->train, config->train.microbatch,
                                          config->train.batch, batch->step);
    double scale = train_weigh_scale(run);
    err_code_t rc = ERR_OK;

    ddp_tree_begin(run->replica.tree, mine.first, mine.held, mine.leaves);
    for (int64_t from = 0; rc == ERR_OK && from < batch->count;
         from += config->train.microbatch)
        rc = leaf_compute(run, batch, from, scale, times, err);
    return rc;
}

err_code_t train_leaves_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, err_code_t *own, err_t *err)
{
    double *tail = ddp_tail(run->replica.ddp);
    double flags[TRAIN_REPLICA_TAIL] = {0};
    double begin;
    err_code_t rc;

    rc = train_weigh_leaves(run, *own == ERR_OK ? batch : NULL,
                            *own == ERR_OK ? err : NULL);
    if (rc != ERR_OK)
        return *own != ERR_OK ? *own : rc;
    if (*own == ERR_OK)
        *own = leaves_compute(run, batch, times, err);
    train_flags_fill(run, flags);
    flags[TRAIN_REPLICA_FAILED] = *own != ERR_OK ? 1.0 : 0.0;
    train_phase_set(run, "all-reduce");
    begin = clock_now();
    rc = comm_allreduce(run->group, flags, TRAIN_REPLICA_TAIL, COMM_FLOAT64,
                        COMM_SUM, *own == ERR_OK ? err : NULL);
    if (rc != ERR_OK)
        return *own != ERR_OK ? *own : rc;
    if (flags[TRAIN_REPLICA_FAILED] == 0.0)
        rc = ddp_tree_reduce(run->replica.tree, err);
    for (int i = TRAIN_REPLICA_REQUEST; i < TRAIN_REPLICA_TAIL; i++)
        tail[i] = flags[i];
    times->tree = clock_now() - begin;
    return rc;
}

/* ---- evaluation --------------------------------------------------------- */

err_code_t train_leaves_eval(train_state_t *run, const hdf5io_batch_t *batch,
                             comm_fold_t *fold, err_t *err)
{
    const train_config_t *config = run->config;
    train_leaves_t mine = train_leaves_of(&run->valid, config->train.microbatch,
                                          config->train.batch, batch->step);
    const size_t count = run->room.count - EVAL_LOSS;
    int64_t at = mine.first;
    err_code_t rc = ERR_OK;

    comm_fold_begin(fold, mine.leaves, count, COMM_FLOAT64);
    for (int64_t from = 0; rc == ERR_OK && from < batch->count;
         from += config->train.microbatch, at++) {
        double *leaf = run->room.leaves + (size_t)fold->depth * count;
        nn_batch_t part = train_batch_part(run, batch, from);

        rc = train_eval_forward(run, &part, leaf_size(run, batch, from), leaf,
                                err);
        if (rc == ERR_OK)
            comm_fold_push(fold, at, at + 1, leaf);
    }
    return rc;
}

err_code_t train_leaves_eval_reduce(train_state_t *run,
                                    const hdf5io_batch_t *batch,
                                    const comm_fold_t *fold, double *sums,
                                    err_t *err)
{
    const train_config_t *config = run->config;
    train_leaves_t mine = train_leaves_of(&run->valid, config->train.microbatch,
                                          config->train.batch, batch->step);
    const size_t count = run->room.count - EVAL_LOSS;
    void *views[COMM_VIEWS_MAX];

    for (int i = 0; i < fold->depth; i++)
        views[i] = run->room.leaves + (size_t)i * count;
    return comm_allreduce_tree(run->group, views, mine.first, mine.held,
                               mine.leaves, sums + EVAL_LOSS, count,
                               COMM_FLOAT64, err);
}
