/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One update. The loss, the requests of signals and the word "I failed" travel
 * in the tail of the gradients, so a step has no other collective, and at its
 * end all ranks know the same: they go on, checkpoint or stop together.
 *
 * A rank that meets an error in the middle (a bad label, say) still takes part
 * in the step's reductions with what it has; only then do all ranks stop and
 * hear its sentence. So nobody waits for it, and no update is made.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/inputs.h"
#include "train/plateau.h"
#include "train/run_priv.h"

/* ---- forward and backward ----------------------------------------------- */

static void tail_begin(train_state_t *run)
{
    double *tail = ddp_tail(run->replica.ddp);

    memset(tail, 0,
           (train_replica_sums(nn_graph_losses(run->graph)) +
            nn_graph_moment_elems(run->graph)) *
               sizeof *tail);
    train_flags_fill(run, tail);
}

static err_code_t micro_step(train_state_t *run, const nn_batch_t *batch,
                             int64_t count, bool accumulate,
                             train_times_t *times, err_t *err)
{
    train_replica_t *replica = &run->replica;
    nn_exec_t *exec = train_replica_exec(replica, count, true);
    double *tail = ddp_tail(replica->ddp);
    double begin = clock_now();
    nn_result_t results[NN_FIELDS_MAX];
    double scales[NN_FIELDS_MAX];
    double middle;
    err_code_t rc;

    /* A sign of life: the step of a large batch may take long. */
    train_phase_set(run, "forward and backward");
    rc = nn_exec_forward(exec, batch, results, err);
    middle = clock_now();
    times->forward += middle - begin;
    if (rc != ERR_OK)
        return rc;
    for (int k = 0; k < nn_graph_losses(run->graph); k++) {
        double *sums = tail + train_replica_sums(k);

        sums[TRAIN_REPLICA_LOSS] += results[k].loss_sum;
        sums[TRAIN_REPLICA_CORRECT] += (double)results[k].correct;
    }
    rc = train_weigh_finish(run, err);
    train_weigh_scales(run, scales);
    if (rc == ERR_OK)
        rc = nn_exec_backward(exec, batch, scales, accumulate, err);
    times->backward += clock_now() - middle;
    return rc;
}

/* My samples of the step, micro-batch by micro-batch. */
static err_code_t share_run(train_state_t *run, const hdf5io_batch_t *batch,
                            train_times_t *times, err_t *err)
{
    int64_t size =
        train_micro_size(batch->count, run->config->train.accumulate);
    err_code_t rc = ERR_OK;

    for (int64_t from = 0; rc == ERR_OK && from < batch->count; from += size) {
        int64_t left = batch->count - from;
        nn_batch_t part = train_batch_part(run, batch, from);

        run->replica.last_micro = left <= size;
        rc = micro_step(run, &part, left < size ? left : size, from > 0, times,
                        err);
    }
    return rc;
}

/* A step begins: all ranks know how many micro-batches the busiest has. */
static void sync_begin(train_state_t *run)
{
    const int64_t parts = run->config->train.accumulate;
    int64_t most = 0;

    for (int r = 0; r < run->size; r++) {
        int64_t count = hdf5io_sampler_share_of(run->train.sampler,
                                                run->progress.epoch_step, r)
                            .count;
        int64_t size = train_micro_size(count, parts);
        int64_t micros = count == 0 ? 0 : (count + size - 1) / size;

        most = micros > most ? micros : most;
    }
    train_sync_begin(run->replica.sync, most);
}

/* My samples, unless [own] is an error already; then what the ranks that have
 * more still expect of me. */
static err_code_t share_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, err_code_t own, err_t *err)
{
    train_sync_t *sync = run->replica.sync;
    err_code_t rc = ERR_OK;

    if (sync != NULL)
        sync_begin(run);
    if (own == ERR_OK && batch->count > 0)
        own = share_run(run, batch, times, err);
    if (sync != NULL && own != ERR_PEER)
        rc = train_sync_rest(sync, own == ERR_OK ? err : NULL);
    return own == ERR_OK ? rc : own;
}

/* Default mode: sums grow in ddp's arena, buckets leave as they are complete.
 * An error of this rank alone (*own) does not keep it from the reductions. */
