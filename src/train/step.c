/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One update. The losses, requests to stop and failures of all ranks are summed
 * with the tail of the gradients. So a step needs no other collective, and at
 * its end all ranks have the same numbers: they go on, write a checkpoint or
 * stop together.
 *
 * A rank that meets an error within a step (a bad label, for example) still
 * takes part in the reductions of the step, so that no rank waits for it. Then
 * all ranks stop without an update and get its error.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "train/batch_part.h"
#include "train/inputs.h"
#include "train/run_priv.h"

/* ---- forward and backward ----------------------------------------------- */

static void tail_begin(const train_replica_t *replica)
{
    const nn_graph_t *graph = replica->graph;

    memset(ddp_tail(replica->ddp), 0,
           (train_replica_sums(nn_graph_losses(graph)) +
            nn_graph_moment_elems(graph)) *
               sizeof(double));
}

/* Samples of a step that are computed together. */
typedef struct micro {
    nn_batch_t batch;
    int64_t count;
    bool accumulate; /* add to the gradients of the previous micro-batches */
} micro_t;

static err_code_t micro_step(train_state_t *run, const micro_t *micro,
                             train_times_t *times, err_t *err)
{
    nn_exec_t *exec = train_replica_exec(&run->replica, micro->count, true);
    double begin = clock_now();
    double scales[NN_FIELDS_MAX];
    double middle;
    err_code_t rc;

    /* Report progress to the other ranks, as a step may take long. */
    train_phase_set(&run->world, "forward and backward");
    rc = nn_exec_forward(exec, &micro->batch, err);
    middle = clock_now();
    times->forward += middle - begin;
    if (rc != ERR_OK)
        return rc;
    rc = train_weigh_finish(&run->weigh, err);
    train_weigh_scales(&run->weigh, scales);
    if (rc == ERR_OK && !micro->accumulate)
        rc = train_replica_step_scales(&run->replica, scales, err);
    if (rc == ERR_OK)
        rc = nn_exec_backward(exec, &micro->batch, micro->accumulate, err);
    times->backward += clock_now() - middle;
    return rc;
}

/* Compute this rank's samples of the step, one micro-batch after the other. */
static err_code_t share_run(train_state_t *run, const hdf5io_batch_t *batch,
                            train_times_t *times, err_t *err)
{
    int64_t size =
        train_micro_size(batch->count, run->config->train.accumulate);
    err_code_t rc =
        train_replica_step_begin(&run->replica, (uint64_t)run->config->run.seed,
                                 (uint64_t)batch->epoch, err);

    for (int64_t from = 0; rc == ERR_OK && from < batch->count; from += size) {
        const int64_t left = batch->count - from;
        const micro_t micro = {.batch =
                                   train_batch_part(run->graph, batch, from),
                               .count = left < size ? left : size,
                               .accumulate = from > 0};

        run->replica.last_micro = left <= size;
        rc = micro_step(run, &micro, times, err);
    }
    return rc;
}

/* Number of micro-batches in [step] on the rank that has most of them; a rank's
 * samples are divided into [parts]. */
static int64_t micros_most(const hdf5io_sampler_t *sampler, int64_t step,
                           int ranks, int64_t parts)
{
    int64_t most = 0;

    for (int r = 0; r < ranks; r++) {
        int64_t count = hdf5io_sampler_share_of(sampler, step, r).count;
        int64_t size = train_micro_size(count, parts);
        int64_t micros = count == 0 ? 0 : (count + size - 1) / size;

        most = micros > most ? micros : most;
    }
    return most;
}

/* Compute this rank's samples, unless it has an error. Then take part in the
 * syncbatchnorm sums of ranks with more micro-batches, which expect it. */
