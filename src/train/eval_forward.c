/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <math.h>
#include <string.h>

#include "train/inputs.h"
#include "train/run_priv.h"

err_code_t train_eval_forward(train_state_t *run, int member,
                              const nn_batch_t *batch, int64_t count,
                              double *sums, err_t *err)
{
    const train_eval_room_t *room = &run->room;
    nn_exec_t *exec =
        train_team_exec(&run->replica.teams[member], count, false);
    float *output = room->output;
    nn_result_t results[NN_FIELDS_MAX];
    err_code_t rc;

    if (output != NULL)
        output += (size_t)member * room->output_elems;
    memset(sums, 0, (room->count - EVAL_FLAGS) * sizeof *sums);
    rc = nn_exec_forward(exec, batch, results, err);
    for (int k = 0; k < nn_graph_losses(run->graph) && rc == ERR_OK; k++) {
        const int target = nn_graph_loss_info(run->graph, k).target;
        double *own = sums + room->at[k] - EVAL_FLAGS;

        if (train_scores_look(room->scores[k]))
            rc = nn_exec_output(exec, k, output, err);
        if (rc != ERR_OK)
            break;
        if (!isfinite(results[k].loss_sum))
            rc = train_inputs_check(run, &run->valid, batch, count, err);
        own[EVAL_LOSS] = results[k].loss_sum;
        own[EVAL_DENOMINATOR] = results[k].weight.denominator;
        own[EVAL_CORRECT] = (double)results[k].correct;
        own[EVAL_COUNTED] = (double)results[k].weight.counted;
        train_scores_add(room->scores[k], output, batch->targets[target], count,
                         own + EVAL_SCORES);
    }
    return rc;
}
