/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The handles of cublasLt and cuDNN of a device. They are made by the first op
 * that needs them (cuDNN's takes a good part of a second), kept by the device,
 * and closed with it.
 *
 * Thread rule: one thread at a time opens and runs ops of a device.
 */
#ifndef CDDP_OP_CUDA_LIBS_H
#define CDDP_OP_CUDA_LIBS_H

#include <cublasLt.h>
#include <cudnn.h>

#include "dev/dev.h"

err_code_t cuda_libs_blas(dev_device_t *dev, cublasLtHandle_t *out, err_t *err);
err_code_t cuda_libs_dnn(dev_device_t *dev, cudnnHandle_t *out, err_t *err);

/* Get the place of the device's plans of attention (attention_share.c), which
 * holds NULL at first. All ops are closed before the device, so it is NULL
 * again when the device is closed. */
typedef struct cuda_attention_planning cuda_attention_planning_t;
err_code_t cuda_libs_attention(dev_device_t *dev,
                               cuda_attention_planning_t ***out, err_t *err);

/* The error of [call] of cublasLt on [what]; ERR_OK if [status] is success. */
err_code_t cuda_blas_check(cublasStatus_t status, const char *call,
                           const char *what, err_t *err);

#endif
