/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* score.c chooses the scores and turns sums into values; score_sums.c adds a
 * batch to the sums. */
#ifndef CDDP_TRAIN_SCORE_PRIV_H
#define CDDP_TRAIN_SCORE_PRIV_H

#include "train/score.h"

typedef struct score_kind score_kind_t;

typedef struct score {
    const score_kind_t *kind;
    int64_t k; /* of topK, iouK */
    size_t at; /* its first sum */
} score_t;

struct train_scores {
    int64_t classes, rows, inner; /* rows: of one sample */
    bool ignore, plain;           /* plain: the loss is the mean of -log p */
    bool soft; /* targets are probabilities: the largest one of a row
                  is its label */
    int64_t ignored;
    size_t sums;
    bool look;
    bool several;     /* losses has the model; */
    const char *loss; /* the kind of this one */
    int count;
    score_t scores[TRAIN_SCORES_MAX];
};

/* A batch: rows of classes, or plain elements. */
typedef struct score_batch {
    const train_scores_t *all;
    const float *x;
    const int64_t *labels; /* NULL if soft */
    const float *values;
    int64_t rows;
} score_batch_t;

struct score_kind {
    const char *name; /* a number follows, if [first] is set */
    int64_t first;    /* least number; -1: none */
    int suits;
    void (*add)(const score_t *score, const score_batch_t *batch, double *sums);
    double (*value)(const score_t *score, const train_scores_t *all,
                    double loss, const double *sums);
    int sums; /* beside those [of] each class or output; */
    enum { ALL, CLASS, OUTPUT } of;
    int each; /* so many each */
};

/* Add a batch to the sums of a score, which stand at each function's
 * definition. */
void train_score_top_add(const score_t *score, const score_batch_t *batch,
                         double *sums);
void train_score_miou_add(const score_t *score, const score_batch_t *batch,
                          double *sums);
void train_score_iou_add(const score_t *score, const score_batch_t *batch,
                         double *sums);
void train_score_entropy_add(const score_t *score, const score_batch_t *batch,
                             double *sums);
void train_score_difference_add(const score_t *score,
                                const score_batch_t *batch, double *sums);
void train_score_spread_add(const score_t *score, const score_batch_t *batch,
                            double *sums);
void train_score_yes_no_add(const score_t *score, const score_batch_t *batch,
                            double *sums);

#endif
