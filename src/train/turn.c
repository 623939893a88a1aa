/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/turn.h"

#include "base/clock.h"
#include "train/batch_part.h"
#include "train/run_priv.h"

/* Read the next batch, or take the one that a benchmark gave. */
static void batch_read(train_state_t *run, train_turn_t *turn)
{
    trace_t *trace = train_trace_own(&run->trace);
    const double begin = clock_now(), span = trace_begin(trace);
    hdf5io_batch_t *batch = NULL;

    turn->batch = run->given;
    if (run->given != NULL)
        return;
    train_storage_begin(&run->world, "reading data");
    turn->rc = hdf5io_loader_next(run->data.train.loader, &batch, &turn->err);
    train_storage_end(&run->world);
    trace_end(trace, span, "data", NULL, TRACE_NO_NUMBER);
    train_phase_set(&run->world, "forward and backward");
    turn->batch = batch;
    turn->waited = clock_now() - begin;
}

err_code_t train_turn_check(const train_state_t *run,
                            const hdf5io_batch_t *batch, int64_t size,
                            err_t *err)
{
    err_code_t rc = ERR_OK;

    if (dev_host_visible(run->compute.dev))
        return ERR_OK;
    for (int64_t from = 0; rc == ERR_OK && from < batch->count; from += size) {
        const nn_batch_t part = train_batch_part(run->graph, batch, from);
        const int64_t left = batch->count - from;

        rc = nn_batch_check(run->graph, &part, left < size ? left : size, err);
    }
    return rc;
}

/* Sum the weights of the batch over ranks; those of a bad one count as 0. */
static err_code_t batch_weigh(train_state_t *run, train_turn_t *turn,
                              int64_t step, err_t *err)
{
    const train_config_t *config = run->config;
    const hdf5io_batch_t *batch = turn->rc == ERR_OK ? turn->batch : NULL;
    comm_leaves_t mine;
    err_code_t rc;

    turn->weigh.graph = run->graph;
    turn->weigh.group = run->weigh.group;
    if (config->train.reproducible) {
        mine = train_leaves_of(&run->data.train, config->train.microbatch,
                               config->train.batch, step);
        return train_weigh_leaves(&turn->weigh, batch, &mine,
                                  config->train.microbatch, err);
    }
    rc = train_weigh_begin(&turn->weigh, batch, err);
    return rc == ERR_OK ? train_weigh_finish(&turn->weigh, err) : rc;
}

/* Check the batch and start its copy. */
static err_code_t batch_send(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err)
{
    const train_config_t *config = run->config;
    const int64_t size =
        config->train.reproducible
            ? config->train.microbatch
            : train_micro_size(batch->count, config->train.accumulate);
    err_code_t rc = train_turn_check(run, batch, size, err);

    return rc == ERR_OK ? train_feed_put(run->data.train.feed, batch, err) : rc;
}

err_code_t train_turn_load(train_state_t *run, int64_t step, err_t *err)
{
    train_turn_t *turn = &run->turn;

    turn->loaded = true;
    turn->rc = ERR_OK;
    turn->waited = 0;
    batch_read(run, turn);
    if (turn->rc == ERR_OK)
        turn->rc = batch_send(run, turn->batch, &turn->err);
    if (turn->rc != ERR_OK)
        train_feed_skip(run->data.train.feed);
    return dev_host_visible(run->compute.dev)
               ? ERR_OK
               : batch_weigh(run, turn, step, err);
}

err_code_t train_turn_next(train_state_t *run, err_t *err)
{
    const hdf5io_progress_t *progress = &run->progress;
    const int64_t step = progress->epoch_step + 1;
    const bool last = step == run->data.train.steps;

    if (dev_host_visible(run->compute.dev) ||
        (last && run->given == NULL &&
         progress->epoch + 1 >= run->config->train.epochs))
        return ERR_OK;
    return train_turn_load(run, last ? 0 : step, err);
}
