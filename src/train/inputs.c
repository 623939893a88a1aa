/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whose fault is a loss or gradient that is no number: that of the data, or of
 * the training? The samples of the step are still there to be looked at. A run
 * ends before the update spoils the weights, on all ranks with one status.
 */
#include "train/inputs.h"

#include <math.h>
#include <stdio.h>

err_code_t train_inputs_check(const train_state_t *run,
                              const train_data_t *data, const nn_batch_t *batch,
                              int64_t count, err_t *err)
{
    const int inputs = nn_graph_inputs(run->graph);
    const void *fields[2 * NN_FIELDS_MAX];

    if (data->dataset == NULL || count == 0)
        return ERR_OK;
    for (int k = 0; k < inputs; k++)
        fields[k] = batch->inputs[k];
    for (int k = 0; k < nn_graph_targets(run->graph); k++)
        fields[inputs + k] = batch->targets[k];
    return hdf5io_dataset_finite(data->dataset, batch->sample_ids, count,
                                 fields, err);
}

err_code_t train_diverged(const train_state_t *run, const char *what,
                          const char *value, int64_t step, err_t *err)
{
    char kept[160] = "no checkpoint was written before";

    if (run->saved_step >= 0)
        snprintf(kept, sizeof kept,
                 "the newest checkpoint is of step %lld, and --resume PATH "
                 "goes on from an older one",
                 (long long)run->saved_step);
    return err_set(err, ERR_DIVERGED,
                   "%s became %s in step %lld: lower the optimizer's lr, warm "
                   "up longer or set train.clip_norm; %s",
                   what, value, (long long)step, kept);
}

static err_code_t number_blame(const train_state_t *run,
                               const hdf5io_batch_t *batch, err_t *err)
{
    nn_batch_t whole;

    if (batch->count == 0)
        return ERR_OK;
    whole = train_batch_part(run, batch, 0);
    return train_inputs_check(run, &run->train, &whole, batch->count, err);
}

static err_code_t number_diverged(const train_state_t *run, const char *what,
                                  double value, err_t *err)
{
    return train_diverged(run, what, isnan(value) ? "nan" : "infinite",
                          run->progress.step + 1, err);
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
    rc = train_vote(&run->votes, number_blame(run, batch, err), &run->speaker,
                    err);
    return rc != ERR_OK ? rc : number_diverged(run, what, value, err);
}
