/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lone: batchnorm over one value a channel. That value is its own mean, so the
 * layer gives its bias whatever it reads, and no gradient passes. It happens
 * where what is normalized together is one sample without positions: a rank's
 * share or micro-batch, a leaf of the reproducible mode, or for syncbatchnorm a
 * micro-batch of all ranks.
 */
#ifndef CDDP_TRAIN_LONE_H
#define CDDP_TRAIN_LONE_H

#include "train/data.h"

/*
 * Does each step of [train], dealt to [ranks], leave a layer of [graph] one
 * value? ERR_CONFIG, naming the layer, the ranks and the batch. If only the
 * short last step does: a warning if [say], and *lone tells whose layers keep
 * their running statistics in it (nn_graph_fold_moments); else it is 0. Local;
 * alike on all ranks.
 */
err_code_t train_lone_check(const train_config_t *config,
                            const nn_graph_t *graph, const train_data_t *train,
                            int ranks, bool say, unsigned *lone, err_t *err);

#endif
