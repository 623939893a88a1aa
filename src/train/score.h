/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * score: the metrics of an evaluation besides its loss. Each metric is a
 * function of a few sums over samples, so it is exact over batches and ranks:
 * the caller adds up the sums and then asks for the values. Pure, except
 * train_scores_open.
 */
#ifndef CDDP_TRAIN_SCORE_H
#define CDDP_TRAIN_SCORE_H

#include "base/tree.h"
#include "nn/nn.h"
#include "obs/metrics.h"

typedef struct train_scores train_scores_t;

/*
 * Open the scores of loss number [loss]. `metrics` is the name of a score or a
 * list of names; NULL or "auto" means the default scores of the loss. If there
 * are several losses, `metrics` applies to each of them, or is a map from names
 * of losses to such values. ERR_CONFIG with file:line:column: a score is
 * unknown, named twice, one too many, or not for this loss.
 *
 * Scores by kind of target:
 * - classes: accuracy (always present), topK, miou, iouK, perplexity, bits. If
 *   targets are probabilities of classes, the class with the largest
 *   probability is the label; perplexity and bits come from the cross entropy.
 * - numbers: mae, rmse (over all elements), r2 (mean over the elements of a
 *   sample, each of which is an output).
 * - yes or no: accuracy.
 */
err_code_t train_scores_open(const tree_t *metrics, const nn_graph_t *graph,
                             int loss, train_scores_t **out, err_t *err);
void train_scores_close(train_scores_t *scores); /* NULL allowed */

/* Number of sums that the scores need (doubles). */
size_t train_scores_sums(const train_scores_t *scores);
/* Return whether the scores read the model's output. If not, train_scores_add
 * may get NULL for it. */
bool train_scores_look(const train_scores_t *scores);

/* Add a batch of [samples] samples to [sums]; [output] comes from
 * nn_exec_output. */
void train_scores_add(const train_scores_t *scores, const float *output,
                      const void *target, int64_t samples, double *sums);

/* The class with the largest output in each row of [samples] samples, the first
 * one of equal outputs. [out] has nn_loss_info_t.terms elements for each
 * sample. Only for losses with classes. */
void train_scores_classes(const train_scores_t *scores, const float *output,
                          int64_t samples, int64_t *out);

/* Maximum number of scores of one loss. */
#define TRAIN_SCORES_MAX 12

/* Compute the values from [sums] and the mean [loss] and write them to [out],
 * which has TRAIN_SCORES_MAX elements. Returns the number of values. A value is
 * NaN if no target counted. */
int train_scores_values(const train_scores_t *scores, double loss,
                        const double *sums, obs_value_t *out);

#endif
