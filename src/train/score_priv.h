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
    size_t at; /* index of its first sum */
} score_t;

struct train_scores {
    int64_t classes;    /* 0: no classes */
    int64_t rows;       /* of one sample */
    int64_t inner;      /* distance of two classes of a row, in elements */
    bool ignore, plain; /* plain: the loss is the mean of -log p */
    bool soft; /* targets are probabilities; the largest of a row is its
                  label */
    int64_t ignored;
    size_t sums;
    bool look;
    bool several;     /* the model has several losses */
    const char *loss; /* kind of this loss */
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
    const char *name; /* a number K follows, unless [first] is -1 */
    int64_t first;    /* least K; -1: no number */
    int suits;        /* kinds of losses, a bit each */
    void (*add)(const score_t *score, const score_batch_t *batch, double *sums);
    double (*value)(const score_t *score, const train_scores_t *all,
                    double loss, const double *sums);
    int sums;                       /* of the whole score */
    enum { ALL, CLASS, OUTPUT } of; /* further sums for each of these */
    int each;                       /* number of further sums for each */
};

/* Add a batch to the sums of a score; a comment at each definition lists them.
 */
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
