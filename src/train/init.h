/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* init: a run that begins with the weights of a safetensors file, or of a
 * checkpoint (checkpoint.init), instead of random ones. */
#ifndef CDDP_TRAIN_INIT_H
#define CDDP_TRAIN_INIT_H

#include "nn/nn.h"
#include "train/config.h"

/* Are there such weights? */
bool train_init_given(const train_config_t *config);

/* Compare the names and shapes of these weights with the parameters and buffers
 * of [graph]. ERR_CONFIG names the first tensor that differs, with the expected
 * shape and the found one, or a pattern of init_skip that names no tensor;
 * ERR_DATA: it is no safetensors file and no checkpoint, or a tensor is not
 * float32; ERR_IO. Reads no weights. Local. */
err_code_t train_init_check(const train_config_t *config,
                            const nn_graph_t *graph, err_t *err);

/* Read the weights to the arenas [params] and [buffers]; tensors that init_skip
 * names stay as they are, and a line of the log names them. Errors as above;
 * ERR_DATA also for a number that is not finite, and for a damaged checkpoint.
 * Local. */
err_code_t train_init_read(const train_config_t *config,
                           const nn_graph_t *graph, float *params,
                           float *buffers, err_t *err);

#endif
