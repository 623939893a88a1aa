/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Evaluation: every validation sample once, in file order, dealt to the ranks
 * like a training step but never padded. Each step ends with one small sum of
 * loss, right answers, requests and failures, so that a long evaluation can be
 * left at a signal; the result is sum / count over all ranks.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/run_priv.h"

/* ---- room ---------------------------------------------------------------- */

static size_t output_elems(const train_state_t *run)
{
    nn_layer_info_t last =
        nn_graph_layer(run->graph, nn_graph_layers(run->graph) - 1);
    size_t elems = 1;
    int64_t most = 0;

    for (int i = 0; i < TRAIN_SIZES_MAX; i++)
        if (run->valid.sizes[i] > most)
            most = run->valid.sizes[i];
    for (int d = 0; d < last.ndim; d++)
        elems *= (size_t)last.dims[d];
    return elems * (size_t)most;
}

err_code_t train_eval_open(train_state_t *run, err_t *err)
{
    train_eval_room_t *room = &run->room;
    err_code_t rc;

    rc =
        train_scores_open(run->config->metrics, run->graph, &room->scores, err);
    if (rc != ERR_OK || run->valid.dataset == NULL)
        return rc;
    room->count = EVAL_SCORES + train_scores_sums(room->scores);
    rc = mem_alloc(room->count * sizeof *room->sums, "metrics",
                   (void **)&room->sums, err);
    if (rc == ERR_OK)
        rc = mem_alloc(room->count * sizeof *room->total, "metrics",
                       (void **)&room->total, err);
    if (rc == ERR_OK && run->config->train.reproducible)
        rc = train_leaves_eval_open(run, err);
    room->output_elems = output_elems(run);
    if (rc == ERR_OK && train_scores_look(room->scores))
        rc = mem_alloc(
            (size_t)run->teams * room->output_elems * sizeof *room->output,
            "the model's output, for metrics", (void **)&room->output, err);
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
    train_scores_close(room->scores);
    *room = (train_eval_room_t){0};
}

/* ---- one step ------------------------------------------------------------ */

err_code_t train_eval_forward(train_state_t *run, int member,
                              const nn_batch_t *batch, int64_t count,
                              double *sums, err_t *err)
{
    const train_eval_room_t *room = &run->room;
    nn_exec_t *exec =
        train_team_exec(&run->replica.teams[member], count, false);
    float *output = room->output;
    nn_result_t result;
    err_code_t rc;

    if (output != NULL)
        output += (size_t)member * room->output_elems;
    rc = nn_exec_forward(exec, batch, &result, err);
    if (rc == ERR_OK && output != NULL)
        rc = nn_exec_output(exec, output, err);
    if (rc != ERR_OK)
        return rc;
    memset(sums, 0, (room->count - EVAL_LOSS) * sizeof *sums);
    sums[0] = result.loss_sum; /* they begin at EVAL_LOSS */
    sums[EVAL_DENOMINATOR - EVAL_LOSS] = result.weight.denominator;
    sums[EVAL_CORRECT - EVAL_LOSS] = (double)result.correct;
    sums[EVAL_COUNTED - EVAL_LOSS] = (double)result.weight.counted;
    train_scores_add(room->scores, output, batch->target, count,
                     sums + EVAL_SCORES - EVAL_LOSS);
    return ERR_OK;
}

/* My part of one step, into sums. */
static err_code_t eval_share(train_state_t *run, const hdf5io_batch_t *batch,
                             double *sums, err_t *err)
{
    nn_batch_t whole;

    if (batch->count == 0)
        return ERR_OK;
    whole = train_batch_part(run, batch, 0);
    return train_eval_forward(run, 0, &whole, batch->count, sums + EVAL_LOSS,
                              err);
}

/* In reproducible mode everything but the flags is summed along the tree. */
static err_code_t eval_step(train_state_t *run, double *sums, err_t *err)
{
    bool tree = run->replica.tree != NULL;
    size_t count = tree ? EVAL_LOSS : run->room.count;
    hdf5io_batch_t *batch = NULL;
    err_code_t own;
    err_code_t rc;

    own = hdf5io_loader_next(run->valid.loader, &batch, err);
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

/* From sums to numbers. */
static void eval_fill(const train_state_t *run, train_eval_t *eval)
{
    const double *total = run->room.total;

    eval->loss = total[EVAL_LOSS] / total[EVAL_DENOMINATOR];
    if (nn_graph_classes(run->graph) > 0)
        eval->accuracy = total[EVAL_CORRECT] / total[EVAL_COUNTED];
    eval->value_count = train_scores_values(run->room.scores, eval->loss,
                                            total + EVAL_SCORES, eval->values);
    /* Accuracy has its own place. */
    for (int i = 0; i < eval->value_count; i++)
        if (strcmp(eval->values[i].name, "accuracy") == 0) {
            eval->accuracy = eval->values[i].value;
            eval->values[i] = eval->values[--eval->value_count];
        }
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
