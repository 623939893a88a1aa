/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Products of matrices by cublasLt. A product is planned once, for fixed
 * shapes: the algorithm is the first result of cublasLt's heuristics, which
 * depends on the shape and the device alone. Matrices are row-major.
 *
 * What of cublasLt is used, for those who replace it:
 *   cublasLtCreate, Destroy (cuda_libs), MatmulDescCreate, Destroy,
 *   SetAttribute, MatrixLayoutCreate, Destroy, SetAttribute,
 *   MatmulPreferenceCreate, Destroy, SetAttribute, MatmulAlgoGetHeuristic (one
 *   result), Matmul, GetStatusString
 *   matmul: compute types 32F, 32F_FAST_TF32, scale type 32F; TRANSA, TRANSB,
 *     EPILOGUE (DEFAULT, BIAS), BIAS_POINTER
 *   layout: types 32F, 16BF; ld; BATCH_COUNT, STRIDED_BATCH_OFFSET
 *   preference: MAX_WORKSPACE_BYTES, REDUCTION_SCHEME_MASK,
 *     MIN_ALIGNMENT_{A,B,C,D}_BYTES
 *   C is D; alpha is 1, beta is 0 or 1, in host memory
 */
#ifndef CDDP_OP_CUDA_BLAS_H
#define CDDP_OP_CUDA_BLAS_H

#include <cublasLt.h>

#include "dev/dev.h"
#include "op/op.h"

/* C [M,N] = A [M,K] B [K,N] + bias [N], for each of [batch] pairs. A transposed
 * matrix is stored as [K,M] or [N,K]. */
typedef struct cuda_product_spec {
    const char *what; /* names it in messages; must outlive the product */
    int64_t M, N, K;
    bool a_transposed, b_transposed, bias;
    /* OP_FLOAT32, OP_TF32 or OP_BFLOAT16. OP_BFLOAT16: A and B are bfloat16, C
     * and bias float32. Otherwise all are float32. */
    op_type_t compute_type;
    /* Elements from a stored row to the next; 0: rows follow each other. */
    int64_t a_row, b_row, c_row;
    int64_t batch; /* 0 means 1; matrices of a batch follow each other */
    /* True: addresses are multiples of the element only, otherwise of 16
     * bytes. */
    bool unaligned;
} cuda_product_spec_t;

typedef struct cuda_product cuda_product_t;

/* Plan a product on [dev]. ERR_UNAVAILABLE: cublasLt has no algorithm. */
err_code_t cuda_product_open(dev_device_t *dev, const cuda_product_spec_t *spec,
                             cuda_product_t **out, err_t *err);
void cuda_product_close(cuda_product_t *product); /* NULL allowed */

/* Bytes of temporary memory of a run; NULL has none. */
size_t cuda_product_scratch(const cuda_product_t *product);

typedef struct cuda_factors {
    const void *a, *b, *bias; /* bias: unused without spec.bias */
    void *c;
    bool add;      /* C += A B; the same bits as A B, then the sum */
    void *scratch; /* cuda_product_scratch bytes */
} cuda_factors_t;

/* Enqueue the product on [stream]. Allocates nothing. */
err_code_t cuda_product_run(cuda_product_t *product, dev_stream_t *stream,
                            const cuda_factors_t *with, err_t *err);

#endif
