/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/plateau.h"

#include <string.h>

#include "base/log.h"

#define TRAIN_LOSS "train_loss"

/* Name of the metric that the schedule watches; NULL: it watches none. */
static const char *metric_of(const train_plateau_t *plateau)
{
    return optim_schedule_metric(plateau->schedule);
}

static optim_watch_t watch_of(const train_plateau_t *plateau)
{
    const hdf5io_progress_t *progress = plateau->progress;

    return (optim_watch_t){.best = progress->watch.best,
                           .seen = progress->watch.seen,
                           .bad = progress->watch.bad,
                           .rest = progress->watch.rest,
                           .cuts = progress->watch.cuts};
}

double train_plateau_lr(const train_plateau_t *plateau, double lr)
{
    const optim_watch_t watch = watch_of(plateau);

    return optim_schedule_cut(plateau->schedule, &watch, lr);
}

/* ---- start-up ------------------------------------------------------------ */

/* The value called [name] of an evaluation; NULL: there is no such value. */
static const double *value_find(const train_eval_t *eval, const char *name)
{
    if (strcmp(name, "loss") == 0)
        return &eval->loss;
    if (strcmp(name, "accuracy") == 0)
        return &eval->accuracy;
    for (int i = 0; i < eval->value_count; i++)
        if (strcmp(eval->values[i].name, name) == 0)
            return &eval->values[i].value;
    return NULL;
}

static err_code_t metric_check(const train_evaluator_t *evaluator,
                               const char *metric, err_t *err)
{
    train_eval_t eval;
    str_buf_t known = {0};

    train_eval_names(evaluator, &eval);
    if (value_find(&eval, metric) != NULL)
        return ERR_OK;
    for (int i = 0; i < eval.value_count; i++)
        str_buf_add(&known, ", %s", eval.values[i].name);
    err_set(err, ERR_CONFIG,
            "schedule.plateau.metric is %s, but an evaluation of this run has "
            "no number of that name (there: loss, accuracy%s; and train_loss)",
            metric, known.length > 0 ? known.text : "");
    str_buf_free(&known);
    return ERR_CONFIG;
}

err_code_t train_plateau_check(const train_plateau_t *plateau,
                               const train_config_t *config,
                               const train_evaluator_t *evaluator, err_t *err)
{
    const char *metric = metric_of(plateau);

    if (metric == NULL)
        return ERR_OK;
    if (config->ddp.local_sgd.period > 0)
        return err_set(
            err, ERR_CONFIG,
            "schedule.plateau and ddp.local_sgd are both set; "
            "ranks have different parameters between two averages, so "
            "they cannot evaluate together; choose one of the two");
    if (strcmp(metric, TRAIN_LOSS) == 0)
        return ERR_OK;
    if (evaluator->data->dataset == NULL)
        return err_set(err, ERR_CONFIG,
                       "schedule.plateau watches the %s of evaluations, but "
                       "there are none without data.valid; name validation "
                       "shards, or watch the training: metric: train_loss",
                       metric);
    if (config->train.eval_every.unit == OPT_NEVER)
        return err_set(err, ERR_CONFIG,
                       "schedule.plateau watches the %s of evaluations, but "
                       "train.eval_every is never; give it steps or epochs, or "
                       "watch the training: metric: train_loss",
                       metric);
    return metric_check(evaluator, metric, err);
}

void train_plateau_resumed(const train_plateau_t *plateau)
{
    const char *metric = metric_of(plateau);

    if (metric == NULL || !plateau->logs || plateau->progress->watch.step > 0)
        return;
    log_info("train",
             "schedule.plateau: the checkpoint has no record of %s, so the "
             "learning rate starts from the run file's value, without cuts",
             metric);
}

/* ---- steps --------------------------------------------------------------- */

bool train_plateau_needs_eval(const train_plateau_t *plateau)
{
    const char *metric = metric_of(plateau);

    return metric != NULL && strcmp(metric, TRAIN_LOSS) != 0 &&
           plateau->progress->watch.step != plateau->progress->step;
}

/* Tell the schedule that the metric is [value] after this step. A step counts
 * once, even if a resumed run evaluates it again. */
static void watch_add(const train_plateau_t *plateau, double value)
{
    hdf5io_progress_t *progress = plateau->progress;
    optim_watch_t watch = watch_of(plateau);
    bool cut;

    if (progress->watch.step == progress->step)
        return;
    cut = optim_schedule_watch(plateau->schedule, value, &watch);
    progress->watch.step = progress->step;
    progress->watch.best = watch.best;
    progress->watch.seen = watch.seen;
    progress->watch.bad = watch.bad;
    progress->watch.rest = watch.rest;
    progress->watch.cuts = watch.cuts;
    if (cut && plateau->logs)
        log_info("train",
                 "step %lld: %s is %.6g and did not improve on %.6g: the "
                 "learning rate becomes %.6g",
                 (long long)progress->step, metric_of(plateau), value,
                 watch.best,
                 train_plateau_lr(plateau, optim_lr(plateau->optim)));
}

void train_plateau_eval(const train_plateau_t *plateau,
                        const train_eval_t *eval)
{
    const char *metric = metric_of(plateau);
    const double *value = metric == NULL ? NULL : value_find(eval, metric);

    if (value != NULL)
        watch_add(plateau, *value);
}

void train_plateau_epoch(const train_plateau_t *plateau)
{
    const hdf5io_progress_t *progress = plateau->progress;
    const char *metric = metric_of(plateau);

    if (metric != NULL && strcmp(metric, TRAIN_LOSS) == 0)
        watch_add(plateau, progress->loss_sum / (double)progress->loss_count);
}
