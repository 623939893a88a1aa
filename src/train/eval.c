/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Evaluation: every validation sample once, in file order. The samples of a
 * step are divided among the ranks as in training, without padding. Each step
 * ends with one small sum over ranks: losses, correct answers, requests to stop
 * and failures. So a signal ends a long evaluation after the current step.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/batch_part.h"
#include "train/leave.h"
#include "train/step.h"

/* ---- opening ------------------------------------------------------------- */

/* Elements of the largest output that a loss reads. */
static size_t output_elems(const train_evaluator_t *evaluator)
{
    const nn_graph_t *graph = evaluator->graph;
    size_t elems = 1;
    int64_t most = 0;

    for (int i = 0; i < TRAIN_SIZES_MAX; i++)
        if (evaluator->data->sizes[i] > most)
            most = evaluator->data->sizes[i];
    for (int k = 0; k < nn_graph_losses(graph); k++) {
        nn_loss_info_t loss = nn_graph_loss_info(graph, k);
        size_t own = 1;

        for (int d = 0; d < loss.ndim; d++)
            own *= (size_t)loss.dims[d];
        elems = own > elems ? own : elems;
    }
    return elems * (size_t)most;
}

/* Choose the scores of each loss, and assign places in the sums to them. */
static err_code_t scores_open(train_evaluator_t *evaluator,
                              const tree_t *metrics, err_t *err)
{
    err_code_t rc = ERR_OK;

    evaluator->count = EVAL_FLAGS;
    for (int k = 0; k < nn_graph_losses(evaluator->graph); k++) {
        train_scores_t **scores = &evaluator->scores[k];

        rc = train_scores_open(metrics, evaluator->graph, k, scores, err);
        if (rc != ERR_OK)
            break;
        evaluator->at[k] = evaluator->count;
        evaluator->count += EVAL_SCORES + train_scores_sums(*scores);
        if (train_scores_look(*scores))
            evaluator->reads_output = true;
    }
    return rc;
}

err_code_t train_eval_open(const train_config_t *config,
                           const nn_graph_t *graph, const train_data_t *data,
                           int teams, train_evaluator_t *out, err_t *err)
{
    err_code_t rc;

    out->graph = graph;
    out->data = data;
    rc = scores_open(out, config->metrics, err);
    if (rc != ERR_OK || data->dataset == NULL)
        return rc;
    rc = mem_new(double, out->count, "metrics", &out->sums, err);
    if (rc == ERR_OK)
        rc = mem_new(double, out->count, "metrics", &out->total, err);
    if (rc == ERR_OK && config->train.reproducible)
        rc = train_leaves_eval_open(config, teams, out, err);
    out->output_elems = output_elems(out);
    if (rc == ERR_OK && out->reads_output)
        rc = mem_new(float, (size_t)teams * out->output_elems,
                     "the model's output, for metrics", &out->output, err);
    return rc;
}

void train_eval_close(train_evaluator_t *evaluator)
{
    mem_free(evaluator->output);
    ddp_fold_close(evaluator->fold);
    mem_free(evaluator->leaves);
    mem_free(evaluator->total);
    mem_free(evaluator->sums);
    for (int k = 0; k < NN_FIELDS_MAX; k++)
        train_scores_close(evaluator->scores[k]);
    *evaluator = (train_evaluator_t){0};
}

/* ---- one step ------------------------------------------------------------ */

/* Evaluate this rank's share of one step; add its sums to [sums]. */
static err_code_t eval_share(train_state_t *run, const hdf5io_batch_t *batch,
                             double *sums, err_t *err)
{
    const train_eval_job_t job = {&run->evaluator, &run->replica.teams[0], 0};
    train_eval_batch_t whole = {.count = batch->count};
    hdf5io_batch_t there;
    err_code_t rc;

    if (batch->count == 0)
        return ERR_OK;
    rc = train_feed_take(run->data.valid.feed,
                         train_replica_stream(&run->replica), &there, err);
    if (rc != ERR_OK)
        return rc;
    whole.host = train_batch_part(run->graph, batch, 0);
    whole.there = train_batch_part(run->graph, &there, 0);
    return train_eval_forward(&job, &whole, sums + EVAL_FLAGS, err);
}

/* Read the next samples, and start their copy to the device. */
static err_code_t eval_read(train_state_t *run, hdf5io_batch_t **batch,
                            err_t *err)
{
    const train_config_t *config = run->config;
    err_code_t rc;

    train_storage_begin(&run->world, run->world.phase);
    rc = train_data_next(&run->data.valid, batch, err);
    train_storage_end(&run->world);
    if (rc == ERR_OK)
        rc = train_turn_check(run, *batch,
                              config->train.reproducible
                                  ? config->train.microbatch
                                  : config->train.batch,
                              err);
    return rc == ERR_OK ? train_feed_put(run->data.valid.feed, *batch, err)
                        : rc;
}