static void share_step(train_state_t *run, const hdf5io_batch_t *batch,
                       train_times_t *times, train_own_t *own)
{
    train_sync_t *sync = run->replica.sync;

    if (sync != NULL)
        train_sync_begin(
            sync, micros_most(run->data.train.sampler, run->progress.epoch_step,
                              run->world.size, run->config->train.accumulate));
    if (own->rc == ERR_OK && batch->count > 0)
        own->rc = share_run(run, batch, times, own->err);
    if (sync != NULL && own->rc != ERR_PEER)
        train_own_add(own, train_sync_rest(sync, train_own_err(own)));
}

/* Default mode: gradients are summed in ddp's arena; the reduction of a bucket
 * starts as soon as its gradients are complete. A rank with an error of its own
 * still takes part in the reductions. Returns their result. */
static err_code_t buckets_step(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, train_own_t *own)
{
    ddp_t *ddp = run->replica.ddp;
    err_code_t rc;

    ddp_step_begin(ddp, train_replica_stream(&run->replica));
    train_local_begin(run);
    tail_begin(&run->replica);
    train_flags_fill(run, ddp_tail(ddp));
    train_own_add(own, train_weigh_begin(&run->weigh,
                                         own->rc == ERR_OK ? batch : NULL,
                                         train_own_err(own)));
    share_step(run, batch, times, own);
    if (own->rc == ERR_OK && batch->count > 0)
        own->rc = train_local_check(run, batch, own->err);
    train_own_add(own, train_weigh_finish(&run->weigh, train_own_err(own)));
    if (own->rc == ERR_PEER) {
        ddp_step_wait(ddp, NULL); /* returns its error at once */
        return own->rc;
    }
    if (own->rc != ERR_OK)
        ddp_tail(ddp)[TRAIN_REPLICA_FAILED] = 1.0;
    train_phase_set(&run->world, "all-reduce");
    rc = ddp_step_skip(ddp, train_own_err(own));
    if (rc == ERR_OK)
        rc = ddp_step_wait(ddp, train_own_err(own));
    return rc == ERR_OK ? ERR_OK : train_own_first(own, rc);
}

static err_code_t step_compute(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, train_own_t *own)
{
    return run->replica.tree != NULL ? train_leaves_step(run, batch, times, own)
                                     : buckets_step(run, batch, times, own);
}

/* ---- the end of a step --------------------------------------------------- */

/* The results of a step. */
typedef struct step_result {
    /* Mean of each loss; weighted sum of these means. */
    double losses[NN_FIELDS_MAX], loss;
    double lr, norm; /* learning rate; norm of the gradients before clipping */
} step_result_t;

/* Add a step of [samples] samples to the epoch's loss. With one loss, the
 * epoch's loss is the mean over all targets that count; if targets have
 * weights, it is the mean of the steps' losses, weighted by the number of
 * targets that count. With several losses, or one loss of weight other than 1,
 * it is the mean of the steps' [loss], weighted by samples. [tail] has the sums
 * over all ranks. */
static void loss_advance(const train_weigh_t *weigh, const double *tail,
                         int64_t samples, double loss,
                         hdf5io_progress_t *progress)
{
    const double counted = weigh->sums[0][WEIGH_COUNTED];
    const double denominator = weigh->sums[0][WEIGH_DENOMINATOR];

    tail += train_replica_sums(0);
    if (nn_graph_losses(weigh->graph) > 1 ||
        nn_graph_loss_info(weigh->graph, 0).weight != 1) {
        if (isfinite(loss)) {
            progress->loss_sum += loss * (double)samples;
            progress->loss_count += samples;
        }
    } else {
        if (denominator == counted)
            progress->loss_sum += tail[TRAIN_REPLICA_LOSS];
        else if (denominator > 0)
            progress->loss_sum +=
                tail[TRAIN_REPLICA_LOSS] / denominator * counted;
        progress->loss_count += (int64_t)counted;
    }
    progress->correct += (int64_t)tail[TRAIN_REPLICA_CORRECT];
}

