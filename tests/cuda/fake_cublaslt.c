/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A stand-in for cublasLt: products by plain loops that add in double. It knows
 * the attributes that cddp sets, and refuses all others. What it proposes wants
 * a workspace, which it fills with NaN.
 */
#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_cudart.h"
#include "fake_number.h"

struct cublasLtContext {
    int number;
};

typedef struct layout {
    cudaDataType type;
    int64_t rows, columns, ld, batch_step;
    int32_t batch;
} layout_t;

typedef struct matmul {
    cublasComputeType_t compute;
    int32_t a_transposed, b_transposed;
    uint32_t epilogue;
    const void *bias;
} matmul_t;

typedef struct preference {
    uint64_t workspace;
    uint32_t alignment[4]; /* of A, B, C, D */
} preference_t;

/* What a heuristic result keeps in its opaque algorithm. */
typedef struct algo {
    uint64_t magic, workspace;
    uint32_t alignment[4];
} algo_t;

#define MAGIC UINT64_C(0x656d756c61746564)
#define WORKSPACE 4096

static cublasStatus_t complain(const char *what, int64_t value)
{
    fprintf(stderr, "fake_cublaslt: %s: %s %lld\n", fake.last_call, what,
            (long long)value);
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- frame --------------------------------------------------------------- */

static cublasStatus_t begin(const char *name)
{
    switch (fake_begin(name)) {
    case cudaSuccess:
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

static cublasStatus_t end(cublasStatus_t status)
{
    fake_end_library();
    return status;
}

/* Create and destroy the objects of the library. */
static cublasStatus_t make(const char *name, size_t bytes, void **out)
{
    cublasStatus_t status = begin(name);

    if (status == CUBLAS_STATUS_SUCCESS && (*out = calloc(1, bytes)) == NULL)
        status = CUBLAS_STATUS_ALLOC_FAILED;
    if (status == CUBLAS_STATUS_SUCCESS)
        fake.counts.objects++;
    return end(status);
}

static cublasStatus_t unmake(const char *name, void *object)
{
    const cublasStatus_t status = begin(name);

    if (object == NULL)
        return end(CUBLAS_STATUS_INVALID_VALUE);
    free(object);
    fake.counts.objects--;
    return end(status);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    return make("cublasLtCreate", sizeof **out, (void **)out);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return unmake("cublasLtDestroy", handle);
}

size_t cublasLtGetVersion(void)
{
    return fake.settings.cublaslt > 0 ? (size_t)fake.settings.cublaslt
                                      : CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    default:
        return "the GPU program failed to execute";
    }
}

/* ---- descriptors --------------------------------------------------------- */

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    layout_t *layout;
    cublasStatus_t status =
        make("cublasLtMatrixLayoutCreate", sizeof *layout, (void **)&layout);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    *layout = (layout_t){.type = type,
                         .rows = (int64_t)rows,
                         .columns = (int64_t)columns,
                         .ld = ld,
                         .batch = 1};
    *out = (cublasLtMatrixLayout_t)layout;
    return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return unmake("cublasLtMatrixLayoutDestroy", layout);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                        cublasComputeType_t compute,
                                        cudaDataType scale)
{
    matmul_t *matmul;
    cublasStatus_t status;

    if (scale != CUDA_R_32F || (compute != CUBLAS_COMPUTE_32F &&
                                compute != CUBLAS_COMPUTE_32F_FAST_TF32))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    status = make("cublasLtMatmulDescCreate", sizeof *matmul, (void **)&matmul);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    *matmul = (matmul_t){.compute = compute,
                         .a_transposed = CUBLAS_OP_N,
                         .b_transposed = CUBLAS_OP_N,
                         .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    *out = (cublasLtMatmulDesc_t)matmul;
    return status;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul)
{
    return unmake("cublasLtMatmulDescDestroy", matmul);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    preference_t *preference;
    const cublasStatus_t status =
        make("cublasLtMatmulPreferenceCreate", sizeof *preference,
             (void **)&preference);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    *preference = (preference_t){.alignment = {256, 256, 256, 256}};
    *out = (cublasLtMatmulPreference_t)preference;
    return status;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return unmake("cublasLtMatmulPreferenceDestroy", preference);
}

/* ---- attributes ---------------------------------------------------------- */

/* Copy a value of [bytes] bytes to [field], which has [size]; a NULL field: the
 * attribute is unknown. */
static cublasStatus_t set(const char *call, int name, void *field, size_t size,
                          const void *value, size_t bytes)
{
    cublasStatus_t status = begin(call);

    if (status == CUBLAS_STATUS_SUCCESS && field == NULL)
        status = complain("unknown attribute", name);
    if (status == CUBLAS_STATUS_SUCCESS && bytes != size)
        status = complain("wrong size of attribute", name);
    if (status == CUBLAS_STATUS_SUCCESS)
        memcpy(field, value, size);
    return end(status);
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t object,
                                 cublasLtMatrixLayoutAttribute_t name,
                                 const void *value, size_t bytes)
{
    layout_t *layout = (layout_t *)object;
    static const char call[] = "cublasLtMatrixLayoutSetAttribute";

    switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set(call, name, &layout->batch, 4, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set(call, name, &layout->batch_step, 8, value, bytes);
    default:
        return set(call, name, NULL, 0, value, bytes);
    }
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t object,
                               cublasLtMatmulDescAttributes_t name,
                               const void *value, size_t bytes)
{
    matmul_t *matmul = (matmul_t *)object;
    static const char call[] = "cublasLtMatmulDescSetAttribute";

    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(call, name, &matmul->a_transposed, 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(call, name, &matmul->b_transposed, 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(call, name, &matmul->epilogue, 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(call, name, &matmul->bias, sizeof matmul->bias, value,
                   bytes);
    default:
        return set(call, name, NULL, 0, value, bytes);
    }
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t object,
                                     cublasLtMatmulPreferenceAttributes_t name,
                                     const void *value, size_t bytes)
{
    preference_t *preference = (preference_t *)object;
    static const char call[] = "cublasLtMatmulPreferenceSetAttribute";
    uint32_t ignored;

    switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(call, name, &preference->workspace, 8, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(call, name, &ignored, 4, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(
            call, name,
            &preference
                 ->alignment[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
            4, value, bytes);
    default:
        return set(call, name, NULL, 0, value, bytes);
    }
}

/* ---- the product --------------------------------------------------------- */

/* A product, as it is put on a stream. M, N, K count as cublasLt does. */
typedef struct product {
    layout_t a, b, c, d;
    fake_numbers_t A, B, C, D;
    const float *bias;
    bool a_transposed, b_transposed;
    int64_t M, N, K;
    float alpha, beta;
    void *workspace;
    size_t workspace_bytes;
} product_t;

/* Number of elements from the first to the last one. */
static size_t layout_bytes(const layout_t *layout)
{
    const int64_t last = (layout->batch - 1) * layout->batch_step +
                         (layout->columns - 1) * layout->ld + layout->rows;

    return (size_t)last * (layout->type == CUDA_R_16BF ? 2 : 4);
}

static bool type_known(const layout_t *layout)
{
    return layout->type == CUDA_R_32F || layout->type == CUDA_R_16BF;
}

/* Do shapes and types belong together? */
static cublasStatus_t product_check(const matmul_t *matmul,
                                    const layout_t *const of[4], product_t *out)
{
    const bool ta = matmul->a_transposed != CUBLAS_OP_N;
    const bool tb = matmul->b_transposed != CUBLAS_OP_N;
    const layout_t *a = of[0], *b = of[1], *d = of[3];

    *out = (product_t){.a = *a,
                       .b = *b,
                       .c = *of[2],
                       .d = *d,
                       .a_transposed = ta,
                       .b_transposed = tb,
                       .M = d->rows,
                       .N = d->columns,
                       .K = ta ? a->rows : a->columns};
    if (memcmp(of[2], d, sizeof *d) != 0)
        return complain("C is not like D; type", of[2]->type);
    for (int i = 0; i < 4; i++) {
        if (!type_known(of[i]))
            return complain("unknown type of a matrix", of[i]->type);
        if (of[i]->batch != d->batch)
            return complain("batch of another size", of[i]->batch);
        if (of[i]->ld < of[i]->rows)
            return complain("ld below the number of rows", of[i]->ld);
    }
    if ((ta ? a->columns : a->rows) != out->M ||
        (tb ? b->rows : b->columns) != out->N ||
        (tb ? b->columns : b->rows) != out->K)
        return complain("shapes do not fit, M", out->M);
    if (a->type != b->type || (d->type == CUDA_R_16BF && a->type != d->type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (matmul->epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
        matmul->epilogue != CUBLASLT_EPILOGUE_BIAS)
        return complain("unknown epilogue", matmul->epilogue);
    if (matmul->epilogue == CUBLASLT_EPILOGUE_BIAS && d->type != CUDA_R_32F)
        return complain("bias of type", d->type);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int *count)
{
    cublasStatus_t status = begin("cublasLtMatmulAlgoGetHeuristic");
    const layout_t *const of[] = {(layout_t *)a, (layout_t *)b, (layout_t *)c,
                                  (layout_t *)d};
    const preference_t *limits = (const preference_t *)preference;
    product_t product;
    algo_t algo = {.magic = MAGIC};

    *count = 0;
    if (status == CUBLAS_STATUS_SUCCESS && (handle == NULL || wanted < 1))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = product_check((matmul_t *)matmul, of, &product);
    if (status != CUBLAS_STATUS_SUCCESS)
        return end(status);
    algo.workspace = limits->workspace < WORKSPACE ? 0 : WORKSPACE;
    memcpy(algo.alignment, limits->alignment, sizeof algo.alignment);
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &algo, sizeof algo);
    results->workspaceSize = algo.workspace;
    results->state = CUBLAS_STATUS_SUCCESS;
    results->wavesCount = 1;
    *count = 1;
    return end(status);
}

static double product_one(const product_t *p, int64_t a, int64_t b)
{
    const int64_t a_step = p->a_transposed ? 1 : p->a.ld;
    const int64_t b_step = p->b_transposed ? p->b.ld : 1;
    double sum = 0;

    for (int64_t k = 0; k < p->K; k++)
        sum += (double)fake_load(&p->A, a + k * a_step) *
               (double)fake_load(&p->B, b + k * b_step);
    return sum;
}

static cudaError_t product_run(const void *args)
{
    const product_t *p = args;

    if (p->workspace != NULL)
        memset(p->workspace, 0xff, p->workspace_bytes);
    for (int64_t s = 0; s < p->d.batch; s++)
        for (int64_t n = 0; n < p->N; n++)
            for (int64_t m = 0; m < p->M; m++) {
                const int64_t at = s * p->d.batch_step + n * p->d.ld + m;
                double value =
                    (double)p->alpha *
                    product_one(p,
                                s * p->a.batch_step +
                                    m * (p->a_transposed ? p->a.ld : 1),
                                s * p->b.batch_step +
                                    n * (p->b_transposed ? 1 : p->b.ld));

                if (p->beta != 0)
                    value += (double)p->beta * (double)fake_load(&p->C, at);
                if (p->bias != NULL)
                    value += (double)p->bias[m];
                fake_store(&p->D, at, value);
            }
    return cudaSuccess;
}

/* Are these the addresses that the algorithm was made for? */
static cublasStatus_t addresses_check(const product_t *p, const algo_t *algo)
{
    const layout_t *const of[] = {&p->a, &p->b, &p->c, &p->d};
    const void *const at[] = {p->A.at, p->B.at, p->C.at, p->D.at};

    if (algo->magic != MAGIC)
        return complain("no algorithm, but", (int64_t)algo->magic);
    for (int i = 0; i < 4; i++) {
        if ((uintptr_t)at[i] % algo->alignment[i] != 0)
            return complain("misaligned matrix", i);
        if ((i != 2 || p->beta != 0) &&
            !fake_memory_has(at[i], layout_bytes(of[i])))
            return complain("not in the device's memory: matrix", i);
    }
    if (p->bias != NULL && !fake_memory_has(p->bias, (size_t)p->M * 4))
        return complain("not in the device's memory: bias of", p->M);
    if (p->workspace_bytes < algo->workspace ||
        !fake_memory_has(p->workspace, p->workspace_bytes))
        if (algo->workspace > 0)
            return complain("workspace of", (int64_t)p->workspace_bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
               const void *alpha, const void *A, cublasLtMatrixLayout_t a,
               const void *B, cublasLtMatrixLayout_t b, const void *beta,
               const void *C, cublasLtMatrixLayout_t c, void *D,
               cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    cublasStatus_t status = begin("cublasLtMatmul");
    const matmul_t *how = (const matmul_t *)matmul;
    const layout_t *const of[] = {(layout_t *)a, (layout_t *)b, (layout_t *)c,
                                  (layout_t *)d};
    const bool tf32 = how->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    product_t p;

    if (status == CUBLAS_STATUS_SUCCESS && handle == NULL)
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = product_check(how, of, &p);
    if (status != CUBLAS_STATUS_SUCCESS)
        return end(status);
    p.alpha = *(const float *)alpha;
    p.beta = *(const float *)beta;
    p.A = (fake_numbers_t){(void *)A, p.a.type == CUDA_R_16BF, tf32};
    p.B = (fake_numbers_t){(void *)B, p.b.type == CUDA_R_16BF, tf32};
    p.C = (fake_numbers_t){(void *)C, p.c.type == CUDA_R_16BF, false};
    p.D = (fake_numbers_t){D, p.d.type == CUDA_R_16BF, false};
    p.bias = how->epilogue == CUBLASLT_EPILOGUE_BIAS ? how->bias : NULL;
    p.workspace = workspace;
    p.workspace_bytes = workspace_bytes;
    status = addresses_check(&p, (const algo_t *)algo);
    if (status == CUBLAS_STATUS_SUCCESS &&
        fake_push(stream, product_run, &p, sizeof p) != cudaSuccess)
        status = CUBLAS_STATUS_EXECUTION_FAILED;
    return end(status);
}