/* Evaluate one step. In reproducible mode all sums but the flags are added
 * along the tree of leaves. */
static err_code_t eval_step(train_state_t *run, double *sums, err_t *err)
{
    const bool tree = run->replica.tree != NULL;
    const size_t count = tree ? EVAL_FLAGS : run->evaluator.count;
    hdf5io_batch_t *batch = NULL;
    train_own_t own = {.err = err};
    err_code_t rc;

    own.rc = eval_read(run, &batch, err);
    if (own.rc == ERR_OK)
        own.rc = tree ? train_leaves_eval(run, batch, err)
                      : eval_share(run, batch, sums, err);
    sums[EVAL_STOP] = train_leave_asked(run) != SLURM_SIGNAL_NONE ? 1.0 : 0.0;
    sums[EVAL_FAILED] = own.rc != ERR_OK ? 1.0 : 0.0;
    rc = comm_allreduce(run->world.group, sums, count, COMM_FLOAT64, COMM_SUM,
                        train_own_err(&own));
    if (rc != ERR_OK)
        return train_own_first(&own, rc);
    if (sums[EVAL_FAILED] > 0.0)
        return train_world_vote(&run->world, own.rc, err);
    return tree ? train_leaves_eval_reduce(run, batch, sums, err) : ERR_OK;
}

/* ---- all steps --------------------------------------------------------- */

/* Append a value. Its name gets the prefix [loss] if there are several
 * losses. */
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

/* Append the values of loss [k]. If it is the first loss with an accuracy, its
 * accuracy becomes that of the evaluation. Returns whether the loss adds to the
 * loss of the evaluation: it does not if its weight is 0, or if there are
 * several losses and none of its targets count. */
static bool eval_loss(const train_evaluator_t *evaluator, int k,
                      train_eval_t *eval)
{
    const bool several = nn_graph_losses(evaluator->graph) > 1;
    const nn_loss_info_t info = nn_graph_loss_info(evaluator->graph, k);
    const double *total = evaluator->total + evaluator->at[k];
    const char *name = several ? info.name : "";
    const double loss = total[EVAL_LOSS] / total[EVAL_DENOMINATOR];
    obs_value_t values[TRAIN_SCORES_MAX];
    double accuracy = NAN;
    int count;

    count = train_scores_values(evaluator->scores[k], loss, total + EVAL_SCORES,
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

/* Compute the results of an evaluation from the sums over all steps. */
static void eval_fill(const train_evaluator_t *evaluator, train_eval_t *eval)
{
    bool any = false;

    eval->loss = 0;
    for (int k = 0; k < nn_graph_losses(evaluator->graph); k++)
        any = eval_loss(evaluator, k, eval) || any;
    if (!any)
        eval->loss = NAN;
}

void train_eval_names(const train_evaluator_t *evaluator, train_eval_t *out)
{
    train_eval_t eval = {.accuracy = NAN};

    for (size_t i = 0; i < evaluator->count; i++)
        evaluator->total[i] = 1;
    eval_fill(evaluator, &eval);
    *out = eval;
}

err_code_t train_evaluate(train_state_t *run, train_eval_t *out, err_t *err)
{
    const size_t count = run->evaluator.count;
    double *total = run->evaluator.total, *sums = run->evaluator.sums;
    train_eval_t eval = {.accuracy = NAN};
    const train_replica_t *replica = &run->replica;
    err_code_t rc = ERR_OK;

    train_phase_set(&run->world, "evaluation");
    if (replica->shard != NULL && run->config->ema.decay > 0 &&
        run->config->ema.evaluate)
        rc = train_shard_average(replica->shard, replica->ddp, replica->optim,
                                 train_replica_stream(replica), err);
    if (rc != ERR_OK)
        return rc;
    memset(total, 0, count * sizeof *total);
    for (int64_t s = 0; s < run->data.valid.steps && !eval.stopped; s++) {
        const double begin = clock_now();

        memset(sums, 0, count * sizeof *sums);
        rc = eval_step(run, sums, err);
        train_deadline_step(&run->leave.deadline, clock_now() - begin);
        if (rc != ERR_OK)
            return rc;
        for (size_t i = 0; i < count; i++)
            total[i] += sums[i];
        eval.stopped = total[EVAL_STOP] > 0.0;
    }
    eval_fill(&run->evaluator, &eval);
    *out = eval;
    return ERR_OK;
}
