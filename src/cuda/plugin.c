/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What libcddp_cuda.so exports: one constant. */
#include "config.h"

#include <cudnn.h>

#include "build_id.h"
#include "comm/comm_ops.h"
#include "comm/nccl/nccl_library.h"
#include "dev/dev_cuda.h"
#include "dev/dev_plugin.h"
#include "op/op_ops.h"
#include "optim/place_ops.h"

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x

static err_code_t nccl_version(int *out, err_t *err)
{
    const nccl_library_t *nccl;
    err_code_t rc = nccl_library_get(&nccl, err);

    if (rc == ERR_OK && nccl->GetVersion(out) != ncclSuccess)
        rc = err_set(err, ERR_UNAVAILABLE, "ncclGetVersion has failed");
    return rc;
}

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
    .nccl_version = nccl_version,
};
