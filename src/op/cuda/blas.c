/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cublasLt's matrices are column-major, so it sees the transposed product: C'
 * [N,M] = B' A', where its first factor is our B.
 */
#include "op/cuda/blas.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "dev/dev_cuda.h"
#include "op/cuda/libs.h"
#include "op/cuda/room.h"

/* Most temporary memory of a product: what NVIDIA recommends for sm_90, and for
 * older devices. */
#define SCRATCH_SM90 ((size_t)32 << 20)
#define SCRATCH_OLDER ((size_t)4 << 20)

struct cuda_product {
    cuda_product_spec_t spec;
    cublasLtHandle_t blas;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t chosen;
};

/* ---- opening ------------------------------------------------------------- */

/* A layout under construction: columns and rows as cublasLt counts them. */
static err_code_t layout_open(const cuda_product_spec_t *spec, bool bf16,
                              int64_t columns, int64_t row, int64_t rows,
                              cublasLtMatrixLayout_t *out, err_t *err)
{
    const int32_t batch = spec->batch > 0 ? (int32_t)spec->batch : 1;
    const int64_t ld = row > 0 ? row : columns, step = ld * rows;
    err_code_t rc = cuda_blas_check(
        cublasLtMatrixLayoutCreate(out, bf16 ? CUDA_R_16BF : CUDA_R_32F,
                                   (uint64_t)columns, (uint64_t)rows, ld),
        "cublasLtMatrixLayoutCreate", spec->what, err);

    if (rc != ERR_OK || batch == 1)
        return rc;
    rc = cuda_blas_check(
        cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
        "cublasLtMatrixLayoutSetAttribute", spec->what, err);
    if (rc == ERR_OK)
        rc = cuda_blas_check(
            cublasLtMatrixLayoutSetAttribute(
                *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                sizeof step),
            "cublasLtMatrixLayoutSetAttribute", spec->what, err);
    return rc;
}

static err_code_t product_open_layouts(cuda_product_t *product, err_t *err)
{
    const cuda_product_spec_t *spec = &product->spec;
    const bool bf16 = spec->compute_type == OP_BFLOAT16;
    const int64_t M = spec->M, N = spec->N, K = spec->K;
    err_code_t rc =
        layout_open(spec, bf16, spec->a_transposed ? M : K, spec->a_row,
                    spec->a_transposed ? K : M, &product->a, err);

    if (rc == ERR_OK)
        rc = layout_open(spec, bf16, spec->b_transposed ? K : N, spec->b_row,
                         spec->b_transposed ? N : K, &product->b, err);
    if (rc == ERR_OK)
        rc = layout_open(spec, false, N, spec->c_row, M, &product->c, err);
    return rc;
}

static err_code_t matmul_set(cuda_product_t *product,
                             cublasLtMatmulDescAttributes_t name,
                             const void *value, size_t bytes, err_t *err)
{
    return cuda_blas_check(
        cublasLtMatmulDescSetAttribute(product->matmul, name, value, bytes),
        "cublasLtMatmulDescSetAttribute", product->spec.what, err);
}

static err_code_t product_open_matmul(cuda_product_t *product, err_t *err)
{
    const cuda_product_spec_t *spec = &product->spec;
    const cublasComputeType_t compute = spec->compute_type == OP_TF32
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    /* Heuristics want some address; each run sets its own. */
    const void *bias = (const void *)(uintptr_t)256;
    err_code_t rc = cuda_blas_check(
        cublasLtMatmulDescCreate(&product->matmul, compute, CUDA_R_32F),
        "cublasLtMatmulDescCreate", spec->what, err);

    if (rc == ERR_OK)
        rc = matmul_set(product, CUBLASLT_MATMUL_DESC_TRANSA,
                        &ops[spec->b_transposed], sizeof *ops, err);
    if (rc == ERR_OK)
        rc = matmul_set(product, CUBLASLT_MATMUL_DESC_TRANSB,
                        &ops[spec->a_transposed], sizeof *ops, err);
    if (rc == ERR_OK && spec->bias)
        rc = matmul_set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                        sizeof epilogue, err);
    if (rc == ERR_OK && spec->bias)
        rc = matmul_set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                        sizeof bias, err);
    return rc;
}

/* What the algorithm must respect. Of the ways to split a sum over K, those
 * are allowed that add to C once, after the sum: so that factors.add has the
 * bits of a separate sum. */
