/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* init_source: where the weights of checkpoint.init come from: a safetensors
 * file, or a checkpoint. Local; blocks while it reads. */
#ifndef CDDP_TRAIN_INIT_SOURCE_H
#define CDDP_TRAIN_INIT_SOURCE_H

#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/safetensors.h"

typedef struct train_source_tensor {
    const char *name; /* as parameters and buffers are called */
    int ndim;
    const int64_t *dims;
    const char *type; /* "F32" */
    int from;         /* its number in the file, or in the manifest */
} train_source_tensor_t;

typedef struct train_source {
    char *path; /* of the file, or of the checkpoint */
    train_source_tensor_t *tensors;
    int count;
    bool checkpoint;
    hdf5io_safe_t file;
    hdf5io_manifest_t manifest;
} train_source_t;

/* Open [path]: a safetensors file, the directory of a checkpoint, or a run
 * directory, whose newest checkpoint is opened. No weights are read. ERR_DATA:
 * it is none of these, or damaged; ERR_CONFIG: a later version of cddp wrote
 * it; ERR_IO, ERR_MEMORY. *out is to be closed in any case. */
err_code_t train_source_open(const char *path, train_source_t *out, err_t *err);
void train_source_close(train_source_t *source);

/* The tensor called [name]; NULL: there is none. */
const train_source_tensor_t *train_source_find(const train_source_t *source,
                                               const char *name);

/* Check every byte of a checkpoint. A safetensors file has no hashes, so
 * nothing is checked. ERR_DATA, ERR_IO. */
err_code_t train_source_verify(const train_source_t *source, err_t *err);

/* Read [tensor] to [out]. ERR_DATA, ERR_IO. */
err_code_t train_source_read(const train_source_t *source,
                             const train_source_tensor_t *tensor, float *out,
                             err_t *err);

#endif
