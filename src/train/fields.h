/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* fields: which dataset of the files is which input of the model, and which
 * target of its losses. */
#ifndef CDDP_TRAIN_FIELDS_H
#define CDDP_TRAIN_FIELDS_H

#include "hdf5io/dataset.h"
#include "nn/nn.h"
#include "train/config.h"

/* Texts that a hdf5io_dataset_config_t points to. */
typedef struct train_fields {
    char shapes[NN_FIELDS_MAX][128];
    char inputs[NN_FIELDS_MAX][512], targets[NN_FIELDS_MAX][512];
} train_fields_t;

/*
 * Find the inputs and targets of [graph] in data.input and data.target, and
 * fill those of [out], which refers to [config] and [texts]. ERR_CONFIG with
 * file:line:column: a name that only one side knows. Pure but for that.
 */
err_code_t train_fields_match(const train_config_t *config,
                              const nn_graph_t *graph, train_fields_t *texts,
                              hdf5io_dataset_config_t *out, err_t *err);

#endif
