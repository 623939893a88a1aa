/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Local SGD (Lin, Stich, Patel, Jaggi, "Don't use large mini-batches, use local
 * SGD", ICLR 2020: "post-local"). After the first ddp.local_sgd.start updates,
 * each rank updates with the gradient of its own samples. Every `period`
 * updates the ranks average all that an update changes: the parameters and the
 * optimizer's state (for the latter see Yu, Jin, Yang, "On the linear speedup
 * analysis of communication efficient momentum SGD", ICML 2019). After an
 * average all ranks are equal, so checkpoints, evaluations and replica checks
 * are made then.
 * Running statistics need no average: the tail of each step sums batch-norm
 * moments over ranks. It also sums losses, requests to stop and failures: so
 * all ranks learn of a signal in the same step, and average before they leave.
 */
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/inputs.h"
#include "train/step.h"

bool train_local_due(const train_state_t *run)
{
    const ddp_config_t *config = &run->config->ddp;

    return config->local_sgd.period > 0 && run->world.size > 1 &&
           run->progress.step >= config->local_sgd.start;
}

void train_local_begin(train_state_t *run)
{
    const ddp_config_t *config = &run->config->ddp;
    bool before = run->local.step;

    run->local.step = train_local_due(run);
    run->weigh.local = run->local.step;
    if (!run->local.step)
        return;
    ddp_step_local(run->replica.ddp);
    if (!before && run->world.rank == 0)
        log_info("train",
                 "local SGD from step %lld on: ranks update with their own "
                 "gradients and average every %lld steps",
                 (long long)run->progress.step + 1,
                 (long long)config->local_sgd.period);
}

err_code_t train_local_check(train_state_t *run, err_t *err)
{
    train_replica_t *replica = &run->replica;
    dev_stream_t *stream = train_replica_stream(replica);
    optim_place_t *place = optim_place(replica->optim);
    float *grads = ddp_grads(replica->ddp);
    double *norm = &replica->io.verdict->norm;
    err_code_t rc;

    if (!run->local.step)
        return ERR_OK;
    rc = optim_mask(replica->optim, grads, stream, err);
    if (rc == ERR_OK)
        rc = optim_norm(place, grads, nn_graph_param_elems(run->graph), norm,
                        stream, err);
    return rc == ERR_OK
               ? optim_norm_flag(place, norm,
                                 ddp_tail(replica->ddp) + TRAIN_TAIL_FAILED,
                                 stream, err)
               : rc;
}

err_code_t train_local_blame(const train_state_t *run,
                             const hdf5io_batch_t *batch, err_t *err)
{
    return run->local.step
               ? train_number_check(run, "the gradient's norm",
                                    run->replica.io.out->verdict.norm, batch,
                                    err)
               : ERR_OK;
}

/* ---- averaging ----------------------------------------------------------- */

/* Replace the numbers of an arena by their mean over ranks. */
static err_code_t average(train_state_t *run, float *data, err_t *err)
{
    const size_t elems = nn_graph_param_elems(run->graph);
    const float part = 1.0f / (float)run->world.size;
    dev_stream_t *stream = train_replica_stream(&run->replica);
    err_code_t rc = dev_stream_wait(stream, err);

    if (rc == ERR_OK)
        rc = comm_allreduce(run->world.data, data, elems, COMM_FLOAT32,
                            COMM_SUM, err);
    return rc == ERR_OK ? optim_scale(optim_place(run->replica.optim), data,
                                      elems, part, stream, err)
                        : rc;
}

/* In a local step a rank without targets makes no update, so ranks may have
 * made different numbers of updates. A checkpoint keeps one number: the
 * largest. */
static err_code_t updates_agree(comm_group_t *group,
                                hdf5io_progress_t *progress, err_t *err)
{
    double most = (double)progress->updates;
    err_code_t rc =
        comm_allreduce(group, &most, 1, COMM_FLOAT64, COMM_MAX, err);

    if (rc == ERR_OK)
        progress->updates = (int64_t)most;
    return rc;
}

/* Return whether ranks average after the step that was just made. */
static bool averages_now(const train_state_t *run)
{
    const ddp_config_t *config = &run->config->ddp;
    const hdf5io_progress_t *progress = &run->progress;
    bool last = progress->epoch + 1 == run->config->train.epochs &&
                progress->epoch_step == run->data.train.steps;

    return run->agreed.stop || last ||
           (progress->step - config->local_sgd.start) %
                   config->local_sgd.period ==
               0;
}

err_code_t train_local_end(train_state_t *run, train_times_t *times, err_t *err)
{
    const train_replica_t *replica = &run->replica;
    const size_t elems = nn_graph_param_elems(run->graph);
    double begin = clock_now(), span;
    err_code_t rc;

    run->local.bytes = 0;
    run->local.apart = run->local.step && !averages_now(run);
    if (!run->local.step || run->local.apart)
        return ERR_OK;
    train_phase_set(&run->world, "averaging");
    span = trace_begin(train_trace_own(&run->trace));
    rc = average(run, replica->params, err);
    for (int s = 0; rc == ERR_OK && s < optim_slots(replica->optim); s++)
        rc = average(run, optim_slot_data(replica->optim, s), err);
    if (rc == ERR_OK)
        rc = updates_agree(run->world.group, &run->progress, err);
    run->local.bytes = (double)((1 + (size_t)optim_slots(replica->optim)) *
                                elems * sizeof(float));
    times->tree += clock_now() - begin;
    trace_end(train_trace_own(&run->trace), span, "average", "all-reduce",
              TRACE_NO_NUMBER);
    return rc;
}

bool train_local_apart(train_state_t *run)
{
    if (run->local.apart && !run->local.logged && run->world.rank == 0)
        log_info("train",
                 "the evaluation, checkpoint or replica check due at step %lld "
                 "waits for the next average over ranks, and so will later "
                 "ones",
                 (long long)run->progress.step);
    run->local.logged |= run->local.apart;
    return run->local.apart;
}
