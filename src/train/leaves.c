/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reproducible mode. Leaf k of a step is its samples [kM, (k+1)M), M being
 * train.microbatch; each is computed alone, by a team of train.leaf_threads
 * threads, into sums of its own, which are added along one fixed tree over leaf
 * numbers, here and between ranks (ddp/tree.h). A rank with more cores has
 * several teams, which compute leaves side by side. Who holds a leaf changes no
 * bit. Flags are whole numbers, whose sum has no order, so they travel in front
 * in a plain sum; when a rank has failed, nobody enters the tree.
 */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_fold.h"
#include "train/run_priv.h"

/* What the teams work on. */
typedef struct leaves_job {
    train_state_t *run;
    const hdf5io_batch_t *batch;
    train_leaves_t mine;
    double scales[NN_FIELDS_MAX];
    pthread_mutex_t lock; /* of all below */
    double forward, backward;
    int64_t failed; /* the lowest leaf with an error: the same one whoever is
                       faster */
    err_code_t rc;
    err_t *err;
} leaves_job_t;

static leaves_job_t job_of(train_state_t *run, const train_data_t *data,
                           const hdf5io_batch_t *batch, err_t *err)
{
    const train_config_t *config = run->config;

    return (leaves_job_t){.run = run,
                          .batch = batch,
                          .mine =
                              train_leaves_of(data, config->train.microbatch,
                                              config->train.batch, batch->step),
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .err = err};
}

/* The first sample of leaf [number], counted from my own first. */
static int64_t leaf_from(const leaves_job_t *job, int64_t number)
{
    return (number - job->mine.first) * job->run->config->train.microbatch;
}

/* Samples of the leaf that begins at my sample [from]. */
static int64_t leaf_size(const leaves_job_t *job, int64_t from)
{
    int64_t leaf = job->run->config->train.microbatch;

    return job->batch->count - from < leaf ? job->batch->count - from : leaf;
}

static void leaf_failed(leaves_job_t *job, int64_t number, err_code_t rc,
                        const err_t *err)
{
    pthread_mutex_lock(&job->lock);
    if (job->rc == ERR_OK || number < job->failed) {
        job->rc = rc;
        job->failed = number;
        if (job->err != NULL)
            *job->err = *err;
    }
    pthread_mutex_unlock(&job->lock);
}

/* ---- training ----------------------------------------------------------- */

typedef struct leaf_times {
    double forward, backward;
} leaf_times_t;

static err_code_t leaf_compute(const leaves_job_t *job, int member,
                               const ddp_leaf_t *leaf, float *grads,
                               double *tail, leaf_times_t *times, err_t *err)
{
    const train_team_t *team = &job->run->replica.teams[member];
    const int losses = nn_graph_losses(job->run->graph);
    const int64_t from = leaf_from(job, leaf->number);
    nn_batch_t part = train_batch_part(job->run, job->batch, from);
    nn_exec_t *exec = train_team_leaf(team, leaf_size(job, from), grads,
                                      tail + train_replica_sums(losses));
    double begin = clock_now();
    nn_result_t results[NN_FIELDS_MAX];
    double middle;
    err_code_t rc;

    rc = nn_exec_forward(exec, &part, results, err);
    middle = clock_now();
    times->forward += middle - begin;
    if (rc != ERR_OK)
        return rc;
    for (int k = 0; k < losses; k++) {
        double *sums = tail + train_replica_sums(k);

        sums[TRAIN_REPLICA_LOSS] = results[k].loss_sum;
        sums[TRAIN_REPLICA_CORRECT] = (double)results[k].correct;
    }
    rc = nn_exec_backward(exec, &part, job->scales, false, err);
    times->backward += clock_now() - middle;
    return rc;
}

/* What one team does in a step. */
static void leaves_train(void *context, int member)
{
    leaves_job_t *job = context;
    ddp_tree_t *tree = job->run->replica.tree;
    leaf_times_t times = {0};
    ddp_leaf_t leaf;
    double *tail;
    float *grads;

    while (ddp_tree_claim(tree, &leaf, &grads, &tail)) {
        err_t err = ERR_INIT;
        err_code_t rc;

        /* A sign of life: the step of a large batch may take long. */
        if (member == 0)
            train_phase_set(job->run, "forward and backward");
        rc = leaf_compute(job, member, &leaf, grads, tail, &times, &err);
        if (rc == ERR_OK) {
            ddp_tree_fold(tree, &leaf);
            continue;
        }
        leaf_failed(job, leaf.number, rc, &err);
        ddp_tree_stop(tree);
    }
    pthread_mutex_lock(&job->lock);
    job->forward += times.forward;
    job->backward += times.backward;
    pthread_mutex_unlock(&job->lock);
}

