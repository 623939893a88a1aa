/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Evaluation: every validation sample once, in file order, dealt to the ranks
 * like a training step but never padded. Each step ends with one small sum of
 * loss, right answers, requests and failures, so that a long evaluation can be
 * left at a signal; the result is sum / count over all ranks.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/run_priv.h"

/* ---- room ---------------------------------------------------------------- */

/* Room for the largest output that a loss reads. */
static size_t output_elems(const train_state_t *run)
{
    size_t elems = 1;
    int64_t most = 0;

    for (int i = 0; i < TRAIN_SIZES_MAX; i++)
        if (run->valid.sizes[i] > most)
            most = run->valid.sizes[i];
    for (int k = 0; k < nn_graph_losses(run->graph); k++) {
        nn_loss_info_t loss = nn_graph_loss_info(run->graph, k);
        size_t own = 1;

        for (int d = 0; d < loss.ndim; d++)
            own *= (size_t)loss.dims[d];
        elems = own > elems ? own : elems;
    }
    return elems * (size_t)most;
}

/* Choose the scores of each loss, and lay out their sums. */
static err_code_t scores_open(train_state_t *run, err_t *err)
{
    train_eval_room_t *room = &run->room;
    err_code_t rc = ERR_OK;

    room->count = EVAL_FLAGS;
    for (int k = 0; k < nn_graph_losses(run->graph) && rc == ERR_OK; k++) {
        rc = train_scores_open(run->config->metrics, run->graph, k,
                               &room->scores[k], err);
        if (rc != ERR_OK)
            break;
        room->at[k] = room->count;
        room->count += EVAL_SCORES + train_scores_sums(room->scores[k]);
        room->look = room->look || train_scores_look(room->scores[k]);
    }
    return rc;
}

err_code_t train_eval_open(train_state_t *run, err_t *err)
{
    train_eval_room_t *room = &run->room;
    err_code_t rc = scores_open(run, err);

    if (rc != ERR_OK || run->valid.dataset == NULL)
        return rc;
    rc = mem_new(double, room->count, "metrics", &room->sums, err);
    if (rc == ERR_OK)
        rc = mem_new(double, room->count, "metrics", &room->total, err);
    if (rc == ERR_OK && run->config->train.reproducible)
        rc = train_leaves_eval_open(run, err);
    room->output_elems = output_elems(run);
    if (rc == ERR_OK && room->look)
        rc = mem_new(float, (size_t)run->teams * room->output_elems,
                     "the model's output, for metrics", &room->output, err);
    return rc;
}

void train_eval_close(train_state_t *run)
{
    train_eval_room_t *room = &run->room;

    mem_free(room->output);
    ddp_fold_close(room->fold);
    mem_free(room->leaves);
    mem_free(room->total);
    mem_free(room->sums);
    for (int k = 0; k < NN_FIELDS_MAX; k++)
        train_scores_close(room->scores[k]);
    *room = (train_eval_room_t){0};
}

/* ---- one step ------------------------------------------------------------ */

/* My part of one step, into sums. */
static err_code_t eval_share(train_state_t *run, const hdf5io_batch_t *batch,
                             double *sums, err_t *err)
{
    nn_batch_t whole;

    if (batch->count == 0)
        return ERR_OK;
    whole = train_batch_part(run, batch, 0);
    return train_eval_forward(run, 0, &whole, batch->count, sums + EVAL_FLAGS,
                              err);
}

/* In reproducible mode everything but the flags is summed along the tree. */
static err_code_t eval_step(train_state_t *run, double *sums, err_t *err)
{
    bool tree = run->replica.tree != NULL;
    size_t count = tree ? EVAL_FLAGS : run->room.count;
    hdf5io_batch_t *batch = NULL;
    err_code_t own;
    err_code_t rc;

    train_storage_begin(run, run->phase);
    own = hdf5io_loader_next(run->valid.loader, &batch, err);
    train_storage_end(run);
    if (own == ERR_OK)
        own = tree ? train_leaves_eval(run, batch, err)
                   : eval_share(run, batch, sums, err);
    sums[EVAL_STOP] = run->env->signal() != SLURM_SIGNAL_NONE ? 1.0 : 0.0;
    sums[EVAL_FAILED] = own != ERR_OK ? 1.0 : 0.0;
    rc = comm_allreduce(run->group, sums, count, COMM_FLOAT64, COMM_SUM,
                        own == ERR_OK ? err : NULL);
    if (rc != ERR_OK)
        return own != ERR_OK ? own : rc;
    if (sums[EVAL_FAILED] > 0.0)
        return train_vote(&run->votes, own, &run->speaker, err);
    return tree ? train_leaves_eval_reduce(run, batch, sums, err) : ERR_OK;
}