static err_code_t preference_fill(cublasLtMatmulPreference_t preference,
                                  const cuda_product_spec_t *spec, size_t most,
                                  err_t *err)
{
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t element = spec->compute_type == OP_BFLOAT16 ? 2 : 4;
    const uint32_t alignment = spec->unaligned ? element : 16;
    err_code_t rc = cuda_blas_check(
        cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
            sizeof most),
        "cublasLtMatmulPreferenceSetAttribute", spec->what, err);

    if (rc == ERR_OK)
        rc = cuda_blas_check(
            cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                &schemes, sizeof schemes),
            "cublasLtMatmulPreferenceSetAttribute", spec->what, err);
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned && rc == ERR_OK;
         i++)
        rc = cuda_blas_check(
            cublasLtMatmulPreferenceSetAttribute(preference, aligned[i],
                                                 &alignment, sizeof alignment),
            "cublasLtMatmulPreferenceSetAttribute", spec->what, err);
    return rc;
}

static err_code_t product_choose(cuda_product_t *product,
                                 cublasLtMatmulPreference_t preference,
                                 err_t *err)
{
    const cuda_product_spec_t *spec = &product->spec;
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        product->blas, product->matmul, product->b, product->a, product->c,
        product->c, preference, 1, &product->chosen, &found);

    if (status == CUBLAS_STATUS_SUCCESS && found == 1 &&
        product->chosen.state == CUBLAS_STATUS_SUCCESS)
        return ERR_OK;
    if (status == CUBLAS_STATUS_SUCCESS ||
        status == CUBLAS_STATUS_NOT_SUPPORTED)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: cublasLt has no algorithm for the product of "
                       "[%" PRId64 ", %" PRId64 "] and [%" PRId64 ", %" PRId64
                       "]",
                       spec->what, spec->M, spec->K, spec->K, spec->N);
    return cuda_blas_check(status, "cublasLtMatmulAlgoGetHeuristic", spec->what,
                           err);
}

static err_code_t product_plan(cuda_product_t *product, size_t most, err_t *err)
{
    const char *what = product->spec.what;
    cublasLtMatmulPreference_t preference;
    err_code_t rc =
        cuda_blas_check(cublasLtMatmulPreferenceCreate(&preference),
                        "cublasLtMatmulPreferenceCreate", what, err);

    if (rc != ERR_OK)
        return rc;
    rc = preference_fill(preference, &product->spec, most, err);
    if (rc == ERR_OK)
        rc = product_choose(product, preference, err);
    cublasLtMatmulPreferenceDestroy(preference);
    return rc;
}

err_code_t cuda_product_open(dev_device_t *dev, const cuda_product_spec_t *spec,
                             cuda_product_t **out, err_t *err)
{
    cuda_product_t *product;
    err_code_t rc = mem_new(cuda_product_t, 1, "a product", &product, err);

    if (rc != ERR_OK)
        return rc;
    product->spec = *spec;
    rc = cuda_libs_blas(dev, &product->blas, err);
    if (rc == ERR_OK)
        rc = product_open_layouts(product, err);
    if (rc == ERR_OK)
        rc = product_open_matmul(product, err);
    if (rc == ERR_OK)
        rc = product_plan(
            product, dev_cuda_arch(dev) >= 90 ? SCRATCH_SM90 : SCRATCH_OLDER,
            err);
    if (rc == ERR_OK)
        *out = product;
    else
        cuda_product_close(product);
    return rc;
}

void cuda_product_close(cuda_product_t *product)
{
    if (product == NULL)
        return;
    if (product->a != NULL)
        cublasLtMatrixLayoutDestroy(product->a);
    if (product->b != NULL)
        cublasLtMatrixLayoutDestroy(product->b);
    if (product->c != NULL)
        cublasLtMatrixLayoutDestroy(product->c);
    if (product->matmul != NULL)
        cublasLtMatmulDescDestroy(product->matmul);
    mem_free(product);
}

size_t cuda_product_scratch(const cuda_product_t *product)
{
    return product == NULL || product->chosen.workspaceSize == 0
               ? 0
               : product->chosen.workspaceSize + CUDA_ROOM_EXTRA;
}

/* ---- running ------------------------------------------------------------- */

err_code_t cuda_product_run(cuda_product_t *product, dev_stream_t *stream,
                            const cuda_factors_t *with, err_t *err)
{
    const char *what = product->spec.what;
    const float alpha = 1, beta = with->add ? 1 : 0;
    err_code_t rc = ERR_OK;

    check(with->scratch != NULL || product->chosen.workspaceSize == 0,
          "%s runs without scratch", what);
    check(!with->add || !product->spec.bias, "%s adds a bias twice", what);
    if (product->spec.bias)
        rc = matmul_set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &with->bias,
                        sizeof with->bias, err);
    if (rc != ERR_OK)
        return rc;
    return cuda_blas_check(
        cublasLtMatmul(product->blas, product->matmul, &alpha, with->b,
                       product->b, with->a, product->a, &beta, with->c,
                       product->c, with->c, product->c, &product->chosen.algo,
                       cuda_room_align(with->scratch),
                       product->chosen.workspaceSize, dev_cuda_stream(stream)),
        "cublasLtMatmul", what, err);
}
