/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lone: finds batchnorm layers that normalize one value per channel. That value
 * equals its mean, so the output is the bias for any input, and no gradient
 * passes. It happens if a single sample without positions is normalized: as a
 * rank's micro-batch, as a leaf of the reproducible mode, or with syncbatchnorm
 * as the micro-batch of all ranks.
 */
#ifndef CDDP_TRAIN_LONE_H
#define CDDP_TRAIN_LONE_H

#include "train/data.h"

/* The steps of a run. */
typedef struct train_deal {
    const train_config_t *config;
    const nn_graph_t *graph;
    const train_data_t *train;
    int ranks;
    bool speaks; /* log warnings */
} train_deal_t;

/*
 * ERR_CONFIG if a layer normalizes one value per channel in every step; it
 * names the layer, the ranks and the batch. If that is so in the short last
 * step of an epoch only, a warning is logged, and *lone tells which layers keep
 * their running statistics in that step (see nn_graph_fold_moments); else *lone
 * is 0. Local; the same on all ranks.
 */
err_code_t train_lone_check(const train_deal_t *deal, unsigned *lone,
                            err_t *err);

#endif
