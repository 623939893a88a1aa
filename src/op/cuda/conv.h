/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What convolutions in float32 and in bfloat16 share: how their plans run. */
#ifndef CDDP_OP_CUDA_CONV_H
#define CDDP_OP_CUDA_CONV_H

#include "op/cuda/conv_plan.h"
#include "op/op_ops.h"

typedef struct cuda_conv_run {
    cudnnHandle_t dnn;
    cuda_conv_plans_t plans;
} cuda_conv_run_t;

/* Make the plans of [op]; close run->plans even if this fails. */
err_code_t cuda_conv_run_open(const op_t *op, cuda_conv_run_t *run, err_t *err);

/* Run [plan] of [run] on x, w and y, or on their gradients. [pad_at] is the
 * offset of cuDNN's workspace in scratch. */
err_code_t cuda_conv_run(const op_t *op, const op_args_t *args,
                         const cuda_conv_run_t *run, cuda_plan_t *plan,
                         const void *const xwy[3], size_t pad_at, err_t *err);

/* conv with bfloat16 products (ops/conv_bf16.c). */
extern const op_kernel_t cuda_conv_bf16_kernel;

#endif
