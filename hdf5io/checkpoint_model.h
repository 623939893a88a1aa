/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_model: does a checkpoint belong to the model that reads it? */
#ifndef CDDP_HDF5IO_CHECKPOINT_MODEL_H
#define CDDP_HDF5IO_CHECKPOINT_MODEL_H

#include "base/err.h"
#include "hdf5io/checkpoint_manifest.h"

/*
 * Check that all [tensors], which this rank wants of the checkpoint [path],
 * exist with their shapes, that none is named twice, and that their groups
 * ("model/") contain no others.
 * With config->model_strict the hashes of the models must be equal, too.
 * wanted[i] becomes the index in [tensors] of tensor number i of the manifest;
 * -1: it is not wanted. ERR_CONFIG names the first tensor that differs. Local;
 * the same on all ranks.
 */
err_code_t hdf5io_model_compare(const hdf5io_checkpoint_config_t *config,
                                const hdf5io_manifest_t *manifest,
                                const char *path,
                                const hdf5io_tensor_t *tensors, int count,
                                int *wanted, err_t *err);

/* Warn if the checkpoint was made with other versions of libraries or on
 * another CPU, or with another model section whose tensors fit. Only rank 0
 * calls it. */
void hdf5io_model_warn(const hdf5io_checkpoint_config_t *config,
                       const hdf5io_manifest_t *manifest, const char *path);

#endif