static err_code_t buckets_step(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, err_code_t *own,
                               err_t *err)
{
    ddp_t *ddp = run->replica.ddp;
    err_code_t rc;

    ddp_step_begin(ddp);
    train_local_begin(run);
    tail_begin(run);
    rc = train_weigh_begin(run, *own == ERR_OK ? batch : NULL,
                           *own == ERR_OK ? err : NULL);
    if (*own == ERR_OK)
        *own = rc;
    *own = share_step(run, batch, times, *own, err);
    if (*own == ERR_OK && batch->count > 0)
        *own = train_local_check(run, batch, err);
    rc = train_weigh_finish(run, *own == ERR_OK ? err : NULL);
    if (*own == ERR_OK)
        *own = rc;
    if (*own == ERR_PEER) {
        ddp_step_wait(ddp, NULL); /* what is in flight fails at once */
        return *own;
    }
    if (*own != ERR_OK)
        ddp_tail(ddp)[TRAIN_REPLICA_FAILED] = 1.0;
    train_phase_set(run, "all-reduce");
    rc = ddp_step_skip(ddp, *own == ERR_OK ? err : NULL);
    if (rc == ERR_OK)
        rc = ddp_step_wait(ddp, *own == ERR_OK ? err : NULL);
    return rc != ERR_OK && *own != ERR_OK ? *own : rc;
}

static err_code_t step_compute(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, err_code_t *own,
                               err_t *err)
{
    return run->replica.tree != NULL
               ? train_leaves_step(run, batch, times, own, err)
               : buckets_step(run, batch, times, own, err);
}

/* ---- what the step ends with -------------------------------------------- */

typedef struct step_end {
    double losses[NN_FIELDS_MAX], loss; /* each, and their weighted sum */
    double lr, norm;
} step_end_t;

/* An epoch's loss of a model with one loss is the sum over all that counts in
 * it; where targets have weights, the mean of its steps' losses, by what counts
 * in them; of several losses, or a weighted one, by the samples. */
