/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reproducible mode. Leaf k of a step is the samples [kM, (k+1)M) of the
 * step; M is train.microbatch. A team of train.leaf_threads threads computes
 * each leaf alone, into the leaf's own sums. These are added along one fixed
 * tree over the numbers of the leaves, on this rank and between ranks
 * (ddp/tree.h). A rank with more cores has several teams, which compute leaves
 * side by side. Which rank has which leaf changes no bit. Flags are whole
 * numbers, so the order of their sum does not matter: they are added in a plain
 * sum. If the host adds them, it does so before the tree, and no rank enters
 * the tree if one has failed.
 */
#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_fold.h"
#include "train/batch_part.h"
#include "train/step.h"

/* The leaves of one step, which the teams of this rank share. */
typedef struct leaves_job {
    train_state_t *run;
    const hdf5io_batch_t *batch; /* in the host's memory */
    hdf5io_batch_t there;        /* the same in the device's memory */
    int64_t size;                /* samples of a leaf: train.microbatch */
    comm_leaves_t mine;
    pthread_mutex_t lock;     /* protects the fields below */
    double forward, backward; /* seconds, summed over teams */
    /* Number of the lowest leaf with an error. It does not depend on the
     * speed of the teams. */
    int64_t failed;
    err_code_t rc; /* error of leaf [failed] */
    err_t *err;
} leaves_job_t;

static leaves_job_t job_of(train_state_t *run, const train_data_t *data,
                           const hdf5io_batch_t *batch, err_t *err)
{
    const train_config_t *config = run->config;

    return (leaves_job_t){.run = run,
                          .batch = batch,
                          .size = config->train.microbatch,
                          .mine =
                              train_leaves_of(data, config->train.microbatch,
                                              config->train.batch, batch->step),
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .err = err};
}

/* Index in this rank's batch of the first sample of leaf [number]. */
static int64_t leaf_from(const leaves_job_t *job, int64_t number)
{
    check(number >= job->mine.first &&
              number < job->mine.first + job->mine.held,
          "leaf %lld, held are %lld from %lld", (long long)number,
          (long long)job->mine.held, (long long)job->mine.first);
    return (number - job->mine.first) * job->size;
}

/* Number of samples of the leaf whose first sample has index [from]. */
static int64_t leaf_size(const leaves_job_t *job, int64_t from)
{
    const int64_t left = job->batch->count - from;

    return left < job->size ? left : job->size;
}

