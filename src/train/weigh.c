/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/weigh.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "comm/comm_fold.h"
#include "train/batch_part.h"
#include "train/replica.h"

/* Forget the numbers of the previous step. */
static void weigh_reset(train_weigh_t *weigh)
{
    check(weigh->work == NULL, "the last step's sum is still in flight");
    memset(weigh->sums, 0, sizeof weigh->sums);
    memset(weigh->own, 0, sizeof weigh->own);
    weigh->waited = 0;
}

/* Set the denominators if they do not depend on targets; return false if they
 * do. */
static bool weigh_plain(train_weigh_t *weigh, const hdf5io_batch_t *batch)
{
    const int64_t global = batch == NULL ? 0 : batch->global;
    const int64_t count = batch == NULL ? 0 : batch->count;

    if (nn_graph_weighs(weigh->graph))
        return false;
    for (int k = 0; k < nn_graph_losses(weigh->graph); k++) {
        double denominator = nn_loss_denominator(weigh->graph, k, global);

        weigh->sums[k][WEIGH_DENOMINATOR] = denominator;
        weigh->sums[k][WEIGH_COUNTED] = denominator;
        weigh->own[k] = nn_loss_denominator(weigh->graph, k, count);
    }
    return true;
}

/* Set [sums] to the sums over the targets of [count] samples, the first of
 * which has index [from] in this rank's batch. */
static void weigh_add(const train_weigh_t *weigh, const hdf5io_batch_t *batch,
                      int64_t from, int64_t count, double (*sums)[WEIGH_SUMS])
{
    nn_batch_t part = train_batch_part(weigh->graph, batch, from);

    for (int k = 0; k < nn_graph_losses(weigh->graph); k++) {
        nn_weight_t weight = nn_batch_weigh(weigh->graph, k, &part, count);

        sums[k][WEIGH_DENOMINATOR] = weight.denominator;
        sums[k][WEIGH_COUNTED] = (double)weight.counted;
    }
}

/* Number of doubles in the sum over ranks. */
static size_t weigh_count(const train_weigh_t *weigh)
{
    return WEIGH_SUMS * (size_t)nn_graph_losses(weigh->graph);
}

err_code_t train_weigh_begin(train_weigh_t *weigh, const hdf5io_batch_t *batch,
                             err_t *err)
{
    comm_state_t state;

    weigh_reset(weigh);
    if (weigh_plain(weigh, batch))
        return ERR_OK;
    if (batch != NULL && batch->count > 0)
        weigh_add(weigh, batch, 0, batch->count, weigh->sums);
    for (int k = 0; k < NN_FIELDS_MAX; k++)
        weigh->own[k] = weigh->sums[k][WEIGH_DENOMINATOR];
    state = comm_allreduce_start(weigh->group, weigh->sums, weigh_count(weigh),
                                 COMM_FLOAT64, COMM_SUM, &weigh->work, err);
    return state == COMM_FAILED ? ERR_PEER : ERR_OK;
}

err_code_t train_weigh_finish(train_weigh_t *weigh, err_t *err)
{
    const double begin = clock_now();
    comm_work_t *work = weigh->work;
    err_code_t rc;

    if (work == NULL)
        return ERR_OK;
    weigh->work = NULL;
    rc = comm_work_wait(work, err);
    weigh->waited = clock_now() - begin;
    return rc;
}

/* Sum leaf by leaf: no bit may depend on which rank has which leaf. */
err_code_t train_weigh_leaves(train_weigh_t *weigh, const hdf5io_batch_t *batch,
                              const comm_leaves_t *leaves, int64_t size,
                              err_t *err)
{
    double stack[COMM_VIEWS_MAX][NN_FIELDS_MAX][WEIGH_SUMS];
    void *views[COMM_VIEWS_MAX];
    comm_fold_t fold;
    double begin;
    err_code_t rc;

    weigh_reset(weigh);
    if (weigh_plain(weigh, batch))
        return ERR_OK;
    comm_fold_begin(&fold, leaves->leaves, weigh_count(weigh), COMM_FLOAT64);
    for (int64_t i = 0; i < leaves->held; i++) {
        double(*sums)[WEIGH_SUMS] = stack[fold.depth];
        int64_t from = i * size;

        memset(sums, 0, sizeof stack[0]);
        if (batch != NULL)
            weigh_add(weigh, batch, from,
                      batch->count - from < size ? batch->count - from : size,
                      sums);
        comm_fold_push(&fold, leaves->first + i, leaves->first + i + 1, sums);
    }
    for (int i = 0; i < fold.depth; i++)
        views[i] = stack[i];
    begin = clock_now();
    rc = comm_allreduce_tree(weigh->group, views, leaves, weigh->sums,
                             weigh_count(weigh), COMM_FLOAT64, err);
    weigh->waited = clock_now() - begin;
    return rc;
}

bool train_weigh_scales(const train_weigh_t *weigh,
                        double scales[NN_FIELDS_MAX])
{
    bool any = false;

    for (int k = 0; k < nn_graph_losses(weigh->graph); k++) {
        double denominator =
            weigh->local ? weigh->own[k] : weigh->sums[k][WEIGH_DENOMINATOR];

        scales[k] =
            denominator > 0
                ? nn_graph_loss_info(weigh->graph, k).weight / denominator
                : 0.0;
        any = any || scales[k] > 0;
    }
    return any;
}

bool train_weigh_losses(const train_weigh_t *weigh, const double *tail,
                        double out[NN_FIELDS_MAX], double *sum)
{
    bool any = false;

    *sum = 0;
    for (int k = 0; k < nn_graph_losses(weigh->graph); k++) {
        double denominator = weigh->sums[k][WEIGH_DENOMINATOR];
        double weight = nn_graph_loss_info(weigh->graph, k).weight;

        out[k] = NAN;
        if (!(denominator > 0))
            continue;
        out[k] = tail[train_tail_sums(k) + TRAIN_TAIL_LOSS] / denominator;
        /* A loss of weight 0 is only reported, and may be NaN. */
        if (weight == 0)
            continue;
        *sum += weight * out[k];
        any = true;
    }
    if (!any)
        *sum = NAN;
    return any;
}
