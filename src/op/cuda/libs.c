/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/libs.h"

#include "base/mem.h"
#include "dev/dev_cuda.h"
#include "op/cuda/cudnn_graph.h"

typedef struct libs {
    cublasLtHandle_t blas; /* NULL: not made yet */
    cudnnHandle_t dnn;
    cuda_attention_planning_t *attention;
} libs_t;

err_code_t cuda_blas_check(cublasStatus_t status, const char *call,
                           const char *what, err_t *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return ERR_OK;
    return err_set(
        err,
        status == CUBLAS_STATUS_ALLOC_FAILED ? ERR_MEMORY : ERR_UNAVAILABLE,
        "%s: %s failed: %s", what, call, cublasLtGetStatusString(status));
}

static void libs_close(void *object)
{
    libs_t *libs = object;

    if (libs->dnn != NULL)
        cudnnDestroy(libs->dnn);
    if (libs->blas != NULL)
        cublasLtDestroy(libs->blas);
    mem_free(libs);
}

static err_code_t libs_of(dev_device_t *dev, libs_t **out, err_t *err)
{
    dev_cuda_guest_t *guest = dev_cuda_guest(dev);
    libs_t *libs;
    err_code_t rc = ERR_OK;

    if (guest->object == NULL) {
        rc = mem_new(libs_t, 1, "the handles of CUDA's libraries", &libs, err);
        if (rc == ERR_OK)
            *guest = (dev_cuda_guest_t){libs, libs_close};
    }
    if (rc == ERR_OK)
        *out = guest->object;
    return rc;
}

err_code_t cuda_libs_blas(dev_device_t *dev, cublasLtHandle_t *out, err_t *err)
{
    libs_t *libs;
    err_code_t rc = libs_of(dev, &libs, err);

    if (rc == ERR_OK && libs->blas == NULL)
        rc = cuda_blas_check(cublasLtCreate(&libs->blas), "cublasLtCreate",
                             "cublasLt", err);
    if (rc == ERR_OK)
        *out = libs->blas;
    return rc;
}

err_code_t cuda_libs_dnn(dev_device_t *dev, cudnnHandle_t *out, err_t *err)
{
    libs_t *libs;
    err_code_t rc = libs_of(dev, &libs, err);

    if (rc == ERR_OK && libs->dnn == NULL)
        rc = cuda_dnn_check(cudnnCreate(&libs->dnn), "cudnnCreate", "cuDNN",
                            err);
    if (rc == ERR_OK)
        *out = libs->dnn;
    return rc;
}

err_code_t cuda_libs_attention(dev_device_t *dev,
                               cuda_attention_planning_t ***out, err_t *err)
{
    libs_t *libs;
    err_code_t rc = libs_of(dev, &libs, err);

    if (rc == ERR_OK)
        *out = &libs->attention;
    return rc;
}