static err_code_t leaves_compute(train_state_t *run,
                                 const hdf5io_batch_t *batch,
                                 train_times_t *times, err_t *err)
{
    const train_replica_t *replica = &run->replica;
    leaves_job_t job = job_of(run, &run->train, batch, err);

    train_weigh_scales(run, job.scales);
    ddp_tree_begin(replica->tree, job.mine.first, job.mine.held,
                   job.mine.leaves);
    crew_run(replica->crew, leaves_train, &job);
    times->forward += job.forward / replica->team_count;
    times->backward += job.backward / replica->team_count;
    return job.rc;
}

err_code_t train_leaves_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, err_code_t *own, err_t *err)
{
    double *tail = ddp_tail(run->replica.ddp);
    double flags[TRAIN_REPLICA_FLAGS] = {0};
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
    rc = comm_allreduce(run->group, flags, TRAIN_REPLICA_FLAGS, COMM_FLOAT64,
                        COMM_SUM, *own == ERR_OK ? err : NULL);
    if (rc != ERR_OK)
        return *own != ERR_OK ? *own : rc;
    if (flags[TRAIN_REPLICA_FAILED] == 0.0)
        rc = ddp_tree_reduce(run->replica.tree, err);
    for (int i = 0; i < TRAIN_REPLICA_FLAGS; i++)
        tail[i] = flags[i];
    times->tree = clock_now() - begin;
    return rc;
}

/* ---- evaluation --------------------------------------------------------- */

/* The sums of a leaf, from EVAL_FLAGS on. */
static double *eval_leaf(const train_eval_room_t *room, int slot)
{
    return room->leaves + (size_t)slot * (room->count - EVAL_FLAGS);
}

static void eval_add(void *context, int to, int from)
{
    const train_eval_room_t *room = context;

    ddp_fold_sum(eval_leaf(room, to), eval_leaf(room, from),
                 room->count - EVAL_FLAGS, COMM_FLOAT64);
}

err_code_t train_leaves_eval_open(train_state_t *run, err_t *err)
{
    train_eval_room_t *room = &run->room;
    const train_config_t *config = run->config;
    int slots = train_partials(&run->valid, config->train.microbatch,
                               config->train.batch, run->teams);
    err_code_t rc;

    rc = mem_new(double, (size_t)slots *(room->count - EVAL_FLAGS), "metrics",
                 &room->leaves, err);
    return rc == ERR_OK ? ddp_fold_open(slots, eval_add, room, &room->fold, err)
                        : rc;
}

static void leaves_eval(void *context, int member)
{
    leaves_job_t *job = context;
    const train_eval_room_t *room = &job->run->room;
    ddp_leaf_t leaf;

    while (ddp_fold_claim(room->fold, &leaf)) {
        const int64_t from = leaf_from(job, leaf.number);
        nn_batch_t part = train_batch_part(job->run, job->batch, from);
        err_t err = ERR_INIT;
        err_code_t rc;

        rc = train_eval_forward(job->run, member, &part, leaf_size(job, from),
                                eval_leaf(room, leaf.slot), &err);
        if (rc == ERR_OK) {
            ddp_fold_done(room->fold, &leaf);
            continue;
        }
        leaf_failed(job, leaf.number, rc, &err);
        ddp_fold_stop(room->fold);
    }
}

err_code_t train_leaves_eval(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err)
{
    leaves_job_t job = job_of(run, &run->valid, batch, err);

    ddp_fold_begin(run->room.fold, job.mine.first, job.mine.held,
                   job.mine.leaves);
    crew_run(run->replica.crew, leaves_eval, &job);
    return job.rc;
}

err_code_t train_leaves_eval_reduce(train_state_t *run,
                                    const hdf5io_batch_t *batch, double *sums,
                                    err_t *err)
{
    const train_eval_room_t *room = &run->room;
    const leaves_job_t job = job_of(run, &run->valid, batch, err);
    void *views[COMM_VIEWS_MAX];
    int slots[COMM_VIEWS_MAX];
    int count = ddp_fold_views(room->fold, slots);

    for (int i = 0; i < count; i++)
        views[i] = eval_leaf(room, slots[i]);
    return comm_allreduce_tree(run->group, views, job.mine.first, job.mine.held,
                               job.mine.leaves, sums + EVAL_FLAGS,
                               room->count - EVAL_FLAGS, COMM_FLOAT64, err);
}