/* The samples of this rank's batch from index [from] on, on the device. */
static nn_batch_t leaf_batch(const leaves_job_t *job, int64_t from)
{
    return train_batch_part(job->run->graph, &job->there, from);
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

/* The seconds that a team has spent so far. */
typedef struct leaf_times {
    double forward, backward;
} leaf_times_t;

/* Run forward and backward of [leaf], into the leaf's own sums. */
static err_code_t leaf_compute(const leaves_job_t *job,
                               const train_team_t *team,
                               const ddp_tree_leaf_t *leaf, leaf_times_t *times,
                               err_t *err)
{
    const int losses = nn_graph_losses(job->run->graph);
    const int64_t from = leaf_from(job, leaf->leaf.number);
    nn_batch_t part = leaf_batch(job, from);
    nn_exec_t *exec = train_team_leaf(
        team, leaf_size(job, from),
        &(train_team_sums_t){leaf->grads, train_tail_results(leaf->tail),
                             leaf->tail + train_tail_sums(losses)});
    double begin = clock_now();
    double middle;
    err_code_t rc;

    rc = nn_exec_forward(exec, &part, err);
    middle = clock_now();
    times->forward += middle - begin;
    if (rc != ERR_OK)
        return rc;
    rc = nn_exec_backward(exec, &part, false, err);
    times->backward += clock_now() - middle;
    return rc;
}

/* The work of one team in a step. */
static void leaves_train(void *context, int member)
{
    leaves_job_t *job = context;
    ddp_tree_t *tree = job->run->replica.tree;
    const train_team_t *team = &job->run->replica.teams[member];
    leaf_times_t times = {0};
    ddp_tree_leaf_t leaf;
    err_t err = ERR_INIT;
    err_code_t rc = ddp_tree_claim(tree, team->stream, &leaf, &err);

    while (rc == ERR_OK && leaf.grads != NULL) {
        /* Report progress to the other ranks, as a step may take long. */
        if (member == 0)
            train_phase_set(&job->run->world, "forward and backward");
        rc = leaf_compute(job, team, &leaf, &times, &err);
        if (rc == ERR_OK)
            rc = ddp_tree_fold(tree, &leaf, &err);
        if (rc == ERR_OK)
            rc = ddp_tree_claim(tree, team->stream, &leaf, &err);
    }
    if (rc != ERR_OK) {
        leaf_failed(job, leaf.leaf.number, rc, &err);
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
    leaves_job_t job = job_of(run, &run->data.train, batch, err);

    job.there = run->there;
    crew_run(replica->crew, leaves_train, &job);
    times->forward += job.forward / replica->team_count;
    times->backward += job.backward / replica->team_count;
    return job.rc;
}

/* Return the leaves of this rank in this step; its ranges are those of all
 * ranks. */
static comm_leaves_t leaves_find(train_state_t *run)
{
    const train_config_t *config = run->config;
    const train_data_t *data = &run->data.train;
    const int64_t step = run->progress.epoch_step;
    comm_leaves_t mine = train_leaves_of(data, config->train.microbatch,
                                         config->train.batch, step);

    train_leaves_ranges(data, config->train.microbatch, config->train.batch,
                        step, run->world.size, run->replica.ranges);
    mine.ranges = run->replica.ranges;
    return mine;
}

/* ---- sums over ranks ----------------------------------------------------- */

/* The host sums the flags. If no rank has failed, all ranks enter the tree. */
static err_code_t sum_known(train_state_t *run, train_own_t *own)
{
    dev_stream_t *stream = train_replica_stream(&run->replica);
    double *flags = run->replica.io.in->flags;
    err_code_t rc;

    flags[TRAIN_TAIL_FAILED] = own->rc != ERR_OK ? 1.0 : 0.0;
    rc = comm_allreduce(run->world.group, flags, TRAIN_TAIL_FLAGS, COMM_FLOAT64,
                        COMM_SUM, train_own_err(own));
    if (rc != ERR_OK)
        return train_own_first(own, rc);
    if (flags[TRAIN_TAIL_FAILED] == 0.0)
        rc = ddp_tree_reduce(run->replica.tree, stream, own->err);
    return rc == ERR_OK ? dev_copy(stream, ddp_tail(run->replica.ddp), flags,
                                   TRAIN_TAIL_FLAGS * sizeof *flags,
                                   DEV_HOST_TO_DEV, train_own_err(own))
                        : rc;
}

/* All ranks enter the tree; ranks that have failed enter it with zeros. Then
 * the devices sum the flags. So the host only enqueues operations, and the step
 * can be captured. */
static err_code_t sum_there(train_state_t *run, train_own_t *own)
{
    train_replica_t *replica = &run->replica;
    dev_stream_t *stream = train_replica_stream(replica);
    double *tail = ddp_tail(replica->ddp);
    err_code_t rc;

    if (own->rc == ERR_PEER)
        return own->rc;
    if (own->rc != ERR_OK)
        ddp_tree_fail(replica->tree);
    rc = ddp_tree_reduce(replica->tree, stream, train_own_err(own));
    if (rc == ERR_OK)
        rc = train_io_flags(&replica->io, tail, stream, train_own_err(own));
    if (rc == ERR_OK && own->rc != ERR_OK)
        rc = train_io_fail(&replica->io, tail, stream, NULL);
    if (rc == ERR_OK)
        rc = ddp_tree_sum(replica->tree, TRAIN_TAIL_FLAGS, stream,
                          train_own_err(own));
    return rc == ERR_OK ? ERR_OK : train_own_first(own, rc);
}

err_code_t train_leaves_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, train_own_t *own)
{
    const comm_leaves_t mine = leaves_find(run);
    const bool there = run->world.size > 1 && train_world_graphs(&run->world);
    double begin, span;
    err_code_t rc = ERR_OK;

    if (dev_host_visible(run->compute.dev))
        rc = train_weigh_leaves(&run->weigh, own->rc == ERR_OK ? batch : NULL,
                                &mine, run->config->train.microbatch,
                                train_own_err(own));
    if (rc != ERR_OK)
        return train_own_first(own, rc);
    train_in_begin(run, batch);
    train_in_weigh(run);
    ddp_tree_begin(run->replica.tree, &mine);
    train_own_add(own, train_in_send(run, train_own_err(own)));
    if (own->rc == ERR_OK)
        own->rc = leaves_compute(run, batch, times, own->err);
    train_phase_set(&run->world, "all-reduce");
    begin = clock_now();
    span = trace_begin(train_trace_own(&run->trace));
    rc = there ? sum_there(run, own) : sum_known(run, own);
    times->tree = clock_now() - begin;
    trace_end(train_trace_own(&run->trace), span, "all-reduce", NULL,
              TRACE_NO_NUMBER);
    return rc;
}

/* ---- evaluation --------------------------------------------------------- */

/* The sums of the leaf in [slot]: those from EVAL_FLAGS on. */
static double *eval_leaf(const train_evaluator_t *evaluator, int slot)
{
    return evaluator->leaves + (size_t)slot * (evaluator->count - EVAL_FLAGS);
}

static err_code_t eval_add(void *context, void *thread, int to, int from,
                           err_t *err)
{
    const train_evaluator_t *evaluator = context;

    (void)thread;
    (void)err;
    ddp_fold_sum(eval_leaf(evaluator, to), eval_leaf(evaluator, from),
                 evaluator->count - EVAL_FLAGS, COMM_FLOAT64);
    return ERR_OK;
}

err_code_t train_leaves_eval_open(const train_config_t *config, int teams,
                                  train_evaluator_t *evaluator, err_t *err)
{
    int slots = train_partials(evaluator->data, config->train.microbatch,
                               config->train.batch, teams);
    err_code_t rc =
        mem_new(double, (size_t)slots *(evaluator->count - EVAL_FLAGS),
                "metrics", &evaluator->leaves, err);

    return rc == ERR_OK ? ddp_fold_open(slots, eval_add, evaluator,
                                        &evaluator->fold, err)
                        : rc;
}

static void leaves_eval(void *context, int member)
{
    leaves_job_t *job = context;
    const train_eval_job_t mine = {&job->run->evaluator,
                                   &job->run->replica.teams[member], member};
    ddp_fold_t *fold = mine.evaluator->fold;
    ddp_leaf_t leaf;

    while (ddp_fold_claim(fold, &leaf)) {
        const int64_t from = leaf_from(job, leaf.number);
        const train_eval_batch_t part = {
            leaf_batch(job, from),
            train_batch_part(job->run->graph, job->batch, from),
            leaf_size(job, from)};
        err_t err = ERR_INIT;
        err_code_t rc;

        rc = train_eval_forward(&mine, &part,
                                eval_leaf(mine.evaluator, leaf.slot), &err);
        if (rc == ERR_OK)
            rc = ddp_fold_done(fold, &leaf, NULL, &err);
        if (rc == ERR_OK)
            continue;
        leaf_failed(job, leaf.number, rc, &err);
        ddp_fold_stop(fold);
    }
}

err_code_t train_leaves_eval(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err)
{
    leaves_job_t job = job_of(run, &run->data.valid, batch, err);
    err_code_t rc =
        train_feed_take(run->data.valid.feed,
                        train_replica_stream(&run->replica), &job.there, err);

    if (rc != ERR_OK)
        return rc;
    ddp_fold_begin(run->evaluator.fold, job.mine.first, job.mine.held,
                   job.mine.leaves);
    crew_run(run->replica.crew, leaves_eval, &job);
    return job.rc;
}

err_code_t train_leaves_eval_reduce(train_state_t *run,
                                    const hdf5io_batch_t *batch, double *sums,
                                    err_t *err)
{
    const train_evaluator_t *evaluator = &run->evaluator;
    const leaves_job_t job = job_of(run, &run->data.valid, batch, err);
    void *views[COMM_VIEWS_MAX];
    int slots[COMM_VIEWS_MAX];
    int count = ddp_fold_views(evaluator->fold, slots);

    for (int i = 0; i < count; i++)
        views[i] = eval_leaf(evaluator, slots[i]);
    return comm_allreduce_tree(run->world.group, views, &job.mine,
                               sums + EVAL_FLAGS, evaluator->count - EVAL_FLAGS,
                               COMM_FLOAT64, err);
}
