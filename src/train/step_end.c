/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The end of a step. The device finds out whether the step is sound, and
 * updates the parameters only if it is. The host learns it afterwards, and has
 * the sentence why it is not.
 */
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "train/inputs.h"
#include "train/record.h"
#include "train/step.h"
#include "train/straggler.h"
#include "train/trouble.h"

/* ---- on the device ------------------------------------------------------- */

/* Set the verdict's norm to that of the gradients of all ranks. */
static err_code_t norm_take(const train_replica_t *replica,
                            dev_stream_t *stream, err_t *err)
{
    optim_place_t *place = optim_place(replica->optim);
    float *grads = ddp_grads(replica->ddp);
    double *norm = &replica->io.verdict->norm;
    err_code_t rc = optim_mask(replica->optim, grads, stream, err);

    if (rc != ERR_OK)
        return rc;
    return replica->shard != NULL
               ? train_shard_norm(replica->shard, place, grads, norm, stream,
                                  err)
               : optim_norm(place, grads, nn_graph_param_elems(replica->graph),
                            norm, stream, err);
}

/* Is the step sound, and is there an update? */
static err_code_t step_judge(const train_state_t *run, dev_stream_t *stream,
                             err_t *err)
{
    const train_replica_t *replica = &run->replica;
    const double *tail = ddp_tail(replica->ddp);
    const optim_question_t question = {.about = &replica->io.there->about,
                                       .failed = tail + TRAIN_TAIL_FAILED,
                                       .sums = tail + train_tail_sums(0) +
                                               TRAIN_TAIL_LOSS,
                                       .losses = nn_graph_losses(run->graph),
                                       .stride = TRAIN_TAIL_SUMS,
                                       .limit = run->config->train.clip_norm};

    return optim_judge(optim_place(replica->optim), &question,
                       replica->io.verdict, stream, err);
}

static err_code_t moments_fold(const train_replica_t *replica,
                               dev_stream_t *stream, err_t *err)
{
    const int losses = nn_graph_losses(replica->graph);
    const nn_fold_t fold = {.moments = ddp_tail(replica->ddp) +
                                       train_tail_sums(losses),
                            .step = &replica->io.there->step,
                            .sound = &replica->io.verdict->sound,
                            .buffers = replica->buffers};

    return nn_graph_fold(replica->graph, replica->backend, &fold, stream, err);
}

/* The device decides whether there is an update. Ranks that only enqueue
 * exchange the parameters in each step: if there is no update, they exchange
 * the old parameters. Other ranks exchange parameters on the host, and only if
 * there is an update: so the host first waits for this decision. */
static err_code_t shard_update(const train_replica_t *replica,
                               const optim_args_t *args, dev_stream_t *stream,
                               err_t *err)
{
    const train_shard_step_t step = {replica->ddp, replica->optim, args,
                                     stream};
    err_code_t rc = ERR_OK;

    if (!train_shard_enqueues(replica->shard)) {
        rc = dev_stream_wait(stream, err);
        if (rc != ERR_OK || !replica->io.out->verdict.updates)
            return rc;
    }
    return train_shard_update(replica->shard, &step, err);
}

err_code_t train_end_start(train_state_t *run, err_t *err)
{
    train_replica_t *replica = &run->replica;
    train_step_io_t *io = &replica->io;
    dev_stream_t *stream = train_replica_stream(replica);
    const optim_args_t args = {.params = replica->params,
                               .grads = ddp_grads(replica->ddp),
                               .in = train_io_optim(io->there),
                               .verdict = io->verdict};
    err_code_t rc = norm_take(replica, stream, err);

    if (rc == ERR_OK)
        rc = step_judge(run, stream, err);
    /* From here on, what a checkpoint keeps changes. */
    run->saving.exposed += train_saver_settle(run->saving.saver);
    if (rc == ERR_OK)
        rc = train_io_fetch(io, ddp_tail(replica->ddp), stream, err);
    if (rc == ERR_OK)
        rc = moments_fold(replica, stream, err);
    if (rc != ERR_OK)
        return rc;
    return replica->shard != NULL
               ? shard_update(replica, &args, stream, err)
               : optim_step(replica->optim, &args, stream, err);
}

