/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * evaluator: what a run needs to evaluate the validation samples: the metrics
 * of each loss, and memory for their sums. Thread rule: one thread, except for
 * train_eval_forward, which the thread of each team calls.
 */
#ifndef CDDP_TRAIN_EVAL_H
#define CDDP_TRAIN_EVAL_H

#include "ddp/fold.h"
#include "train/config.h"
#include "train/data.h"
#include "train/outputs.h"
#include "train/score.h"
#include "train/team.h"

/* The results of an evaluation. */
typedef struct train_eval {
    double loss, accuracy; /* accuracy: NaN unless a classifier */
    obs_value_t values[OBS_VALUES_MAX];
    int value_count;
    bool stopped; /* asked to stop before all samples were evaluated */
} train_eval_t;

typedef struct train_evaluator {
    const nn_graph_t *graph;
    const train_data_t *data;
    train_scores_t *scores[NN_FIELDS_MAX]; /* the scores of each loss */
    size_t at[NN_FIELDS_MAX]; /* index of the first sum of each loss */
    size_t count;             /* number of sums of a step */
    double *sums;             /* [count]: sums of one step */
    double *total;            /* [count]: sums over all steps */
    double *leaves;   /* reproducible mode: [slots, count - EVAL_FLAGS] */
    ddp_fold_t *fold; /* folds [leaves]; NULL in the default mode */
    float *output;    /* outputs of the largest batch, [output_elems] for each
                         team; NULL: no score reads them */
    size_t output_elems;      /* elements of a team's part of [output] */
    bool reads_output;        /* something reads the model's output */
    train_outputs_t *outputs; /* where outputs are written; NULL: nowhere */
} train_evaluator_t;

/* Indices of the sums of a step: first the flags. */
enum {
    EVAL_STOP,
    EVAL_FAILED,
    EVAL_FLAGS /* number of flags; in reproducible mode the sums after the flags
                  are added along the tree of leaves */
};

/* After the flags, these sums for each loss: */
enum {
    EVAL_LOSS,
    EVAL_DENOMINATOR,
    EVAL_CORRECT,
    EVAL_COUNTED, /* number of target elements that count */
    EVAL_SCORES   /* index of the first sum of the loss's scores,
                     train_scores_sums in number */
};

/* Choose the metrics and allocate their sums for [teams] teams. [out] is zeroed
 * before; on failure, too, train_eval_close frees it. Local. */
err_code_t train_eval_open(const train_config_t *config,
                           const nn_graph_t *graph, const train_data_t *data,
                           int teams, train_evaluator_t *out, err_t *err);
void train_eval_close(train_evaluator_t *evaluator);

/* Fill [out] with the names of the values that an evaluation yields; its
 * numbers are meaningless. Requires validation shards. */
void train_eval_names(const train_evaluator_t *evaluator, train_eval_t *out);

/* leaves.c: allocate the sums of leaves for [teams] teams. Local. */
err_code_t train_leaves_eval_open(const train_config_t *config, int teams,
                                  train_evaluator_t *evaluator, err_t *err);

/* Samples in the memory of the device and in that of the host; where the host
 * is the device, both are the same. */
typedef struct train_eval_batch {
    nn_batch_t there, host;
    int64_t count;
} train_eval_batch_t;

/* eval_forward.c: run forward on [batch] with [team], number [member] of the
 * rank's teams. Writes to the elements of [sums] from EVAL_FLAGS on. */
typedef struct train_eval_job {
    const train_evaluator_t *evaluator;
    const train_team_t *team;
    int member;
} train_eval_job_t;
err_code_t train_eval_forward(const train_eval_job_t *job,
                              const train_eval_batch_t *batch, double *sums,
                              err_t *err);

#endif
