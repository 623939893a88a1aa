/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <math.h>
#include <string.h>

#include "train/eval.h"
#include "train/inputs.h"

err_code_t train_eval_forward(const train_eval_job_t *job,
                              const train_eval_batch_t *batch, double *sums,
                              err_t *err)
{
    const int64_t count = batch->count;
    const train_evaluator_t *evaluator = job->evaluator;
    const nn_graph_t *graph = evaluator->graph;
    nn_exec_t *exec = train_team_exec(job->team, count, false);
    float *output = evaluator->output;
    nn_result_t results[NN_FIELDS_MAX];
    err_code_t rc;

    if (output != NULL)
        output += (size_t)job->member * evaluator->output_elems;
    memset(sums, 0, (evaluator->count - EVAL_FLAGS) * sizeof *sums);
    rc = evaluator->outputs == NULL
             ? ERR_OK
             : train_inputs_check(graph, evaluator->data, &batch->host, count,
                                  err);
    if (rc == ERR_OK)
        rc = nn_exec_forward(exec, &batch->there, err);
    if (rc == ERR_OK)
        rc = nn_exec_results(exec, results, err);
    for (int k = 0; k < nn_graph_losses(graph) && rc == ERR_OK; k++) {
        const int target = nn_graph_loss_info(graph, k).target;
        const nn_weight_t weight =
            nn_batch_weigh(graph, k, &batch->host, count);
        double *own = sums + evaluator->at[k] - EVAL_FLAGS;

        if (train_scores_look(evaluator->scores[k]) ||
            evaluator->outputs != NULL)
            rc = nn_exec_output(exec, k, output, err);
        if (rc == ERR_OK && evaluator->outputs != NULL)
            rc = train_outputs_put(evaluator->outputs, k, output,
                                   batch->host.sample_ids, count, err);
        if (rc != ERR_OK)
            break;
        if (!isfinite(results[k].loss_sum))
            rc = train_inputs_check(graph, evaluator->data, &batch->host, count,
                                    err);
        own[EVAL_LOSS] = results[k].loss_sum;
        own[EVAL_DENOMINATOR] = weight.denominator;
        own[EVAL_CORRECT] = results[k].correct;
        own[EVAL_COUNTED] = (double)weight.counted;
        train_scores_add(evaluator->scores[k], output,
                         batch->host.targets[target], count, own + EVAL_SCORES);
    }
    return rc;
}