/* ---- on the host --------------------------------------------------------- */

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

    tail += train_tail_sums(0);
    if (nn_graph_losses(weigh->graph) > 1 ||
        nn_graph_loss_info(weigh->graph, 0).weight != 1) {
        if (isfinite(loss)) {
            progress->loss_sum += loss * (double)samples;
            progress->loss_count += samples;
        }
    } else {
        if (denominator == counted)
            progress->loss_sum += tail[TRAIN_TAIL_LOSS];
        else if (denominator > 0)
            progress->loss_sum += tail[TRAIN_TAIL_LOSS] / denominator * counted;
        progress->loss_count += (int64_t)counted;
    }
    progress->correct += (int64_t)tail[TRAIN_TAIL_CORRECT];
}

static void progress_advance(train_state_t *run, const hdf5io_batch_t *batch,
                             double loss)
{
    const double *tail = run->replica.io.out->tail;
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
    run->agreed.checkpoint = ((int)tail[TRAIN_TAIL_DUE] & TRAIN_DUE_SAVE) != 0;
    run->agreed.look = ((int)tail[TRAIN_TAIL_DUE] & TRAIN_DUE_LOOK) != 0;
    run->agreed.ended = ((int)tail[TRAIN_TAIL_DUE] & TRAIN_DUE_JOIN) != 0;
    run->agreed.stop =
        tail[TRAIN_TAIL_REQUEST] > 0.0 || tail[TRAIN_TAIL_TERM] > 0.0;
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

/* Set what data has cost since the row before, if [row] is written. */
static void data_log(train_state_t *run, obs_step_t *row)
{
    train_data_t *data = &run->data.train;
    hdf5io_reads_t now;

    if (data->dataset == NULL || row->step % run->config->train.log_every != 0)
        return;
    now = hdf5io_dataset_reads(data->dataset);
    row->read_bytes = (double)(now.bytes - data->told.bytes);
    row->decode_s = now.decode_s - data->told.decode_s;
    row->retries = (double)(now.retries - data->told.retries);
    row->data_wait_s = run->life.data_s - data->waited;
    data->told = now;
    data->waited = run->life.data_s;
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
    data_log(run, &row);
    run->seen.loss = result->loss;
    run->seen.samples += (double)batch->global;
    run->seen.parts = (obs_spent_step_t){times->data, times->forward,
                                         times->backward, row.comm_exposed_s};
    train_straggler_step(run, batch, &row);
    train_record_step(run, &row);
}

/* The error of a step in which some rank has failed. */
static err_code_t step_failed(train_state_t *run, const hdf5io_batch_t *batch,
                              train_own_t *own)
{
    if (own->rc == ERR_OK)
        own->rc = train_local_blame(run, batch, own->err);
    return train_world_vote(&run->world, own->rc, own->err);
}

err_code_t train_end_finish(train_state_t *run, const hdf5io_batch_t *batch,
                            train_times_t *times, train_own_t *own)
{
    const train_step_out_t *out = run->replica.io.out;
    step_result_t result = {.lr = run->lr, .norm = out->verdict.norm};
    err_t *err = own->err;
    err_code_t rc = ERR_OK;

    if (out->tail[TRAIN_TAIL_FAILED] > 0.0)
        return step_failed(run, batch, own);
    run->world.speaker = run->world.rank == 0;
    if (train_weigh_losses(&run->weigh, out->tail, result.losses, &result.loss))
        rc = train_number_agree(run, "the loss", result.loss, batch, err);
    if (rc == ERR_OK)
        rc = train_number_agree(run, "the gradient's norm", result.norm, batch,
                                err);
    if (rc == ERR_OK)
        rc = train_trouble_find(run, result.loss, result.norm, err);
    if (rc != ERR_OK)
        return rc;
    if (out->verdict.updates)
        run->progress.updates++;
    progress_advance(run, batch, result.loss);
    rc = train_local_end(run, times, err);
    if (rc == ERR_OK)
        step_log(run, batch, times, &result);
    return rc;
}