/* ---- all of them --------------------------------------------------------- */

/* Add a value, under its loss's name where there are several losses. */
static void value_add(train_eval_t *eval, const char *loss, const char *name,
                      double value)
{
    obs_value_t *out = &eval->values[eval->value_count];

    if (eval->value_count == OBS_VALUES_MAX)
        return;
    eval->value_count++;
    snprintf(out->name, sizeof out->name, "%.40s%s%.20s", loss,
             loss[0] == '\0' ? "" : "_", name);
    out->value = value;
}

/* The numbers of one loss. The first accuracy is the evaluation's. Where one of
 * several losses has nothing that counts, the others stand alone. Does it count
 * in the loss of all? */
static bool eval_loss(const train_state_t *run, int k, train_eval_t *eval)
{
    const bool several = nn_graph_losses(run->graph) > 1;
    const nn_loss_info_t info = nn_graph_loss_info(run->graph, k);
    const double *total = run->room.total + run->room.at[k];
    const char *name = several ? info.name : "";
    const double loss = total[EVAL_LOSS] / total[EVAL_DENOMINATOR];
    obs_value_t values[TRAIN_SCORES_MAX];
    double accuracy = NAN;
    int count;

    count = train_scores_values(run->room.scores[k], loss, total + EVAL_SCORES,
                                values);
    if (info.classes > 0)
        accuracy = total[EVAL_CORRECT] / total[EVAL_COUNTED];
    if (several)
        value_add(eval, name, "loss", loss);
    for (int i = 0; i < count; i++)
        if (strcmp(values[i].name, "accuracy") == 0)
            accuracy = values[i].value;
    if (several && !isnan(accuracy))
        value_add(eval, name, "accuracy", accuracy);
    if (isnan(eval->accuracy))
        eval->accuracy = accuracy;
    for (int i = 0; i < count; i++)
        if (strcmp(values[i].name, "accuracy") != 0)
            value_add(eval, name, values[i].name, values[i].value);
    if (info.weight <= 0 || (several && !(total[EVAL_DENOMINATOR] > 0)))
        return false;
    eval->loss += info.weight * loss;
    return true;
}

/* From sums to numbers. */
static void eval_fill(const train_state_t *run, train_eval_t *eval)
{
    bool any = false;

    eval->loss = 0;
    for (int k = 0; k < nn_graph_losses(run->graph); k++)
        any = eval_loss(run, k, eval) || any;
    if (!any)
        eval->loss = NAN;
}

void train_eval_names(train_state_t *run, train_eval_t *out)
{
    train_eval_t eval = {.accuracy = NAN};

    for (size_t i = 0; i < run->room.count; i++)
        run->room.total[i] = 1;
    eval_fill(run, &eval);
    *out = eval;
}

err_code_t train_evaluate(train_state_t *run, train_eval_t *out, err_t *err)
{
    const size_t count = run->room.count;
    double *total = run->room.total, *sums = run->room.sums;
    train_eval_t eval = {.accuracy = NAN};
    const train_replica_t *replica = &run->replica;
    err_code_t rc = ERR_OK;

    train_phase_set(run, "evaluation");
    if (replica->shard != NULL && run->config->ema.decay > 0 &&
        run->config->ema.evaluate)
        rc = train_shard_average(replica->shard, replica->ddp, replica->optim,
                                 err);
    if (rc != ERR_OK)
        return rc;
    memset(total, 0, count * sizeof *total);
    for (int64_t s = 0; s < run->valid.steps && !eval.stopped; s++) {
        memset(sums, 0, count * sizeof *sums);
        rc = eval_step(run, sums, err);
        if (rc != ERR_OK)
            return rc;
        for (size_t i = 0; i < count; i++)
            total[i] += sums[i];
        eval.stopped = total[EVAL_STOP] > 0.0;
    }
    eval_fill(run, &eval);
    *out = eval;
    return ERR_OK;
}
