/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the loss of a step is divided by. For most losses that is the number of
 * samples of the step, or a multiple, which the plan knows. With class weights
 * or ignored targets it hangs on the targets of all ranks, and mean-of-means
 * would be wrong: each rank adds up its own, and one small sum travels while
 * forward runs.
 */
#include <string.h>

#include "comm/comm_fold.h"
#include "train/run_priv.h"

/* Known beforehand? Then fill it. */
static bool weigh_plain(train_state_t *run, const hdf5io_batch_t *batch)
{
    int64_t global;

    if (nn_graph_weighs(run->graph))
        return false;
    global = batch == NULL ? 0 : batch->global;
    run->weigh.sums[WEIGH_DENOMINATOR] =
        nn_graph_denominator(run->graph, global);
    run->weigh.sums[WEIGH_COUNTED] = run->weigh.sums[WEIGH_DENOMINATOR];
    run->weigh.own =
        nn_graph_denominator(run->graph, batch == NULL ? 0 : batch->count);
    return true;
}

/* The weights of [count] samples from my sample [from] on. */
static void weigh_add(const train_state_t *run, const hdf5io_batch_t *batch,
                      int64_t from, int64_t count, double sums[WEIGH_SUMS])
{
    nn_batch_t part = train_batch_part(run, batch, from);
    nn_weight_t weight = nn_graph_weigh(run->graph, part.target, count);

    sums[WEIGH_DENOMINATOR] = weight.denominator;
    sums[WEIGH_COUNTED] = (double)weight.counted;
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
    weigh->own = weigh->sums[WEIGH_DENOMINATOR];
    state = comm_allreduce_start(run->group, weigh->sums, WEIGH_SUMS,
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
    double stack[COMM_VIEWS_MAX][WEIGH_SUMS];
    void *views[COMM_VIEWS_MAX];
    comm_fold_t fold;

    run->weigh = (train_weigh_t){0};
    if (weigh_plain(run, batch))
        return ERR_OK;
    comm_fold_begin(&fold, mine.leaves, WEIGH_SUMS, COMM_FLOAT64);
    for (int64_t i = 0; i < mine.held; i++) {
        double *sums = stack[fold.depth];
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
                               mine.leaves, run->weigh.sums, WEIGH_SUMS,
                               COMM_FLOAT64, err);
}

double train_weigh_scale(const train_state_t *run)
{
    double denominator =
        run->local.step ? run->weigh.own : run->weigh.sums[WEIGH_DENOMINATOR];

    return denominator > 0 ? 1.0 / denominator : 0.0;
}
