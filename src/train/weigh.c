/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the loss of a step is divided by. For most losses that is the number of
 * samples of the step, or a multiple, which the plan knows. With weights of
 * classes or samples, or ignored targets, it hangs on the targets of all ranks,
 * and mean-of-means would be wrong: each rank adds up its own, and one small
 * sum travels while forward runs.
 */
#include <math.h>
#include <string.h>

#include "comm/comm_fold.h"
#include "train/run_priv.h"

/* Known beforehand? Then fill it. */
static bool weigh_plain(train_state_t *run, const hdf5io_batch_t *batch)
{
    const int64_t global = batch == NULL ? 0 : batch->global;
    const int64_t count = batch == NULL ? 0 : batch->count;

    if (nn_graph_weighs(run->graph))
        return false;
    for (int k = 0; k < nn_graph_losses(run->graph); k++) {
        double denominator = nn_loss_denominator(run->graph, k, global);

        run->weigh.sums[k][WEIGH_DENOMINATOR] = denominator;
        run->weigh.sums[k][WEIGH_COUNTED] = denominator;
        run->weigh.own[k] = nn_loss_denominator(run->graph, k, count);
    }
    return true;
}

/* The weights of [count] samples from my sample [from] on. */
static void weigh_add(const train_state_t *run, const hdf5io_batch_t *batch,
                      int64_t from, int64_t count, double (*sums)[WEIGH_SUMS])
{
    nn_batch_t part = train_batch_part(run, batch, from);

    for (int k = 0; k < nn_graph_losses(run->graph); k++) {
        nn_weight_t weight = nn_batch_weigh(run->graph, k, &part, count);

        sums[k][WEIGH_DENOMINATOR] = weight.denominator;
        sums[k][WEIGH_COUNTED] = (double)weight.counted;
    }
}

/* Doubles that the ranks add up. */
static size_t weigh_count(const train_state_t *run)
{
    return WEIGH_SUMS * (size_t)nn_graph_losses(run->graph);
}

err_code_t train_weigh_begin(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err)
{
    train_weigh_t *weigh = &run->weigh;
    comm_state_t state;

    *weigh = (train_weigh_t){0};
    if (weigh_plain(run, batch))
        return ERR_OK;
    if (batch != NULL && batch->count > 0)
        weigh_add(run, batch, 0, batch->count, weigh->sums);
    for (int k = 0; k < NN_FIELDS_MAX; k++)
        weigh->own[k] = weigh->sums[k][WEIGH_DENOMINATOR];
    state = comm_allreduce_start(run->group, weigh->sums, weigh_count(run),
                                 COMM_FLOAT64, COMM_SUM, &weigh->work, err);
    return state == COMM_FAILED ? ERR_PEER : ERR_OK;
}

err_code_t train_weigh_finish(train_state_t *run, err_t *err)
{
    comm_work_t *work = run->weigh.work;

    run->weigh.work = NULL;
    return work == NULL ? ERR_OK : comm_work_wait(work, err);
}

/* Leaf by leaf, as whoever holds a leaf must change no bit. */
err_code_t train_weigh_leaves(train_state_t *run, const hdf5io_batch_t *batch,
                              err_t *err)
{
    const int64_t leaf = run->config->train.microbatch;
    train_leaves_t mine = train_leaves_of(
        &run->train, leaf, run->config->train.batch, run->progress.epoch_step);
    double stack[COMM_VIEWS_MAX][NN_FIELDS_MAX][WEIGH_SUMS];
    void *views[COMM_VIEWS_MAX];
    comm_fold_t fold;

    run->weigh = (train_weigh_t){0};
    if (weigh_plain(run, batch))
        return ERR_OK;
    comm_fold_begin(&fold, mine.leaves, weigh_count(run), COMM_FLOAT64);
    for (int64_t i = 0; i < mine.held; i++) {
        double(*sums)[WEIGH_SUMS] = stack[fold.depth];
        int64_t from = i * leaf;

        memset(sums, 0, sizeof stack[0]);
        if (batch != NULL)
            weigh_add(run, batch, from,
                      batch->count - from < leaf ? batch->count - from : leaf,
                      sums);
        comm_fold_push(&fold, mine.first + i, mine.first + i + 1, sums);
    }
    for (int i = 0; i < fold.depth; i++)
        views[i] = stack[i];
    return comm_allreduce_tree(run->group, views, mine.first, mine.held,
                               mine.leaves, run->weigh.sums, weigh_count(run),
                               COMM_FLOAT64, err);
}

bool train_weigh_scales(const train_state_t *run, double scales[NN_FIELDS_MAX])
{
    bool any = false;

    for (int k = 0; k < nn_graph_losses(run->graph); k++) {
        double denominator = run->local.step
                                 ? run->weigh.own[k]
                                 : run->weigh.sums[k][WEIGH_DENOMINATOR];

        scales[k] = denominator > 0
                        ? nn_graph_loss_info(run->graph, k).weight / denominator
                        : 0.0;
        any = any || scales[k] > 0;
    }
    return any;
}

bool train_weigh_losses(const train_state_t *run, const double *tail,
                        double out[NN_FIELDS_MAX], double *sum)
{
    bool any = false;

    *sum = 0;
    for (int k = 0; k < nn_graph_losses(run->graph); k++) {
        double denominator = run->weigh.sums[k][WEIGH_DENOMINATOR];
        double weight = nn_graph_loss_info(run->graph, k).weight;

        out[k] = NAN;
        if (!(denominator > 0))
            continue;
        out[k] = tail[train_replica_sums(k) + TRAIN_REPLICA_LOSS] / denominator;
        /* A loss that is only watched may be what it wants. */
        if (weight == 0)
            continue;
        *sum += weight * out[k];
        any = true;
    }
    if (!any)
        *sum = NAN;
    return any;
}