static void progress_advance(train_state_t *run, const hdf5io_batch_t *batch,
                             double loss)
{
    const double *tail = ddp_tail(run->replica.ddp);
    hdf5io_progress_t *progress = &run->progress;

    progress->step++;
    progress->epoch_step++;
    progress->samples += batch->global;
    check(run->data.train.loader == NULL ||
              progress->epoch_step <= run->data.train.steps,
          "step %lld of an epoch of %lld", (long long)progress->epoch_step,
          (long long)run->data.train.steps);
    check(!run->agreed.stop, "a step after all ranks agreed to stop");
    loss_advance(&run->weigh, tail, batch->global, loss, progress);
    run->agreed.checkpoint = tail[TRAIN_REPLICA_DUE] > 0.0;
    run->agreed.stop =
        tail[TRAIN_REPLICA_REQUEST] > 0.0 || tail[TRAIN_REPLICA_TERM] > 0.0;
}

/* Tell [about] which losses count, and how much. */
static void case_fill(const train_weigh_t *weigh, optim_case_t *about)
{
    double scales[NN_FIELDS_MAX];

    about->counts = train_weigh_scales(weigh, scales);
    for (int k = 0; k < nn_graph_losses(weigh->graph); k++) {
        about->weights[k] = nn_graph_loss_info(weigh->graph, k).weight;
        about->denominators[k] = weigh->sums[k][WEIGH_DENOMINATOR];
    }
}

static train_update_step_t update_step(const train_state_t *run, double lr)
{
    const train_replica_t *replica = &run->replica;
    const double *tail = ddp_tail(replica->ddp);

    return (train_update_step_t){
        .stream = train_replica_stream(replica),
        .shard = replica->shard,
        .ddp = replica->ddp,
        .params = replica->params,
        .grads = ddp_grads(replica->ddp),
        .elems = nn_graph_param_elems(run->graph),
        .question = {.failed = tail + TRAIN_REPLICA_FAILED,
                     .sums = tail + train_replica_sums(0) + TRAIN_REPLICA_LOSS,
                     .losses = nn_graph_losses(run->graph),
                     .stride = TRAIN_REPLICA_SUMS,
                     .limit = run->config->train.clip_norm},
        .lr = lr,
        .number = run->progress.updates + 1};
}

static void moments_fold(train_state_t *run, const hdf5io_batch_t *batch)
{
    const bool last = run->progress.epoch_step + 1 == run->data.train.steps;
    const op_step_t step = {.samples = (double)batch->global,
                            .lone = last ? run->data.lone : 0};
    const nn_fold_t fold = {.moments =
                                ddp_tail(run->replica.ddp) +
                                train_replica_sums(nn_graph_losses(run->graph)),
                            .step = &step,
                            .buffers = run->replica.buffers};

    nn_graph_fold(run->graph, NULL, &fold, NULL, NULL);
}

/* Clip the gradients, fold the running statistics, update the parameters. There
 * is no update if no target counts. */
static err_code_t update(train_state_t *run, const hdf5io_batch_t *batch,
                         step_result_t *out, err_t *err)
{
    train_replica_t *replica = &run->replica;
    train_update_step_t step;
    err_code_t rc;

    out->lr = optim_schedule_lr(replica->schedule, optim_lr(replica->optim),
                                run->progress.step);
    out->lr = train_plateau_lr(&run->plateau, out->lr);
    step = update_step(run, out->lr);
    case_fill(&run->weigh, &replica->update.about);
    rc = train_update_judge(&replica->update, &step, err);
    out->norm = replica->update.result.norm;
    if (rc == ERR_OK)
        rc = train_number_agree(run, "the gradient's norm", out->norm, batch,
                                err);
    if (rc != ERR_OK)
        return rc;
    moments_fold(run, batch);
    if (replica->update.result.updates)
        run->progress.updates = step.number;
    return train_update_run(&replica->update, &step, err);
}

/* Write each of several losses under its name to [out]. Returns their number, 0
 * if there is only one loss. */
