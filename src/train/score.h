/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * score: the metrics of an evaluation besides its loss. Each metric is a
 * function of a few sums over samples, so it is exact over batches and ranks:
 * the caller adds up the sums and then asks for the values. Pure, except open.
 */
#ifndef CDDP_TRAIN_SCORE_H
#define CDDP_TRAIN_SCORE_H

#include "base/tree.h"
#include "nn/nn.h"
#include "obs/metrics.h"

typedef struct train_scores train_scores_t;

/*
 * Open the scores of [loss] that `metrics` names: one name, or a list of names;
 * NULL or "auto": the default of the loss. With several losses `metrics` holds
 * for each of them, or is a map from their names to such values. ERR_CONFIG
 * with file:line:column: a name is unknown, given twice, one too many, or not
 * for this loss. classes    accuracy (always there), topK, miou, iouK,
 * perplexity, bits. If targets are probabilities of classes, the largest one is
 * the label; perplexity and bits come from the cross entropy. numbers    mae,
 * rmse (over all elements), r2 (mean over the elements of a sample, each of
 * which is an output) yes or no  accuracy
 */
err_code_t train_scores_open(const tree_t *metrics, const nn_graph_t *graph,
                             int loss, train_scores_t **out, err_t *err);
void train_scores_close(train_scores_t *scores); /* NULL allowed */

/* Number of sums, in doubles. */
size_t train_scores_sums(const train_scores_t *scores);
/* Do the scores read the model's output? If not, it may be NULL. */
bool train_scores_look(const train_scores_t *scores);

/* Add a batch of [samples] samples to [sums]; [output] is that of
 * nn_exec_output. */
void train_scores_add(const train_scores_t *scores, const float *output,
                      const void *target, int64_t samples, double *sums);

/* Most scores of one loss. */
#define TRAIN_SCORES_MAX 12

/* Compute the values from [sums] and the mean [loss] into [out], of
 * TRAIN_SCORES_MAX elements; returns their number. NaN if nothing counted. */
int train_scores_values(const train_scores_t *scores, double loss,
                        const double *sums, obs_value_t *out);

#endif
