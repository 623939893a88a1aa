/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <math.h>

#include "train/score_priv.h"
#include "train/spread.h"

/* ---- classes ------------------------------------------------------------- */

/* Index of the logit of class 0 of [row]. The logit of class k is k * inner
 * elements after it. */
static int64_t row_place(const train_scores_t *all, int64_t row)
{
    return row / all->inner * all->classes * all->inner + row % all->inner;
}

/* The logits of [row]; NULL if the row is ignored. */
static const float *row_logits(const score_batch_t *batch, int64_t row)
{
    const train_scores_t *all = batch->all;

    if (all->ignore && batch->labels[row] == all->ignored)
        return NULL;
    return batch->x + row_place(all, row);
}

static int64_t row_best(const train_scores_t *all, const float *x)
{
    int64_t best = 0;

    for (int64_t k = 1; k < all->classes; k++)
        if (x[k * all->inner] > x[best * all->inner])
            best = k;
    return best;
}

void train_scores_classes(const train_scores_t *scores, const float *output,
                          int64_t samples, int64_t *out)
{
    for (int64_t r = 0; r < samples * scores->rows; r++)
        out[r] = row_best(scores, output + row_place(scores, r));
}

/* The label of [row]. */
static int64_t row_label(const score_batch_t *batch, int64_t row)
{
    const train_scores_t *all = batch->all;

    return all->soft ? row_best(all, batch->values + row_place(all, row))
                     : batch->labels[row];
}

/* Number of classes that rank before [label]: those with a larger logit, and
 * the lower ones of equal logit. */
static int64_t row_rank(const train_scores_t *all, const float *x,
                        int64_t label)
{
    const float own = x[label * all->inner];
    int64_t rank = 0;

    for (int64_t k = 0; k < all->classes; k++) {
        float other = x[k * all->inner];

        rank += other > own || (other == own && k < label);
    }
    return rank;
}

/* sums: rows whose label is among the K largest logits, rows */
void train_score_top_add(const score_t *score, const score_batch_t *batch,
                         double *sums)
{
    for (int64_t r = 0; r < batch->rows; r++) {
        const float *x = row_logits(batch, r);

        if (x == NULL)
            continue;
        sums[0] += row_rank(batch->all, x, row_label(batch, r)) < score->k;
        sums[1] += 1;
    }
}

/* sums of each class c: rows of label c predicted as c, rows predicted as c,
 * rows of label c */
void train_score_miou_add(const score_t *score, const score_batch_t *batch,
                          double *sums)
{
    (void)score;
    for (int64_t r = 0; r < batch->rows; r++) {
        const float *x = row_logits(batch, r);
        int64_t best, label;

        if (x == NULL)
            continue;
        best = row_best(batch->all, x);
        label = row_label(batch, r);
        sums[3 * best] += best == label;
        sums[3 * best + 1] += 1;
        sums[3 * label + 2] += 1;
    }
}

/* sums: rows of label K predicted as K, rows predicted as K, rows of label K */
void train_score_iou_add(const score_t *score, const score_batch_t *batch,
                         double *sums)
{
    for (int64_t r = 0; r < batch->rows; r++) {
        const float *x = row_logits(batch, r);
        bool taken, is;

        if (x == NULL)
            continue;
        taken = row_best(batch->all, x) == score->k;
        is = row_label(batch, r) == score->k;
        sums[0] += taken && is;
        sums[1] += taken;
        sums[2] += is;
    }
}

/* -log p of the label of [row]. With soft targets: the mean of -log p over the
 * classes, weighted by the targets. */
static double row_entropy(const score_batch_t *batch, int64_t row,
                          const float *x, double log_sum)
{
    const train_scores_t *all = batch->all;
    const float *t = batch->values + row_place(all, row);
    double sum = 0;

    if (!all->soft)
        return log_sum - (double)x[batch->labels[row] * all->inner];
    for (int64_t k = 0; k < all->classes; k++)
        sum +=
            (double)t[k * all->inner] * (log_sum - (double)x[k * all->inner]);
    return sum;
}

/* sums: -log p, rows */
void train_score_entropy_add(const score_t *score, const score_batch_t *batch,
                             double *sums)
{
    const train_scores_t *all = batch->all;

    (void)score;
    for (int64_t r = 0; r < batch->rows && !all->plain; r++) {
        const float *x = row_logits(batch, r);
        double top, sum = 0;

        if (x == NULL)
            continue;
        top = (double)x[row_best(all, x) * all->inner];
        for (int64_t k = 0; k < all->classes; k++)
            sum += exp((double)x[k * all->inner] - top);
        sums[0] += row_entropy(batch, r, x, log(sum) + top);
        sums[1] += 1;
    }
}

/* ---- numbers, yes or no -------------------------------------------------- */

/* sums, with d = output - target: |d|, d^2, number of elements */
void train_score_difference_add(const score_t *score,
                                const score_batch_t *batch, double *sums)
{
    (void)score;
    for (int64_t i = 0; i < batch->rows; i++) {
        double d = (double)batch->x[i] - (double)batch->values[i];

        sums[0] += fabs(d);
        sums[1] += d * d;
        sums[2] += 1;
    }
}

/* sums: samples, then for each output the sums of spread.h */
void train_score_spread_add(const score_t *score, const score_batch_t *batch,
                            double *sums)
{
    const int64_t outputs = batch->all->rows;

    (void)score;
    sums[0] += (double)(batch->rows / outputs);
    for (int64_t i = 0; i < batch->rows; i++)
        train_spread_add(sums + 1 + i % outputs * TRAIN_SPREAD_SUMS,
                         (double)batch->x[i], (double)batch->values[i]);
}

/* sums: correct elements, elements. A prediction is yes if sigmoid(x) > 1/2,
 * that is if x > 0. */
void train_score_yes_no_add(const score_t *score, const score_batch_t *batch,
                            double *sums)
{
    (void)score;
    for (int64_t i = 0; i < batch->rows; i++) {
        sums[0] += (batch->x[i] > 0) == (batch->values[i] > 0.5f);
        sums[1] += 1;
    }
}
