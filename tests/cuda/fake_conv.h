/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The three convolutions by plain loops that add in double. */
#ifndef CDDP_TESTS_CUDA_FAKE_CONV_H
#define CDDP_TESTS_CUDA_FAKE_CONV_H

#include <cuda_runtime_api.h>

#include "fake_number.h"

#define FAKE_SPACE 3

enum { FAKE_X, FAKE_W, FAKE_Y, FAKE_TENSORS };

typedef enum fake_conv_kind {
    FAKE_FORWARD, /* writes y */
    FAKE_DATA,    /* writes x */
    FAKE_FILTER   /* writes w */
} fake_conv_kind_t;

/* x [N, C, space], w [K, C / groups, space], y [N, K, space]. Strides count
 * elements. Unused spatial dimensions have size 1. */
typedef struct fake_tensor {
    fake_numbers_t numbers;
    int64_t uid, alignment;
    int64_t dims[2 + FAKE_SPACE], strides[2 + FAKE_SPACE];
} fake_tensor_t;

typedef struct fake_conv {
    fake_conv_kind_t kind;
    fake_tensor_t tensors[FAKE_TENSORS];
    int64_t before[FAKE_SPACE], after[FAKE_SPACE];
    int64_t dilation[FAKE_SPACE], stride[FAKE_SPACE];
    float alpha, beta;
    void *workspace;
    int64_t workspace_bytes;
} fake_conv_t;

/* Do the shapes belong together? */
bool fake_conv_fits(const fake_conv_t *conv);
/* Bytes from the first element to the last. */
size_t fake_tensor_bytes(const fake_tensor_t *tensor);
/* The run of a fake_conv_t. */
cudaError_t fake_conv_run(const void *args);

#endif
