/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The stand-in for cublasLt: products of all forms that cddp uses, and errors
 * for what it does not know.
 */
#include <criterion/criterion.h>
#include <cublasLt.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "cuda/fake_cuda.h"

#define OK(call) cr_assert_eq(call, CUBLAS_STATUS_SUCCESS, "%s", #call)
#define CUDA_OK(call) cr_assert_eq(call, cudaSuccess, "%s", #call)

enum { M = 5, N = 7, K = 9, BATCH = 3, LD = 11, STEP = 128 };

/* How the product is formed. Matrices are columns of LD elements. */
typedef struct form {
    bool a_transposed, b_transposed, bias, bf16, tf32;
    float alpha, beta;
} form_t;

typedef struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    cudaStream_t stream;
    void *A, *B, *C, *bias, *workspace;
    float a_host[BATCH * STEP], b_host[BATCH * STEP], c_host[BATCH * STEP];
    float bias_host[M];
} product_t;

/* The matrices in float; as the device gets them, if these are bfloat16. */
static void *upload(product_t *p, float *host, size_t count, bool bf16)
{
    static uint16_t narrow[2][BATCH * STEP];
    static int turn;
    const size_t bytes = count * (bf16 ? 2 : 4);
    const void *from = host;
    void *at;

    if (bf16) {
        from = narrow[turn];
        half_round_bf16(narrow[turn], host, (int64_t)count);
        half_widen_bf16(host, narrow[turn], (int64_t)count);
        turn = 1 - turn;
    }
    CUDA_OK(cudaMalloc(&at, bytes));
    CUDA_OK(
        cudaMemcpyAsync(at, from, bytes, cudaMemcpyHostToDevice, p->stream));
    return at;
}

