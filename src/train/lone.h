/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lone: finds batchnorm layers that normalize one value per channel. This value
 * equals its mean, so the output is the bias for any input, and no gradient
 * passes. It happens if the layer has one value per sample and channel, and a
 * single sample is normalized: as a rank's micro-batch, as a leaf of the
 * reproducible mode, or with syncbatchnorm as the micro-batch of all ranks.
 */
#ifndef CDDP_TRAIN_LONE_H
#define CDDP_TRAIN_LONE_H

#include "train/data.h"

/* How the samples of a run are divided into steps and among ranks. */
typedef struct train_deal {
    const train_config_t *config;
    const nn_graph_t *graph;
    const train_data_t *train;
    int ranks;
    bool logs; /* log warnings (true on rank 0) */
} train_deal_t;

/*
 * ERR_CONFIG if a layer normalizes one value per channel in every step. The
 * message names the layer, the ranks and the batch. If a layer does so only in
 * the short last step of an epoch, a warning is logged, and *lone tells which
 * layers keep their running statistics unchanged in that step (see
 * nn_graph_fold); otherwise *lone is 0. Local; all ranks get equal
 * results.
 */
err_code_t train_lone_check(const train_deal_t *deal, unsigned *lone,
                            err_t *err);

#endif
