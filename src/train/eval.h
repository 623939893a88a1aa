/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * evaluator: what a run needs to evaluate the validation samples: the metrics
 * of each loss, and memory for their sums. Thread rule: one thread, but for
 * train_eval_forward, which each team calls for itself.
 */
#ifndef CDDP_TRAIN_EVAL_H
#define CDDP_TRAIN_EVAL_H

#include "ddp/fold.h"
#include "train/config.h"
#include "train/data.h"
#include "train/score.h"
#include "train/team.h"

/* What an evaluation found. */
typedef struct train_eval {
    double loss, accuracy; /* accuracy NaN: not a classifier */
    obs_value_t values[OBS_VALUES_MAX];
    int value_count;
    bool stopped; /* asked to stop before all samples were evaluated */
} train_eval_t;

typedef struct train_evaluator {
    const nn_graph_t *graph;
    const train_data_t *data;
    uint64_t seed;                         /* run.seed */
    train_scores_t *scores[NN_FIELDS_MAX]; /* of each loss */
    size_t at[NN_FIELDS_MAX]; /* index of the first sum of each loss */
    size_t count;             /* sums of a step */
    double *sums;             /* [count], of one step */
    double *total;            /* [count], of all steps */
    double *leaves;      /* reproducible mode: [slots, count - EVAL_FLAGS] */
    ddp_fold_t *fold;    /* of these, else NULL */
    float *output;       /* of the largest batch, one part for each team; NULL:
                            no score reads it */
    size_t output_elems; /* of a part */
    bool reads_output;   /* some score reads the model's output */
} train_evaluator_t;

/* The sums of one step. */
enum {
    EVAL_STOP,
    EVAL_FAILED,
    EVAL_FLAGS /* number of flags; reproducible mode adds the sums that follow
                  along the tree of leaves */
};

/* Then, for each loss: */
enum {
    EVAL_LOSS,
    EVAL_DENOMINATOR,
    EVAL_CORRECT,
    EVAL_COUNTED, /* elements of targets that count */
    EVAL_SCORES   /* then train_scores_sums sums of its scores */
};

/* Choose the metrics and allocate their sums for [teams] teams. [out] is zeroed
 * before; on failure, too, train_eval_close frees it. Local. */
err_code_t train_eval_open(const train_config_t *config,
                           const nn_graph_t *graph, const train_data_t *data,
                           int teams, train_evaluator_t *out, err_t *err);
void train_eval_close(train_evaluator_t *evaluator);

/* The names of the values that an evaluation yields; the numbers in [out] mean
 * nothing. Only with validation shards. */
void train_eval_names(const train_evaluator_t *evaluator, train_eval_t *out);

/* leaves.c: memory for the sums of leaves, of [teams] teams. Local. */
err_code_t train_leaves_eval_open(const train_config_t *config, int teams,
                                  train_evaluator_t *evaluator, err_t *err);

/* eval_forward.c: forward of [count] samples by [team], number [member]. The
 * sums from EVAL_FLAGS on are written to [sums]. */
typedef struct train_eval_job {
    const train_evaluator_t *evaluator;
    const train_team_t *team;
    int member;
} train_eval_job_t;
err_code_t train_eval_forward(const train_eval_job_t *job,
                              const nn_batch_t *batch, int64_t count,
                              double *sums, err_t *err);

#endif
