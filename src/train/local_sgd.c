/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Local SGD (Lin, Stich, Patel, Jaggi, "Don't use large mini-batches, use local
 * SGD", ICLR 2020: "post-local"): after ddp.local_sgd.start updates of the run
 * every rank updates with the gradient of its own samples, and every `period`
 * updates the ranks average what they have. What is averaged is all that an
 * update changes: parameters and the optimizer's state (Yu, Jin, Yang, "On the
 * linear speedup analysis of communication efficient momentum SGD", ICML 2019,
 * for the latter), so that after it all ranks are equal, and a checkpoint, an
 * evaluation or a replica check means the same on each of them. Running
 * statistics need none: batch-norm moments travel with each step's tail, as do
 * loss, requests and failures; so all ranks know of a signal in the same step,
 * and average before they leave.
 */
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/inputs.h"
#include "train/run_priv.h"

bool train_local_due(const train_state_t *run)
{
    const ddp_config_t *config = &run->config->ddp;

    return config->local_sgd.period > 0 && run->size > 1 &&
           run->progress.step >= config->local_sgd.start;
}

void train_local_begin(train_state_t *run)
{
    const ddp_config_t *config = &run->config->ddp;
    bool before = run->local.step;

    run->local.step = train_local_due(run);
    if (!run->local.step)
        return;
    ddp_step_local(run->replica.ddp);
    if (!before && run->rank == 0)
        log_info("train",
                 "local SGD from step %lld on: ranks update with their own "
                 "gradients and average every %lld steps",
                 (long long)run->progress.step + 1,
                 (long long)config->local_sgd.period);
}

err_code_t train_local_check(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err)
{
    train_replica_t *replica = &run->replica;
    double norm;

    if (!run->local.step)
        return ERR_OK;
    optim_mask(replica->optim, ddp_grads(replica->ddp));
    norm = optim_norm(ddp_grads(replica->ddp), nn_graph_param_elems(run->graph),
                      run->threads);
    return train_number_check(run, "the gradient's norm", norm, batch, err);
}

/* ---- averaging ----------------------------------------------------------- */

static err_code_t average(train_state_t *run, float *data, err_t *err)
{
    size_t elems = nn_graph_param_elems(run->graph);
    float part = 1.0f / (float)run->size;
    err_code_t rc;

    rc = comm_allreduce(run->group, data, elems, COMM_FLOAT32, COMM_SUM, err);
    for (size_t i = 0; rc == ERR_OK && i < elems; i++)
        data[i] *= part;
    run->local.bytes += (double)(elems * sizeof *data);
    return rc;
}

/* A rank without a target in a local step has made no update; from here on all
 * count alike, as a checkpoint keeps one number. */
static err_code_t updates_agree(train_state_t *run, err_t *err)
{
    double most = (double)run->progress.updates;
    err_code_t rc =
        comm_allreduce(run->group, &most, 1, COMM_FLOAT64, COMM_MAX, err);

    if (rc == ERR_OK)
        run->progress.updates = (int64_t)most;
    return rc;
}

/* Is the step that was just made one after which ranks are equal? */
static bool averages_now(const train_state_t *run)
{
    const ddp_config_t *config = &run->config->ddp;
    const hdf5io_progress_t *progress = &run->progress;
    bool last = progress->epoch + 1 == run->config->train.epochs &&
                progress->epoch_step == run->train.steps;

    return run->stop || last ||
           (progress->step - config->local_sgd.start) %
                   config->local_sgd.period ==
               0;
}

err_code_t train_local_end(train_state_t *run, train_times_t *times, err_t *err)
{
    train_replica_t *replica = &run->replica;
    double begin = clock_now();
    err_code_t rc;

    run->local.bytes = 0;
    run->local.apart = run->local.step && !averages_now(run);
    if (!run->local.step || run->local.apart)
        return ERR_OK;
    train_phase_set(run, "averaging");
    rc = average(run, replica->params, err);
    for (int s = 0; rc == ERR_OK && s < optim_slots(replica->optim); s++)
        rc = average(run, optim_slot_data(replica->optim, s), err);
    if (rc == ERR_OK)
        rc = updates_agree(run, err);
    times->tree += clock_now() - begin;
    return rc;
}

bool train_local_apart(train_state_t *run)
{
    if (run->local.apart && !run->local.told && run->rank == 0)
        log_info("train",
                 "what is due at step %lld (evaluation, checkpoint or replica "
                 "check) waits for the next step after which ranks average, "
                 "and so from here on",
                 (long long)run->progress.step);
    run->local.told |= run->local.apart;
    return run->local.apart;
}
