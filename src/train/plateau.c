/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A schedule that watches a metric. What it has seen is part of the run's
 * progress, so a resumed run goes on with it. The metric is the same bits on
 * all ranks, so all of them cut the rate at the same step.
 */
#include "train/plateau.h"

#include <string.h>

#include "base/log.h"

#define TRAIN_LOSS "train_loss"

/* The metric of the run's schedule; NULL: it watches none. */
static const char *metric_of(const train_state_t *run)
{
    return optim_schedule_metric(run->replica.schedule);
}

static optim_watch_t watch_of(const train_state_t *run)
{
    const hdf5io_progress_t *progress = &run->progress;

    return (optim_watch_t){.best = progress->watch.best,
                           .seen = progress->watch.seen,
                           .bad = progress->watch.bad,
                           .rest = progress->watch.rest,
                           .cuts = progress->watch.cuts};
}

double train_plateau_lr(const train_state_t *run, double lr)
{
    const optim_watch_t watch = watch_of(run);

    return optim_schedule_cut(run->replica.schedule, &watch, lr);
}

/* ---- at the beginning ---------------------------------------------------- */

/* The number called [name] of an evaluation; NULL: it has none. */
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

static err_code_t metric_check(train_state_t *run, const char *metric,
                               err_t *err)
{
    train_eval_t eval;
    str_buf_t known = {0};

    train_eval_names(run, &eval);
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

err_code_t train_plateau_check(train_state_t *run, err_t *err)
{
    const char *metric = metric_of(run);

    if (metric == NULL)
        return ERR_OK;
    if (run->config->ddp.local_sgd.period > 0)
        return err_set(err, ERR_CONFIG,
                       "schedule.plateau and ddp.local_sgd are both set; "
                       "between averages no rank can evaluate what all have, "
                       "so choose one of the two");
    if (strcmp(metric, TRAIN_LOSS) == 0)
        return ERR_OK;
    if (run->valid.dataset == NULL)
        return err_set(err, ERR_CONFIG,
                       "schedule.plateau watches the %s of evaluations, but "
                       "there are none without data.valid; name validation "
                       "shards, or watch the training: metric: train_loss",
                       metric);
    if (run->config->train.eval_every.unit == OPT_NEVER)
        return err_set(err, ERR_CONFIG,
                       "schedule.plateau watches the %s of evaluations, but "
                       "train.eval_every is never; give it steps or epochs, or "
                       "watch the training: metric: train_loss",
                       metric);
    return metric_check(run, metric, err);
}

void train_plateau_resumed(const train_state_t *run)
{
    const char *metric = metric_of(run);

    if (metric == NULL || run->rank != 0 || run->progress.watch.step > 0)
        return;
    log_info("train",
             "schedule.plateau: no %s was watched up to this checkpoint, so "
             "the learning rate is that of the run file, without cuts",
             metric);
}

/* ---- on the way ---------------------------------------------------------- */

bool train_plateau_owed(const train_state_t *run)
{
    const char *metric = metric_of(run);

    return metric != NULL && strcmp(metric, TRAIN_LOSS) != 0 &&
           run->progress.watch.step != run->progress.step;
}

/* The metric after this step is [value]. It is seen once, in whichever life. */
static void see(train_state_t *run, double value)
{
    hdf5io_progress_t *progress = &run->progress;
    optim_watch_t watch = watch_of(run);
    bool cut;

    if (progress->watch.step == progress->step)
        return;
    cut = optim_schedule_watch(run->replica.schedule, value, &watch);
    progress->watch.step = progress->step;
    progress->watch.best = watch.best;
    progress->watch.seen = watch.seen;
    progress->watch.bad = watch.bad;
    progress->watch.rest = watch.rest;
    progress->watch.cuts = watch.cuts;
    if (cut && run->rank == 0)
        log_info("train",
                 "step %lld: %s is %.6g and got no better than %.6g: the "
                 "learning rate becomes %.6g",
                 (long long)progress->step, metric_of(run), value, watch.best,
                 train_plateau_lr(run, optim_lr(run->replica.optim)));
}

void train_plateau_eval(train_state_t *run, const train_eval_t *eval)
{
    const char *metric = metric_of(run);
    const double *value = metric == NULL ? NULL : value_find(eval, metric);

    if (value != NULL)
        see(run, *value);
}

void train_plateau_epoch(train_state_t *run)
{
    const hdf5io_progress_t *progress = &run->progress;
    const char *metric = metric_of(run);

    if (metric != NULL && strcmp(metric, TRAIN_LOSS) == 0)
        see(run, progress->loss_sum / (double)progress->loss_count);
}
