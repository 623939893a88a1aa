/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * score: the metrics of an evaluation beside its loss. Each is a function of a
 * few sums over samples, so it is exact over batches and ranks: who evaluates
 * adds the sums up and asks for the values once. Pure but for open.
 */
#ifndef CDDP_TRAIN_SCORE_H
#define CDDP_TRAIN_SCORE_H

#include "base/tree.h"
#include "nn/nn.h"
#include "obs/metrics.h"

typedef struct train_scores train_scores_t;

/*
 * The scores of [loss] that `metrics` names: a list of names, or one; NULL or
 * "auto": what goes with the loss. Where the model has several losses,
 * `metrics` is such, for each alike, or a map of their names to such, and the
 * scores begin with the loss's name. ERR_CONFIG with file:line:column: unknown,
 * twice, too many, or not for this loss.
 *   classes    accuracy (always there), topK, miou, iouK, perplexity, bits; of
 *              probabilities of classes the largest is the right answer, and
 *              perplexity and bits are those of the cross entropy with them
 *   numbers    mae, rmse (over all elements alike), r2 (the mean over the
 *              elements of a sample, each of which is an output)
 *   yes or no  accuracy
 */
err_code_t train_scores_open(const tree_t *metrics, const nn_graph_t *graph,
                             int loss, train_scores_t **out, err_t *err);
void train_scores_close(train_scores_t *scores); /* NULL allowed */

/* Doubles that are added up. */
size_t train_scores_sums(const train_scores_t *scores);
/* Do they look at the model's output? If not, none need be given. */
bool train_scores_look(const train_scores_t *scores);

/* Add a batch of [samples] to [sums]: output as nn_exec_output gives it. */
void train_scores_add(const train_scores_t *scores, const float *output,
                      const void *target, int64_t samples, double *sums);

/* Scores of one loss at most. */
#define TRAIN_SCORES_MAX 12

/* The values of [sums] and a mean [loss] into [out] of TRAIN_SCORES_MAX;
 * returns their number. NaN where nothing counted. */
int train_scores_values(const train_scores_t *scores, double loss,
                        const double *sums, obs_value_t *out);

#endif
