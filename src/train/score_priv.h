/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* score.c chooses the scores and computes values from sums; score_sums.c adds a
 * batch to the sums. */
#ifndef CDDP_TRAIN_SCORE_PRIV_H
#define CDDP_TRAIN_SCORE_PRIV_H

#include "train/score.h"

typedef struct score_kind score_kind_t;

typedef struct score {
    const score_kind_t *kind;
    int64_t k; /* the number K in the names topK and iouK */
    size_t at; /* index of the score's first sum */
} score_t;

struct train_scores {
    int64_t classes;    /* number of classes; 0: targets are no classes */
    int64_t rows;       /* rows of one sample */
    int64_t inner;      /* elements from one class of a row to the next class */
    bool ignore, plain; /* plain: the loss is the mean of -log p */
    /* Targets are probabilities; the class with the largest one is the label
     * of a row. */
    bool soft;
    int64_t ignored;
    size_t sums;
    bool look;
    bool several;     /* the model has several losses */
    const char *loss; /* kind of this loss */
    int count;
    score_t scores[TRAIN_SCORES_MAX];
};

/* A batch: rows of classes, or plain elements if there are no classes. */
typedef struct score_batch {
    const train_scores_t *all;
    const float *x;
    const int64_t *labels; /* labels of the rows; NULL if [all]->soft */
    const float *values;
    int64_t rows;
} score_batch_t;

struct score_kind {
    const char *name; /* name; a number K follows it unless [first] is -1 */
    int64_t first;    /* smallest K; -1: the name has no number */
    int suits;        /* kinds of losses that it can be used with, a bit each */
    void (*add)(const score_t *score, const score_batch_t *batch, double *sums);
    double (*value)(const score_t *score, const train_scores_t *all,
                    double loss, const double *sums);
    int sums; /* sums of the whole score */
    /* What has [each] further sums: nothing, a class, an output. */
    enum { ALL, CLASS, OUTPUT } of;
    int each; /* number of further sums of a class or output */
};

/* Functions that add a batch to the sums of a score. The comment at each
 * definition lists the sums. */
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
