/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * outputs: the file to which all ranks write the outputs of the samples that
 * they evaluate (cddp-train --predict). Each loss has a dataset with the tensor
 * that it reads, and, if it has classes, one with the most likely class. Thread
 * rule: one thread, except for train_outputs_put.
 */
#ifndef CDDP_TRAIN_OUTPUTS_H
#define CDDP_TRAIN_OUTPUTS_H

#include "nn/nn.h"
#include "train/score.h"
#include "train/world.h"

typedef struct train_outputs train_outputs_t;

typedef struct train_outputs_plan {
    train_world_t *world;
    const nn_graph_t *graph;
    train_scores_t *const *scores; /* of each loss */
    const char *path;
    int64_t samples; /* of all ranks */
} train_outputs_plan_t;

/* Rank 0 creates the file under a temporary name. [plan] and what it points to
 * must outlive it. ERR_USAGE: there is a file at plan->path; ERR_IO. All ranks
 * get one outcome. Collective. */
err_code_t train_outputs_open(const train_outputs_plan_t *plan,
                              train_outputs_t **out, err_t *err);

/* Write the rows [ids] of [loss], [count] in number; [output] is that of
 * nn_exec_output. Any thread; local. ERR_IO, ERR_MEMORY. */
err_code_t train_outputs_put(train_outputs_t *outputs, int loss,
                             const float *output, const uint64_t *ids,
                             int64_t count, err_t *err);

/* Make all rows durable and name the file. All ranks get one outcome.
 * Collective. */
err_code_t train_outputs_publish(train_outputs_t *outputs, err_t *err);

/* Rank 0 removes the temporary file, if it was not published. NULL allowed.
 * Local. */
void train_outputs_close(train_outputs_t *outputs);

#endif
