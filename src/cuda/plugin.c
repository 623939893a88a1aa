/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What libcddp_cuda.so exports: one constant. */
#include "config.h"

#include <cudnn.h>

#include "build_id.h"
#include "comm/comm_ops.h"
#include "dev/dev_cuda.h"
#include "dev/dev_plugin.h"
#include "op/op_ops.h"
#include "optim/place_ops.h"

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x

extern const cddp_cuda_t cddp_cuda;

__attribute__((visibility("default"))) const cddp_cuda_t cddp_cuda = {
    .interface = CDDP_CUDA_INTERFACE,
    .build_id = BUILD_ID,
    .built_for = "CUDA " CUDA_TOOLKIT
                 ", cuDNN " TEXT(CUDNN_MAJOR) "." TEXT(CUDNN_MINOR) "." TEXT(
                     CUDNN_PATCHLEVEL) ", compute capabilities" CUDA_ARCHS,
    .dev = &dev_cuda_ops,
    .op = &op_cuda_backend,
    .optim = &optim_cuda_place,
    .comm = &comm_nccl_ops,
    .nccl_version = comm_nccl_version,
};
