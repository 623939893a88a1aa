/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <string.h>

#include "train/step.h"

void train_in_begin(train_state_t *run, const hdf5io_batch_t *batch)
{
    const hdf5io_progress_t *progress = &run->progress;
    const train_replica_t *replica = &run->replica;
    const bool last = progress->epoch_step + 1 == run->data.train.steps;
    train_step_in_t *in = replica->io.in;

    in->step.seed = (uint64_t)run->config->run.seed;
    in->step.epoch = batch == NULL ? 0 : (uint64_t)batch->epoch;
    in->step.samples = batch == NULL ? 0 : (double)batch->global;
    in->step.lone = last ? run->data.lone : 0;
    memset(in->flags, 0, sizeof in->flags);
    train_flags_fill(run, in->flags);
    optim_in_fill(replica->optim, run->lr, progress->updates + 1,
                  train_io_optim(in));
}

void train_in_weigh(train_state_t *run)
{
    const train_weigh_t *weigh = &run->weigh;
    train_step_in_t *in = run->replica.io.in;

    in->about.counts = train_weigh_scales(weigh, in->step.scales);
    for (int k = 0; k < nn_graph_losses(weigh->graph); k++) {
        in->about.weights[k] = nn_graph_loss_info(weigh->graph, k).weight;
        in->about.denominators[k] = weigh->sums[k][WEIGH_DENOMINATOR];
    }
}

err_code_t train_in_send(train_state_t *run, err_t *err)
{
    return train_io_send(&run->replica.io, train_replica_stream(&run->replica),
                         err);
}