static void loss_advance(train_state_t *run, const hdf5io_batch_t *batch,
                         double loss)
{
    const double *tail = ddp_tail(run->replica.ddp) + train_replica_sums(0);
    const double counted = run->weigh.sums[0][WEIGH_COUNTED];
    const double denominator = run->weigh.sums[0][WEIGH_DENOMINATOR];
    hdf5io_progress_t *progress = &run->progress;

    if (nn_graph_losses(run->graph) > 1 ||
        nn_graph_loss_info(run->graph, 0).weight != 1) {
        if (isfinite(loss)) {
            progress->loss_sum += loss * (double)batch->global;
            progress->loss_count += batch->global;
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
    loss_advance(run, batch, loss);
    run->checkpoint_due = tail[TRAIN_REPLICA_DUE] > 0.0;
    run->stop =
        tail[TRAIN_REPLICA_REQUEST] > 0.0 || tail[TRAIN_REPLICA_TERM] > 0.0;
}

/* Clip; *norm is the gradients' norm before. */
static err_code_t grads_clip(train_state_t *run, double *norm, err_t *err)
{
    train_replica_t *replica = &run->replica;
    size_t elems = nn_graph_param_elems(run->graph);
    float *grads = ddp_grads(replica->ddp);
    double limit = run->config->train.clip_norm;
    double most = run->config->train.clip_value;
    err_code_t rc = ERR_OK;

    optim_mask(replica->optim, grads);
    if (replica->shard != NULL) {
        rc = train_shard_clip(replica->shard, run->group, grads, limit,
                              run->threads, norm, err);
        train_shard_clip_value(replica->shard, grads, most, run->threads);
    } else {
        *norm = optim_clip(grads, elems, limit, run->threads);
        optim_clip_value(grads, elems, most, run->threads);
    }
    return rc;
}

/* Clip, fold the running statistics, update; no update where no target counts.
 */
static err_code_t update(train_state_t *run, const hdf5io_batch_t *batch,
                         double *lr, double *norm, err_t *err)
{
    train_replica_t *replica = &run->replica;
    const int64_t number = run->progress.updates + 1;
    double scales[NN_FIELDS_MAX];
    err_code_t rc;

    rc = grads_clip(run, norm, err);
    if (rc == ERR_OK)
        rc = train_number_agree(run, "the gradient's norm", *norm, batch, err);
    if (rc != ERR_OK)
        return rc;
    *lr = optim_schedule_lr(replica->schedule, optim_lr(replica->optim),
                            run->progress.step);
    *lr = train_plateau_lr(run, *lr);
    nn_graph_fold_moments(
        run->graph,
        ddp_tail(replica->ddp) +
            train_replica_sums(nn_graph_losses(run->graph)),
        batch->global,
        run->progress.epoch_step + 1 == run->train.steps ? run->lone : 0,
        replica->buffers);
    if (!train_weigh_scales(run, scales))
        return ERR_OK;
    run->progress.updates = number;
    if (replica->shard != NULL)
        return train_shard_update(replica->shard, run->group, replica->ddp,
                                  replica->optim, replica->params, *lr, number,
                                  err);
    optim_step(replica->optim, replica->params, ddp_grads(replica->ddp), *lr,
               number);
    return ERR_OK;
}

/* Each of several losses, under its name. */
static int losses_name(const train_state_t *run, const double *losses,
                       obs_value_t *out)
{
    const int count = nn_graph_losses(run->graph);

    for (int k = 0; k < count && count > 1; k++) {
        snprintf(out[k].name, sizeof out[k].name, "%.40s_loss",
                 nn_graph_loss_info(run->graph, k).name);
        out[k].value = losses[k];
    }
    return count > 1 ? count : 0;
}

static void step_log(train_state_t *run, const hdf5io_batch_t *batch,
                     const train_times_t *times, const step_end_t *end)
{
    ddp_stats_t comm = ddp_stats_take(run->replica.ddp);
    double took = clock_now() - times->begin;
    obs_value_t values[NN_FIELDS_MAX];
    obs_step_t row = {.step = run->progress.step,
                      .epoch = run->progress.epoch,
                      .samples = run->progress.samples,
                      .loss = end->loss,
                      .values = values,
                      .value_count = losses_name(run, end->losses, values),
                      .lr = end->lr,
                      .step_s = took,
                      .data_s = times->data,
                      .forward_s = times->forward,
                      .backward_s = times->backward,
                      .comm_s = comm.comm_s + times->tree,
                      .comm_exposed_s = comm.exposed_s + times->tree,
                      .comm_bytes = (double)comm.bytes + run->local.bytes,
                      .samples_per_s = (double)batch->global / took,
                      .grad_norm = end->norm};

    run->step_s += took;
    run->data_s += times->data;
    run->exposed_s += row.comm_exposed_s;
    if (run->metrics != NULL &&
        run->progress.step % run->config->train.log_every == 0)
        obs_metrics_step(run->metrics, &row);
}

/* All ranks are alive and know the same; [own] is this rank's own error. */
static err_code_t step_end(train_state_t *run, const hdf5io_batch_t *batch,
                           train_times_t *times, err_code_t own, err_t *err)
{
    const double *tail = ddp_tail(run->replica.ddp);
    step_end_t end;
    err_code_t rc = ERR_OK;

    if (tail[TRAIN_REPLICA_FAILED] > 0.0)
        return train_vote(&run->votes, own, &run->speaker, err);
    run->speaker = run->rank == 0;
    if (train_weigh_losses(run, tail, end.losses, &end.loss))
        rc = train_number_agree(run, "the loss", end.loss, batch, err);
    if (rc != ERR_OK)
        return rc;
    train_phase_set(run, "update");
    rc = update(run, batch, &end.lr, &end.norm, err);
    if (rc != ERR_OK)
        return rc;
    progress_advance(run, batch, end.loss);
    rc = train_local_end(run, times, err);
    if (rc == ERR_OK)
        step_log(run, batch, times, &end);
    return rc;
}

/* Compute, reduce, update; [own] is what reading the batch answered. */
static err_code_t step_run(train_state_t *run, const hdf5io_batch_t *batch,
                           train_times_t *times, err_code_t own, err_t *err)
{
    err_code_t rc;

    times->data = clock_now() - times->begin;
    rc = step_compute(run, batch, times, &own, err);
    return rc == ERR_OK ? step_end(run, batch, times, own, err) : rc;
}

err_code_t train_step(train_state_t *run, err_t *err)
{
    train_times_t times = {.begin = clock_now()};
    hdf5io_batch_t *batch = NULL;
    err_code_t own;

    train_storage_begin(run, "reading data");
    own = hdf5io_loader_next(run->train.loader, &batch, err);
    train_storage_end(run);
    train_phase_set(run, "forward and backward");
    return step_run(run, batch, &times, own, err);
}

err_code_t train_step_batch(train_state_t *run, const hdf5io_batch_t *batch,
                            err_t *err)
{
    train_times_t times = {.begin = clock_now()};

    return step_run(run, batch, &times, ERR_OK, err);
}