static int losses_name(const nn_graph_t *graph, const double *losses,
                       obs_value_t *out)
{
    const int count = nn_graph_losses(graph);

    for (int k = 0; k < count && count > 1; k++) {
        snprintf(out[k].name, sizeof out[k].name, "%.40s_loss",
                 nn_graph_loss_info(graph, k).name);
        out[k].value = losses[k];
    }
    return count > 1 ? count : 0;
}

static void step_log(train_state_t *run, const hdf5io_batch_t *batch,
                     const train_times_t *times, const step_result_t *result)
{
    ddp_stats_t comm = ddp_stats_take(run->replica.ddp);
    double took = clock_now() - times->begin;
    obs_value_t values[NN_FIELDS_MAX];
    obs_step_t row = {.step = run->progress.step,
                      .epoch = run->progress.epoch,
                      .samples = run->progress.samples,
                      .loss = result->loss,
                      .values = values,
                      .value_count =
                          losses_name(run->graph, result->losses, values),
                      .lr = result->lr,
                      .step_s = took,
                      .data_s = times->data,
                      .forward_s = times->forward,
                      .backward_s = times->backward,
                      .comm_s = comm.comm_s + times->tree,
                      .comm_exposed_s = comm.exposed_s + times->tree,
                      .comm_bytes = (double)comm.bytes + run->local.bytes,
                      .samples_per_s = (double)batch->global / took,
                      .grad_norm = result->norm};

    run->life.step_s += took;
    run->life.data_s += times->data;
    run->life.exposed_s += row.comm_exposed_s;
    if (run->dir.metrics != NULL &&
        run->progress.step % run->config->train.log_every == 0)
        obs_metrics_step(run->dir.metrics, &row);
}

/* Finish a step after its reduction, when all ranks have the same sums. [own]
 * is this rank's own error. */
static err_code_t step_finish(train_state_t *run, const hdf5io_batch_t *batch,
                              train_times_t *times, err_code_t own, err_t *err)
{
    const double *tail = ddp_tail(run->replica.ddp);
    step_result_t result;
    err_code_t rc = ERR_OK;

    if (tail[TRAIN_REPLICA_FAILED] > 0.0)
        return train_world_vote(&run->world, own, err);
    run->world.speaker = run->world.rank == 0;
    if (train_weigh_losses(&run->weigh, tail, result.losses, &result.loss))
        rc = train_number_agree(run, "the loss", result.loss, batch, err);
    if (rc != ERR_OK)
        return rc;
    train_phase_set(&run->world, "update");
    rc = update(run, batch, &result, err);
    if (rc != ERR_OK)
        return rc;
    progress_advance(run, batch, result.loss);
    rc = train_local_end(run, times, err);
    if (rc == ERR_OK)
        step_log(run, batch, times, &result);
    return rc;
}

/* Compute, reduce and update. [read] is the result of reading the batch. */
static err_code_t step_run(train_state_t *run, const hdf5io_batch_t *batch,
                           train_times_t *times, err_code_t read, err_t *err)
{
    train_own_t own = {.rc = read, .err = err};
    err_code_t rc;

    times->data = clock_now() - times->begin;
    rc = step_compute(run, batch, times, &own);
    return rc == ERR_OK ? step_finish(run, batch, times, own.rc, err) : rc;
}

err_code_t train_step(train_state_t *run, err_t *err)
{
    train_times_t times = {.begin = clock_now()};
    hdf5io_batch_t *batch = NULL;
    err_code_t read;

    train_storage_begin(&run->world, "reading data");
    read = hdf5io_loader_next(run->data.train.loader, &batch, err);
    train_storage_end(&run->world);
    train_phase_set(&run->world, "forward and backward");
    return step_run(run, batch, &times, read, err);
}

err_code_t train_step_batch(train_state_t *run, const hdf5io_batch_t *batch,
                            err_t *err)
{
    train_times_t times = {.begin = clock_now()};

    return step_run(run, batch, &times, ERR_OK, err);
}
