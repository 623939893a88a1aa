/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Evaluation: every validation sample once, in file order, dealt to the ranks
 * like a training step but never padded. Each step ends with one small sum of
 * loss, right answers, requests and failures, so that a long evaluation can be
 * left at a signal; the result is sum / count over all ranks.
 */
#include <math.h>

#include "base/clock.h"
#include "train/run_priv.h"

void train_eval_add(const nn_result_t *result, double *sums)
{
    sums[EVAL_LOSS] = result->loss_sum;
    sums[EVAL_DENOMINATOR] = result->weight.denominator;
    sums[EVAL_CORRECT] = (double)result->correct;
    sums[EVAL_COUNTED] = (double)result->weight.counted;
}

/* My part of one step, into sums. */
static err_code_t eval_share(train_state_t *run, const hdf5io_batch_t *batch,
                             double *sums, err_t *err)
{
    nn_result_t result;
    nn_batch_t whole;
    err_code_t rc;

    if (batch->count == 0)
        return ERR_OK;
    whole = train_batch_part(run, batch, 0);
    rc = nn_exec_forward(train_replica_exec(&run->replica, batch->count, false),
                         &whole, &result, err);
    if (rc != ERR_OK)
        return rc;
    train_eval_add(&result, sums);
    return ERR_OK;
}

/* In reproducible mode loss, right answers and count are summed along the tree,
 * and only the flags here. */
static err_code_t eval_step(train_state_t *run, double *sums, err_t *err)
{
    bool tree = run->replica.tree != NULL;
    size_t from = tree ? EVAL_STOP : 0;
    train_leaf_sums_t leaves;
    hdf5io_batch_t *batch = NULL;
    err_code_t own;
    err_code_t rc;

    own = hdf5io_loader_next(run->valid.loader, &batch, err);
    if (own == ERR_OK)
        own = tree ? train_leaves_eval(run, batch, &leaves, err)
                   : eval_share(run, batch, sums, err);
    sums[EVAL_STOP] = run->env->signal() != SLURM_SIGNAL_NONE ? 1.0 : 0.0;
    sums[EVAL_FAILED] = own != ERR_OK ? 1.0 : 0.0;
    rc = comm_allreduce(run->group, sums + from, EVAL_SUMS - from, COMM_FLOAT64,
                        COMM_SUM, own == ERR_OK ? err : NULL);
    if (rc != ERR_OK)
        return own != ERR_OK ? own : rc;
    if (sums[EVAL_FAILED] > 0.0)
        return train_vote(&run->votes, own, &run->speaker, err);
    return tree ? train_leaves_eval_reduce(run, batch, &leaves, sums, err)
                : ERR_OK;
}

err_code_t train_evaluate(train_state_t *run, train_eval_t *out, err_t *err)
{
    double total[EVAL_SUMS] = {0};
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
    for (int64_t s = 0; s < run->valid.steps && !eval.stopped; s++) {
        double sums[EVAL_SUMS] = {0};

        rc = eval_step(run, sums, err);
        if (rc != ERR_OK)
            return rc;
        for (int i = 0; i < EVAL_SUMS; i++)
            total[i] += sums[i];
        eval.stopped = total[EVAL_STOP] > 0.0;
    }
    eval.loss = total[EVAL_LOSS] / total[EVAL_DENOMINATOR];
    if (nn_graph_classes(run->graph) > 0)
        eval.accuracy = total[EVAL_CORRECT] / total[EVAL_COUNTED];
    *out = eval;
    return ERR_OK;
}
