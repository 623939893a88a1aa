/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* attention in bfloat16 by cuDNN (ops/attention_bf16.c). ops/attention.cu opens
 * each attention op, and asks here first whether cuDNN can compute it. */
#ifndef CDDP_OP_CUDA_ATTENTION_H
#define CDDP_OP_CUDA_ATTENTION_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdbool.h>

#include "op/op_ops.h"

/* If [op] computes in bfloat16, let a thread ask cuDNN for plans. */
err_code_t cuda_attention_bf16_begin(op_t *op, err_t *err);
/* Wait for these plans. If there are any, set *taken: cuDNN computes this op.
 * If it computes in bfloat16, set op->note. */
err_code_t cuda_attention_bf16_take(op_t *op, bool *taken, err_t *err);
/* Close an op after cuda_attention_bf16_begin, whatever that returned. */
void cuda_attention_bf16_close(op_t *op);

#ifdef __cplusplus
}
#endif

#endif
