/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* fields: finds the dataset of the files for each input of the model and for
 * each target of its losses. */
#ifndef CDDP_TRAIN_FIELDS_H
#define CDDP_TRAIN_FIELDS_H

#include "hdf5io/dataset.h"
#include "nn/nn.h"
#include "train/config.h"

/* Texts to which a hdf5io_dataset_config_t points. */
typedef struct train_fields {
    char shapes[NN_FIELDS_MAX][128];
    char inputs[NN_FIELDS_MAX][512], targets[NN_FIELDS_MAX][512];
} train_fields_t;

/*
 * Find the fields of data.input and data.target for the inputs and targets of
 * [graph], and set the fields of [out], which points into [config] and [texts].
 * ERR_CONFIG with file:line:column: a name is only in the model, or only in the
 * run file. Touches nothing else.
 */
err_code_t train_fields_match(const train_config_t *config,
                              const nn_graph_t *graph, train_fields_t *texts,
                              hdf5io_dataset_config_t *out, err_t *err);

#endif