static cublasLtMatrixLayout_t layout(bool bf16, uint64_t rows, uint64_t columns)
{
    const int32_t batch = BATCH;
    const int64_t step = STEP;
    cublasLtMatrixLayout_t made;

    OK(cublasLtMatrixLayoutCreate(&made, bf16 ? CUDA_R_16BF : CUDA_R_32F, rows,
                                  columns, LD));
    OK(cublasLtMatrixLayoutSetAttribute(
        made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    OK(cublasLtMatrixLayoutSetAttribute(
        made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
    return made;
}

static void set(const product_t *p, cublasLtMatmulDescAttributes_t name,
                const void *value, size_t bytes)
{
    OK(cublasLtMatmulDescSetAttribute(p->matmul, name, value, bytes));
}

static void matmul_open(product_t *p, const form_t *form)
{
    const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;

    OK(cublasLtMatmulDescCreate(&p->matmul,
                                form->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                           : CUBLAS_COMPUTE_32F,
                                CUDA_R_32F));
    set(p, CUBLASLT_MATMUL_DESC_TRANSA, &ops[form->a_transposed], 4);
    set(p, CUBLASLT_MATMUL_DESC_TRANSB, &ops[form->b_transposed], 4);
    if (form->bias) {
        set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
        set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
    }
}

static void preference_open(product_t *p)
{
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t workspace = 1 << 20;
    const uint32_t alignment = 16;

    OK(cublasLtMatmulPreferenceCreate(&p->preference));
    OK(cublasLtMatmulPreferenceSetAttribute(
        p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof workspace));
    for (int i = 0; i < 4; i++)
        OK(cublasLtMatmulPreferenceSetAttribute(p->preference, aligned[i],
                                                &alignment, sizeof alignment));
}

static void product_open(product_t *p, const form_t *form)
{
    int count;

    *p = (product_t){0};
    CUDA_OK(cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (int i = 0; i < BATCH * STEP; i++) {
        p->a_host[i] = sinf((float)i);
        p->b_host[i] = cosf((float)(3 * i));
        p->c_host[i] = sinf((float)(5 * i));
    }
    for (int i = 0; i < M; i++)
        p->bias_host[i] = (float)i - 2;
    p->A = upload(p, p->a_host, BATCH * STEP, form->bf16);
    p->B = upload(p, p->b_host, BATCH * STEP, form->bf16);
    p->C = upload(p, p->c_host, BATCH * STEP, false);
    p->bias = upload(p, p->bias_host, M, false);
    CUDA_OK(cudaMalloc(&p->workspace, 1 << 20));
    OK(cublasLtCreate(&p->handle));
    p->a = layout(form->bf16, form->a_transposed ? K : M,
                  form->a_transposed ? M : K);
    p->b = layout(form->bf16, form->b_transposed ? N : K,
                  form->b_transposed ? K : N);
    p->c = layout(false, M, N);
    matmul_open(p, form);
    preference_open(p);
    OK(cublasLtMatmulAlgoGetHeuristic(p->handle, p->matmul, p->a, p->b, p->c,
                                      p->c, p->preference, 1, &p->found,
                                      &count));
    cr_assert_eq(count, 1);
    cr_assert_gt(p->found.workspaceSize, 0);
}

static cublasStatus_t run(const product_t *p, const form_t *form, size_t offset,
                          size_t workspace)
{
    return cublasLtMatmul(p->handle, p->matmul, &form->alpha,
                          (const char *)p->A + offset, p->a, p->B, p->b,
                          &form->beta, p->C, p->c, p->C, p->c, &p->found.algo,
                          p->workspace, workspace, p->stream);
}

static void product_close(product_t *p)
{
    void *const blocks[] = {p->A, p->B, p->C, p->bias, p->workspace};

    OK(cublasLtMatrixLayoutDestroy(p->a));
    OK(cublasLtMatrixLayoutDestroy(p->b));
    OK(cublasLtMatrixLayoutDestroy(p->c));
    OK(cublasLtMatmulDescDestroy(p->matmul));
    OK(cublasLtMatmulPreferenceDestroy(p->preference));
    OK(cublasLtDestroy(p->handle));
    for (int i = 0; i < 5; i++)
        CUDA_OK(cudaFree(blocks[i]));
    CUDA_OK(cudaStreamDestroy(p->stream));
    fake_cuda.reset(); /* ends the process if something is open */
}

static double tf32(float value, bool round)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
    if (round)
        memcpy(&value, &bits, sizeof bits);
    return (double)value;
}

static double expected(const product_t *p, const form_t *form, int s, int m,
                       int n)
{
    const int c = s * STEP + n * LD + m;
    double sum = 0;

    for (int k = 0; k < K; k++) {
        const int a = form->a_transposed ? m * LD + k : k * LD + m;
        const int b = form->b_transposed ? k * LD + n : n * LD + k;

        sum += tf32(p->a_host[s * STEP + a], form->tf32) *
               tf32(p->b_host[s * STEP + b], form->tf32);
    }
    return (double)form->alpha * sum +
           (double)form->beta * (double)p->c_host[c] +
           (form->bias ? (double)p->bias_host[m] : 0);
}

static void check_form(const form_t *form)
{
    static float got[BATCH * STEP];
    product_t p;

    product_open(&p, form);
    OK(run(&p, form, 0, p.found.workspaceSize));
    CUDA_OK(cudaMemcpyAsync(got, p.C, sizeof got, cudaMemcpyDeviceToHost,
                            p.stream));
    CUDA_OK(cudaStreamSynchronize(p.stream));
    for (int s = 0; s < BATCH; s++)
        for (int n = 0; n < N; n++)
            for (int m = 0; m < M; m++)
                cr_assert_float_eq((double)got[s * STEP + n * LD + m],
                                   expected(&p, form, s, m, n), 1e-6);
    cr_assert_eq(got[M], p.c_host[M], "between columns nothing is written");
    product_close(&p);
}

Test(fake_cublaslt, products)
{
    for (int i = 0; i < 64; i++)
        check_form(&(form_t){.a_transposed = i & 1,
                             .b_transposed = i >> 1 & 1,
                             .bias = i >> 2 & 1,
                             .bf16 = i >> 3 & 1,
                             .tf32 = i >> 4 & 1,
                             .alpha = i >> 5 & 1 ? 0.5f : 1,
                             .beta = i % 3 == 0 ? 1 : 0});
}

Test(fake_cublaslt, misuse)
{
    const form_t form = {.alpha = 1};
    const int32_t number = 1;
    const cublasLtEpilogue_t unknown = CUBLASLT_EPILOGUE_GELU_AUX;
    product_t p;

    product_open(&p, &form);
    cr_assert_neq(run(&p, &form, 4, p.found.workspaceSize), 0, "misaligned");
    cr_assert_neq(run(&p, &form, 1024, p.found.workspaceSize), 0,
                  "behind the block");
    cr_assert_neq(run(&p, &form, 0, 16), 0, "workspace");
    cr_assert_neq(cublasLtMatmulDescSetAttribute(
                      p.matmul, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &number, 1),
                  0);
    cr_assert_neq(cublasLtMatrixLayoutSetAttribute(
                      p.a, CUBLASLT_MATRIX_LAYOUT_ORDER, &number, 4),
                  0);
    cr_assert_neq(cublasLtMatmulDescSetAttribute(
                      p.matmul, CUBLASLT_MATMUL_DESC_TRANSA, &number, 2),
                  0, "size");
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &unknown, sizeof unknown);
    cr_assert_neq(run(&p, &form, 0, p.found.workspaceSize), 0, "epilogue");
    product_close(&p);
}
