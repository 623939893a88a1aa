/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds out why a loss or a gradient is not finite: bad data, or divergence.
 * The samples of the step are still in memory, so they are searched for numbers
 * that are not finite. The run ends before the update spoils the weights, on
 * all ranks with one status.
 */
#include "train/inputs.h"

#include <math.h>
#include <stdio.h>

#include "train/batch_part.h"
#include "train/run_priv.h"

err_code_t train_inputs_check(const nn_graph_t *graph, const train_data_t *data,
                              const nn_batch_t *batch, int64_t count,
                              err_t *err)
{
    const int inputs = nn_graph_inputs(graph);
    const void *fields[2 * NN_FIELDS_MAX];

    if (data->dataset == NULL || count == 0)
        return ERR_OK;
    for (int k = 0; k < inputs; k++)
        fields[k] = batch->inputs[k];
    for (int k = 0; k < nn_graph_targets(graph); k++)
        fields[inputs + k] = batch->targets[k];
    return hdf5io_dataset_finite(data->dataset, batch->sample_ids, count,
                                 fields, err);
}

err_code_t train_diverged(const char *what, const char *value, int64_t step,
                          int64_t saved_step, err_t *err)
{
    char kept[160] = "no checkpoint was written before";

    if (saved_step >= 0)
        snprintf(kept, sizeof kept,
                 "the newest checkpoint is of step %lld, and --resume PATH "
                 "goes on from an older one",
                 (long long)saved_step);
    return err_set(err, ERR_DIVERGED,
                   "%s became %s in step %lld: lower the optimizer's lr, warm "
                   "up longer or set train.clip_norm; %s",
                   what, value, (long long)step, kept);
}

/* ERR_DATA if a sample of [batch] is not finite. */
static err_code_t number_blame(const train_state_t *run,
                               const hdf5io_batch_t *batch, err_t *err)
{
    nn_batch_t whole;

    if (batch->count == 0)
        return ERR_OK;
    whole = train_batch_part(run->graph, batch, 0);
    return train_inputs_check(run->graph, &run->data.train, &whole,
                              batch->count, err);
}

static err_code_t number_diverged(const train_state_t *run, const char *what,
                                  double value, err_t *err)
{
    return train_diverged(what, isnan(value) ? "nan" : "infinite",
                          run->progress.step + 1, run->dir.checkpoint_step,
                          err);
}

err_code_t train_number_check(const train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err)
{
    err_code_t rc;

    if (isfinite(value))
        return ERR_OK;
    rc = number_blame(run, batch, err);
    return rc != ERR_OK ? rc : number_diverged(run, what, value, err);
}

err_code_t train_number_agree(train_state_t *run, const char *what,
                              double value, const hdf5io_batch_t *batch,
                              err_t *err)
{
    err_code_t rc;

    if (isfinite(value))
        return ERR_OK;
    rc = train_world_vote(&run->world, number_blame(run, batch, err), err);
    return rc != ERR_OK ? rc : number_diverged(run, what, value, err);
}
